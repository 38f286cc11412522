"""A job as people read it: its properties, estimates, attempts and state changes."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from windlass.cli.output.tables import WHOLE, print_table
from windlass.cli.output.text import BOLD, say
from windlass.clock import RealClock
from windlass.domain.explain.explanation import Estimate
from windlass.domain.matching.functions import MISSING
from windlass.domain.matching.indices import show_indices
from windlass.domain.values.quantities import (
    counted,
    parse_moment,
    readable_duration,
    readable_size,
)
from windlass.messages.jobs import Job, LinkedJob, Priority, Reproduction, RunStatistics, StepInfo

# Options that have a row of their own, are part of one, or are in the title.
_ELSEWHERE: Final = frozenset(
    {"task", "args", "name", "queue", "priority", "namespace", "workflow", "labels", "key",
     "key_for", "submitted_by", "requires", "resources", "timeout", "idle_timeout", "not_before",
     "start_before", "finish_before", "after", "after_any", "retries", "retry_on", "no_retry_on",
     "backoff", "isolation"}
)  # fmt: skip


def print_job(job: Job, isolation: str | None = None) -> None:
    """Prints everything known about one job, and the isolation of its last attempt."""
    facts: list[tuple[str, Any]] = [
        ("state", job.state),
        ("task", job.task),
        ("args", msgspec.json.encode(job.args).decode()),
        ("queue", job.queue),
        ("priority", _priority(job.priority)),
        *_origin(job),
        *_demands(job),
        ("worker", job.worker),
        ("isolation", isolation or job.options.get("isolation")),
        ("holds", show_indices(job.indices) or None),
        ("starts", _estimate(job.estimated_start)),
        ("ends", _estimate(job.estimated_end) or _overdue(job)),
        ("not before", job.not_before if job.finished_at is None else None),
        ("start before", job.start_before),
        ("finish before", job.finish_before),
        ("reason", job.reason),
        ("retries", _retries(job)),
        ("exit code", job.exit_code),
        ("result", None if job.result is None else msgspec.json.encode(job.result).decode()),
        ("progress", show_progress(job.progress)),
        ("log", f"{job.log.state}, {readable_size(job.log.bytes)}"),
        ("artifacts", ", ".join(a.name for a in job.artifacts) or None),
        ("peak memory", None if job.peak_memory is None else readable_size(job.peak_memory)),
        ("typical duration", _usual(job.statistics)),
        ("suggestion", "; ".join(job.suggestions) or None),
        ("waits for", _linked(job.dependencies) or None),
        ("needed by", _linked(job.dependents, job.dependents_more) or None),
        ("superseded by", job.superseded_by),
        ("supersedes", job.supersedes),
        *_other_options(job),
    ]
    say(f"job {job.id} {job.name or ''}".rstrip(), BOLD)
    print_table(("", ""), [(name, value) for name, value in facts if value is not None], "")
    if job.attempts:
        say("")
        print_table(
            ("attempt", "state", "worker", "started", "finished", "failure"),
            [
                ("" if a.handed_back else a.number,
                 "handed back" if a.handed_back else a.state, a.worker, a.started_at, a.finished_at,
                 f"{a.failure.kind}: {a.failure.message}" if a.failure else None)
                for a in job.attempts
            ],
            "",
            WHOLE,
        )  # fmt: skip
    if job.steps:
        say("")
        print_table(
            ("step", "kind", "state", "attempt", "began", "ended", "until"),
            [(_step(s), s.kind, s.state, s.attempt, s.asked_at, s.ended_at, s.until)
             for s in job.steps],
            "",
        )  # fmt: skip
    say("")
    rows = [(t.at, t.source or "(new)", t.to, t.reason, t.actor) for t in job.transitions]
    print_table(("at", "from", "to", "reason", "by"), rows, "", WHOLE)


def _origin(job: Job) -> list[tuple[str, Any]]:
    """Returns where a job belongs, and its labels and key."""
    window = job.key_for
    if isinstance(window, int | float):
        window = f"for {readable_duration(round(window * 1000))}"
    kept = "" if window is None else f" (kept {window})"
    return [
        ("namespace", job.namespace),
        ("workflow", job.workflow),
        ("labels", ", ".join(f"{name}={value}" for name, value in job.labels.items()) or None),
        ("key", None if job.key is None else f"{job.key}{kept}"),
        ("submitted by", job.submitted_by),
    ]


def _demands(job: Job) -> list[tuple[str, Any]]:
    """Returns what a job needs of its worker, and how long it may run."""
    own = [clause for clause in job.requires if not clause.startswith(MISSING)]
    amounts = ", ".join(f"{name}={amount}" for name, amount in job.resources.items())
    idle = job.idle_timeout
    return [
        ("requires", ", ".join(own) or None),
        ("resources", amounts or None),
        ("timeout", show_timeout(job)),
        ("idle timeout", None if idle is None else readable_duration(round(idle * 1000))),
    ]


def _other_options(job: Job) -> list[tuple[str, str]]:
    """Returns the options that were set and that no other row is about."""
    others = ((name, text) for name, text in job.options.items() if name not in _ELSEWHERE)
    return [(name.replace("_", " "), text) for name, text in others]


def show_timeout(job: Job) -> str | None:
    """Shows how long a job may run and who says so; None if only its idle timeout ends it."""
    if job.timeout is None:
        return None if job.idle_timeout is not None and job.timeout_from is None else "none"
    length = readable_duration(round(job.timeout * 1000))
    if job.timeout_from == "default":
        return f"{length}, the default; --timeout to change"
    if job.timeout_from == "queue":
        return f"{length}, as queue {job.queue} says; --timeout to change"
    return f"{length}, by the length of its media" if job.timeout_from == "media" else length


def print_reproduction(found: Reproduction) -> None:
    """Prints how to run a job again."""
    parts = [
        ("submit it again", [found.command]),
        ("in Python", found.python.splitlines()),
        ("call its function here, without a queue", [found.call] if found.call else []),
        ("what the worker ran", [found.program] if found.program else []),
        ("get the files that it read", found.fetch),
        ("variables", [f"{name}={value}" for name, value in found.env.items()]),
        ("secrets, which only workers know", found.secrets),
        ("isolation", [f"{found.isolation}, on worker {found.worker}"] if found.isolation else []),
    ]
    for title, lines in parts:
        if lines:
            say(f"{title}:", BOLD)
            for line in lines:
                say(f"  {line}")


def _step(step: StepInfo) -> str:
    """Shows a step by its key, and what it asked or waited for."""
    about = step.question or (f"signal {step.name}" if step.name else "")
    by = f", by {step.actor}" if step.actor else ""
    return f"{step.key} ({about}{by})" if about else step.key


def show_progress(progress: Any) -> Any:
    """Shows how far a job is: of a total and with a text where the job gives them."""
    if not isinstance(progress, dict) or progress.keys() != {"done", "total", "text"}:
        return progress
    done, total, text = progress["done"], progress["total"], progress["text"]
    shown = f"{done}"
    if isinstance(total, int | float) and isinstance(done, int | float):
        share = f" ({100 * done / total:.0f} %)" if total else ""
        shown = f"{done} of {total}{share}"
    return f"{shown}, {text}" if text else shown


def _linked(jobs: Sequence[LinkedJob], more: bool = False) -> str:
    """Shows jobs that it waits for, or that wait for it, with what became of them."""
    shown = [
        f"{linked.job} ({linked.state}"
        + (f", retried as {linked.superseded_by})" if linked.superseded_by else ")")
        for linked in jobs
    ]
    return ", ".join([*shown, "and more"] if more else shown)


def _retries(job: Job) -> str | None:
    """Shows how many retries are used, after what, and how long it waits; None by default."""
    parts = [f"{job.retry_count} of {job.max_retries} used"]
    if job.lost_count:
        parts.append(f"lost {counted(job.lost_count, 'attempt')}")
    if job.retry_on:
        parts.append(f"on {', '.join(job.retry_on)}")
    if job.no_retry_on:
        parts.append(f"not on {', '.join(job.no_retry_on)}")
    if job.backoff is not None:
        parts.append(f"backoff {job.options['backoff']}")
    asked = job.retries is not None or job.retry_count
    return "; ".join(parts) if asked or len(parts) > 1 else None


def _usual(known: RunStatistics | None) -> str | None:
    """Shows how long jobs like this one take."""
    if known is None:
        return None
    half, most = (readable_duration(round(part * 1000)) for part in (known.p50, known.p90))
    return f"50 % within {half}, 90 % within {most} ({known.count} × {known.kind} completed)"


def _overdue(job: Job) -> str | None:
    """Says that a job runs longer than such jobs do."""
    if job.overdue is None:
        return None
    past = readable_duration(max(round(job.overdue), 1) * 1_000)
    return f"unknown: it runs {past} longer than 90 % of such jobs"


def _estimate(estimate: Estimate | None) -> str | None:
    """Shows an estimated time and its range."""
    if estimate is None:
        return None
    moments = (estimate.likely, estimate.earliest, estimate.latest)
    likely, first, last = (f"{moment[:19]}Z" for moment in moments)
    around = f"about {likely[:10]} {likely[11:]}"
    return around if first == last else f"{around} ({first[11:]} to {last[11:]})"


def expected(job: Job) -> str | None:
    """Returns when it will likely start, or end if it has started; None if that is now."""
    if job.overdue is not None:
        return f"{readable_duration(max(round(job.overdue), 1) * 1_000)} past its estimate"
    estimate = job.estimated_start or job.estimated_end
    if estimate is None:
        return None
    left = parse_moment(estimate.likely, "estimate") - RealClock().now_ms()
    if left < 1_000:
        return None
    rounded = left // 60_000 * 60_000 if left > 120_000 else left // 1_000 * 1_000
    return f"{'start' if job.estimated_start else 'end'} in {readable_duration(rounded)}"


def _priority(priority: Priority) -> str:
    text = f"{priority.effective} ({priority.base}{priority.adjustment:+})"
    if priority.inherited:
        text += f", raised by {priority.inherited:.2f} for jobs that wait for it"
    return text
