"""Commands that show jobs: `jobs`, `show`, `logs` and `artifacts`."""

from pathlib import Path
from typing import Any, Final

from windlass.cli.options.connection import HERE, RECONNECT, Connection, WaitForServer
from windlass.cli.options.flags import Flag, Follow, JobId, Json, Limit, Many
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import DIM, copy_log, print_json, say
from windlass.wire.jobs import Job, JobList

PAGE: Final = 1_000


def list_jobs(
    *,
    state: Many = None,
    queue: str | None = None,
    task: str | None = None,
    name: str | None = None,
    label: Many = None,
    workflow: int | None = None,
    namespace: str | None = None,
    submitted_by: str | None = None,
    dead: Flag = False,
    limit: Limit = 50,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """List jobs, newest first.

    Parameters
    ----------
    state
        Only jobs in this state; other schedulers' names for states work too. Repeatable.
    queue
        Only jobs in this queue.
    task
        Only jobs of this task.
    name
        Only jobs with this name.
    label
        Only jobs with this label, name=value. Repeatable: all must match.
    workflow
        Only jobs in this workflow.
    namespace
        Only jobs in this namespace.
    submitted_by
        Only jobs submitted with the token of this name.
    dead
        Only dead letters: jobs that failed permanently, including quarantined ones.
    limit
        The maximum number of jobs to show.
    """
    filters: dict[str, Any] = {
        "state": state, "queue": queue, "task": task, "name": name, "label": label,
        "workflow": workflow, "namespace": namespace, "submitted_by": submitted_by,
        "dead": "true" if dead else None,
    }  # fmt: skip
    jobs: list[Job] = []
    after: str | None = None
    while len(jobs) < limit:
        size = min(limit - len(jobs), PAGE)
        page = at.call("GET", "/api/v1/jobs", JobList, **filters, limit=size, after=after)
        jobs += page.jobs
        after = page.next
        if after is None:
            break
    if json:
        print_json(jobs)
    elif jobs:
        _print_jobs(jobs)
    else:
        from windlass.cli.commands.suggestions import warn_of_typos

        say("no jobs", DIM)
        warn_of_typos(at, queue, task)


def _print_jobs(jobs: list[Job]) -> None:
    from windlass.cli.output.job_view import expected

    rows = [
        (j.id, j.state, j.name or j.task, j.queue, j.priority.effective, j.attempt, j.worker,
         j.created_at, expected(j), j.reason)
        for j in jobs
    ]  # fmt: skip
    columns = ("id", "state", "job", "queue", "priority", "attempt", "worker", "created",
               "expected", "reason")  # fmt: skip
    print_table(columns, rows, "")


def show(job: JobId, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show a job with its attempts and state changes."""
    from windlass.cli.output.job_view import print_job

    with at.client() as client:
        info = client.job(job).info()
    if json:
        print_json(info)
    else:
        print_job(info)


def logs(
    job: JobId,
    /,
    *,
    follow: Follow = False,
    raw: Flag = False,
    reconnect: WaitForServer = RECONNECT,
    at: Connection = HERE,
) -> None:
    """Print a job's log. Control characters are shown as \\x1b and the like; colours stay.

    Parameters
    ----------
    follow
        Keep printing until the job ends.
    raw
        Print the log byte for byte, into a pipe or file.
    """
    with at.client(reconnect) as client:
        copy_log(client.job(job).logs(follow), raw)


def artifacts(
    job: JobId,
    name: str | None = None,
    /,
    *,
    output: Path | None = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """List a job's artifacts, or download one.

    Parameters
    ----------
    name
        The artifact to download.
    output
        Where to save it. Default: a file with the artifact's name in the current directory.
    """
    from windlass.domain.values.quantities import format_size
    from windlass.wire.files import ArtifactList

    if name is None:
        found = at.call("GET", f"/api/v1/jobs/{job}/artifacts", ArtifactList)
        if json:
            print_json(found)
        else:
            rows = [(a.name, format_size(a.size), a.sha256) for a in found.artifacts]
            print_table(("name", "size", "sha256"), rows, "no artifacts")
        return
    path = output or Path(Path(name).name)
    with at.client() as client:
        client.job(job).download(name, path)
    say(path)
