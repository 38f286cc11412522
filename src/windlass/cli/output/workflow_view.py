"""A workflow as people read it: its properties, its progress and remarks about its jobs."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from windlass.cli.output.job_table import rough_age
from windlass.cli.output.tables import CUT, Layout, print_table
from windlass.cli.output.text import BOLD, say
from windlass.client.blocking.client import Client
from windlass.clock import RealClock
from windlass.domain.values.quantities import parse_moment
from windlass.messages.jobs import Job
from windlass.messages.workflows import Workflow

FAILURES: Final = ("failed", "canceled", "aborted", "rejected")
ENDED: Final = ("completed", "skipped", *FAILURES)
_ONE_LINE: Final = Layout(
    spare=("finished", "created", "priority", "reason"), cut=CUT | {"workflow"}
)


def print_workflow(info: Workflow) -> None:
    """Prints the properties of a workflow."""
    say(f"workflow {info.id} {info.name}", BOLD)
    counts = ", ".join(f"{count} {state}" for state, count in info.counts.items() if count)
    facts: list[tuple[str, Any]] = [
        ("state", info.state),
        ("jobs", f"{progress_of(info)} ({counts})" if counts else progress_of(info)),
        ("priority", info.priority),
        ("key", info.key),
        ("namespace", info.namespace),
        ("run", info.run),
        ("fail fast", "yes" if info.fail_fast else None),
        ("labels", ", ".join(f"{n}={v}" for n, v in info.labels.items()) or None),
        ("template", info.template),
        ("parameters", msgspec.json.encode(info.parameters).decode() if info.parameters else None),
        ("outputs", msgspec.json.encode(info.outputs).decode() if info.outputs else None),
        ("submitted by", info.submitted_by),
        ("created", info.created_at),
        ("finished", info.finished_at),
        ("reason", info.reason),
    ]
    print_table(("", ""), [(name, value) for name, value in facts if value is not None], "")


def print_workflows(found: Sequence[Workflow]) -> None:
    """Prints workflows, one on each line."""
    now = RealClock().now_ms()
    ages = [rough_age(now - parse_moment(w.created_at, "created")) for w in found]
    rows = [
        (w.id, w.state, w.name, progress_of(w), age, w.priority, w.created_at, w.finished_at,
         w.reason)
        for w, age in zip(found, ages, strict=True)
    ]  # fmt: skip
    columns = (
        "id", "state", "workflow", "jobs", "age", "priority", "created", "finished", "reason"
    )  # fmt: skip
    print_table(columns, rows, "no workflows", _ONE_LINE)


def progress_of(info: Workflow) -> str:
    """Returns how many of its jobs have ended: 3/10."""
    return f"{ended_jobs(info)}/{info.jobs}"


def ended_jobs(info: Workflow) -> int:
    """Counts the jobs that have ended."""
    return sum(info.counts.get(state, 0) for state in ENDED)


def remark_on(job: Job) -> str | None:
    """Returns a remark on a job, beside its state."""
    if job.superseded_by:
        return f"superseded by {job.superseded_by}"
    if job.state == "blocked" and job.unblock == "manual":
        return f"needs `windlass unblock {job.id}`"
    if job.allow_failure and job.state in FAILURES:
        return f"allowed to fail: {job.reason}" if job.reason else "allowed to fail"
    return job.reason


def jobs_of(client: Client, number: int, limit: int | None = None) -> list[Job]:
    """Returns a workflow's jobs in submission order.

    With a limit, those that failed or run come before newer ones.
    """
    if limit is None:
        found = client.workflow(number).jobs()
    else:
        found = client.jobs(limit, workflow=number, state=["failed", "rejected", "running"])
        known = {job.id for job in found}
        newest = client.jobs(limit, workflow=number) if len(found) < limit else []
        found = [*found, *(job for job in newest if job.id not in known)][:limit]
    return sorted(found, key=lambda job: job.id)
