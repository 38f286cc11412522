"""Commands that show jobs, `jobs`, `show` and `artifacts`; also `jobs delete` and `names`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cyclopts import App

from windlass.cli.options.connection import HERE, RECONNECT, Connection
from windlass.cli.options.flags import Flag, JobId, Json, Limit, Many, Misused
from windlass.cli.output.tables import print_rows, print_table
from windlass.cli.output.text import DIM, print_answer, print_json, say
from windlass.domain.values.errors import InvalidInput
from windlass.messages.files import NameInfo, NameList, NameRequest
from windlass.messages.jobs import DeletedJob, Job, JobList, Reproduction

jobs = App(name="jobs", help="List jobs, newest first, and delete ended ones.")
names = App(name="names", help="Set and list names for artifacts, which `$lookup` finds.")


@jobs.default
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
    columns: str | None = None,
    watch: Flag = False,
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
    columns
        Which columns to show, comma-separated: id, state, name, command, queue, duration, age,
        priority, attempt, worker, expected, progress, reason, task, namespace, workflow, labels,
        key, by, created, started, finished, exit. Default: as many of the first thirteen
        as fit the terminal.
    watch
        Redraw the list every second until Ctrl-C; without a terminal, draw it once.
    """
    filters: dict[str, Any] = {
        "state": state, "queue": queue, "task": task, "name": name, "label": label,
        "workflow": workflow, "namespace": namespace, "submitted_by": submitted_by,
        "dead": "true" if dead else None,
    }  # fmt: skip
    estimates = _shows_estimates(columns)
    if watch:
        _watch(at, filters | {"estimates": estimates}, limit, columns)
        return
    filters["estimates"] = "true" if estimates or json else None
    found = at.listed("/api/v1/jobs", JobList, lambda page: page.jobs, limit, **filters)
    if json:
        print_json(found)
    elif found:
        _print_jobs(found, columns)
    else:
        from windlass.cli.commands.suggestions import warn_of_typos

        say("no jobs", DIM)
        warn_of_typos(at, queue, task)


def _shows_estimates(columns: str | None) -> bool:
    """Returns whether a column shows them; refuses a wrong one, even if there are no jobs."""
    if columns is None:
        return True
    from windlass.cli.output.job_table import read_columns

    return "expected" in read_columns(columns)


def _print_jobs(jobs: list[Job], columns: str | None) -> None:
    from windlass.cli.output.job_table import print_jobs, read_columns

    print_jobs(jobs, read_columns(columns))


def _watch(at: Connection, filters: Mapping[str, Any], limit: int, columns: str | None) -> None:
    from windlass.cli.output.job_table import layout_of, read_columns, table_of
    from windlass.cli.output.refresh import show_live

    given = {name: value for name, value in filters.items() if value is not None}
    with at.client(RECONNECT) as client:
        shown = read_columns(columns)
        layout = layout_of(shown)
        show_live(
            client,
            lambda room, _: table_of(client.jobs(limit, **given), shown, room, layout),
        )


@jobs.command(name="delete", usage="Usage: windlass jobs delete [OPTIONS] IDS...")
def delete_jobs(*ids: int, at: Connection = HERE, json: Json = False) -> None:
    """Delete ended jobs with their logs and artifacts.

    Parameters
    ----------
    ids
        The ids of the jobs.
    """
    from windlass.cli.output.exit_codes import NOT_FOUND, REFUSED

    if not ids:
        raise Misused("nothing to delete: give the ids of jobs")
    with at.client() as client:
        reply = client.delete(ids)
    if json:
        print_json(reply)
    else:
        for done in reply.jobs:
            say(f"{done.id}: {_deleted(done)}")
    if any(done.refusal is not None for done in reply.jobs):
        raise SystemExit(REFUSED)
    if not all(done.applied for done in reply.jobs):
        raise SystemExit(NOT_FOUND)


def _deleted(done: DeletedJob) -> str:
    if done.refusal is not None:
        return f"not deleted: {done.refusal}"
    return "deleted" if done.applied else "does not exist"


def show(
    job: JobId, /, *, reproduce: Flag = False, at: Connection = HERE, json: Json = False
) -> None:
    """Show a job with its attempts and state changes.

    Parameters
    ----------
    reproduce
        Show instead how to run it again: as a command, in Python, and what the worker started.
    """
    if reproduce:
        _reproduce(at, job, json)
        return
    from windlass.cli.output.job_view import print_job

    with at.client() as client:
        info = client.job(job).info()
    if json:
        print_json(info)
        return
    # Lists and waits show jobs too, and should not have to read their workers for this.
    ran = at.call("GET", f"/api/v1/jobs/{job}/reproduce", Reproduction) if info.worker else None
    print_job(info, None if ran is None else ran.isolation)


def _reproduce(at: Connection, job: int, json: bool) -> None:
    from windlass.cli.output.job_view import print_reproduction

    found = at.call("GET", f"/api/v1/jobs/{job}/reproduce", Reproduction)
    if json:
        print_json(found)
    else:
        print_reproduction(found)


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
    from windlass.domain.values.quantities import readable_size
    from windlass.messages.files import ArtifactList

    if name is None:
        found = at.call("GET", f"/api/v1/jobs/{job}/artifacts", ArtifactList)
        if json:
            print_json(found)
        else:
            rows = [(a.name, readable_size(a.size), a.sha256) for a in found.artifacts]
            print_table(("name", "size", "sha256"), rows, "no artifacts")
        return
    path = output or Path(Path(name).name)
    with at.client() as client:
        client.job(job).download(name, path)
    say(path)


@names.command(name="list")
@names.default
def list_names(*, at: Connection = HERE, json: Json = False) -> None:
    """List names and the artifacts they refer to."""
    found = at.call("GET", "/api/v1/names", NameList).names
    rows = [(n.name, n.job, n.artifact, n.sha256[:12], n.set_at) for n in found]
    print_rows(found, json, ("name", "job", "artifact", "sha256", "set"), rows, "no names")


@names.command(name="set")
def set_name(name: str, artifact: str, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Point a name to an artifact.

    Parameters
    ----------
    name
        The name that jobs look up, such as environments/bookworm.
    artifact
        The artifact as JOB/NAME, such as 12/rootfs.tar.
    """
    job, separator, file = artifact.partition("/")
    if not separator or not job.isdigit() or not file:
        raise InvalidInput("artifact", "JOB/NAME, such as 12/rootfs.tar", artifact)
    request = NameRequest(job=int(job), artifact=file)
    made = at.call("PUT", f"/api/v1/names/{name}", NameInfo, request)
    print_answer(made, json, f"{made.name} → {made.job}/{made.artifact}")
