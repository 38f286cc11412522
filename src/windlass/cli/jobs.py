"""Commands about jobs."""

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from windlass.cli.bulk import ANY, Selection, choose, edit_many
from windlass.cli.connection import HERE, Connection
from windlass.cli.inside_job import add_children, agent_of
from windlass.cli.job_array import array_of
from windlass.cli.job_options import PLAIN, JobOptions, Many, named_by_flags
from windlass.cli.job_view import expected, print_job
from windlass.cli.output import (
    FAILED,
    NOT_FOUND,
    Flag,
    Json,
    errors,
    print_change,
    print_json,
    print_table,
    say,
)
from windlass.client.handles import ENDS
from windlass.domain.values.quantities import format_size
from windlass.wire.files import ArtifactList
from windlass.wire.jobs import Job, PriorityReply, PriorityRequest, UnblockRequest
from windlass.wire.workers import Changed

JobId = Annotated[int, Parameter(help="The job's id.")]
OneJob = Annotated[int | None, Parameter(help="The job's id.")]


def submit(
    *command: str,
    count: int | None = None,
    job: JobOptions = PLAIN,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Submit a job and print its id.

    Inside of a job, and with no server named, it joins that job's workflow. There --key holds
    for the workflow, and --priority +1 is relative to the job's own.

    Parameters
    ----------
    command
        The program and its arguments, after `--`.
    count
        Submit so many, all or none; {index} in arguments, name and key is 0, 1, 2, …
        Prints an id a line.
    """
    request = job.request(command)
    agent = agent_of(at)
    if agent is not None:
        plain = msgspec.structs.replace(request, key=None)
        children = [plain] if count is None else array_of(plain, count)
        add_children(agent, children, request.key, json)
        return
    if count is not None:
        with named_by_flags(), at.client() as client:
            many = client.submit_many(array_of(request, count))
            if json:
                print_json([one.info() for one in many])
            else:
                say("\n".join(str(one.id) for one in many))
        return
    with named_by_flags(), at.client() as client:
        submitted = client.submit(request)
        if json:
            print_json(submitted.info())
        else:
            say(submitted.id)


def run(*command: str, job: JobOptions = PLAIN, at: Connection = HERE) -> None:
    """Submit a job, follow its log, and exit with its exit code.

    Parameters
    ----------
    command
        The program and its arguments, after `--`.
    """
    request = job.request(command)
    with named_by_flags(), at.client() as client:
        submitted = client.submit(request)
        try:
            _copy(submitted.logs(follow=True))
            ended = submitted.wait()
        except KeyboardInterrupt:
            submitted.cancel("Interrupted")
            ended = submitted.wait()
    if ended.state != "completed":
        said = f"job {ended.id} {ended.state}" + (f": {ended.reason}" if ended.reason else "")
        errors.print(said, style="red", markup=False, highlight=False, soft_wrap=True)
    raise SystemExit(_code(ended))


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
    limit: int = 50,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """List jobs, newest first.

    Parameters
    ----------
    state
        Only jobs in this state; words of other schedulers are understood too.
    queue
        Only jobs of this queue.
    task
        Only jobs of this task.
    name
        Only jobs with this name.
    label
        Only jobs with this label, name=value.
    workflow
        Only jobs of this workflow.
    namespace
        Only jobs of this namespace.
    submitted_by
        Only jobs that were submitted with the token of this name.
    dead
        The dead letters: jobs that failed for good, the quarantined ones among them.
    limit
        How many at most.
    """
    with at.client() as client:
        jobs = client.jobs(
            limit, state=state, queue=queue, task=task, name=name, label=label,
            workflow=workflow, namespace=namespace, submitted_by=submitted_by,
            dead="true" if dead else None,
        )  # fmt: skip
    if json:
        print_json(jobs)
        return
    rows = [
        (j.id, j.state, j.name or j.task, j.queue, j.priority.effective, j.attempt, j.worker,
         j.created_at, expected(j), j.reason)
        for j in jobs
    ]  # fmt: skip
    columns = ("id", "state", "job", "queue", "prio", "attempt", "worker", "created", "expected",
               "reason")  # fmt: skip
    print_table(columns, rows, "no jobs")


def show(job: JobId, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show one job with its attempts and transitions."""
    with at.client() as client:
        info = client.job(job).info()
    if json:
        print_json(info)
        return
    print_job(info)


def logs(
    job: JobId,
    /,
    *,
    follow: Annotated[bool, Parameter(name=["--follow", "-f"], show_default=False)] = False,
    at: Connection = HERE,
) -> None:
    """Print a job's log.

    Parameters
    ----------
    follow
        Go on until the job ends.
    """
    with at.client() as client:
        _copy(client.job(job).logs(follow))


def artifacts(
    job: JobId,
    name: str | None = None,
    /,
    *,
    output: Path | None = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """List a job's artifacts, or fetch one of them.

    Parameters
    ----------
    name
        Fetch this one.
    output
        Where to keep it. Default: a file of its name here.
    """
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


def cancel(
    *jobs: int,
    reason: str = "Canceled",
    chosen: Selection = ANY,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Cancel jobs, by their ids or by a filter.

    Parameters
    ----------
    jobs
        Their ids.
    reason
        Why, as it is shown with them.
    """
    if choose(jobs, chosen):
        edit_many(at, "cancel", chosen, json, reason=reason)
        return
    with at.client() as client:
        reply = client.cancel(jobs, reason)
    if json:
        print_json(reply)
    else:
        for done in reply.jobs:
            how = "now" if done.applied else "already"
            say(f"{done.id}: {how} {done.state}" if done.state else f"{done.id}: no such job")
    if any(done.state is None for done in reply.jobs):
        raise SystemExit(NOT_FOUND)


def retry(
    job: OneJob = None,
    /,
    *,
    chosen: Selection = ANY,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Retry an ended job: a new one takes its place. Prints the new id.

    With a filter, all jobs that pass it; failed ones unless --state says otherwise.
    """
    if choose(_given(job), chosen) or job is None:
        edit_many(at, "retry", chosen, json)
        return
    with at.client() as client:
        new = client.job(job).retry()
        if json:
            print_json(new.info())
        else:
            say(new.id)


def unblock(
    job: JobId,
    /,
    *,
    reject: Flag = False,
    reason: str = "Rejected",
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Accept a job that waits for an operator, or reject it.

    Parameters
    ----------
    reject
        Abort it instead.
    reason
        Why it is rejected.
    """
    request = UnblockRequest(accept=not reject, reason=reason)
    print_change(at.call("POST", f"/api/v1/jobs/{job}/unblock", Changed, request), json)


def prioritize(
    job: OneJob = None,
    /,
    *,
    adjustment: int,
    chosen: Selection = ANY,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Set the priority adjustment of a job, or of all that pass a filter.

    Parameters
    ----------
    adjustment
        Added to the job's base priority; below 0 it comes later.
    """
    if choose(_given(job), chosen):
        edit_many(at, "prioritize", chosen, json, adjustment=adjustment)
        return
    request = PriorityRequest(adjustment=adjustment)
    done = at.call("POST", f"/api/v1/jobs/{job}/priority", PriorityReply, request)
    if json:
        print_json(done)
        return
    say(
        f"base {done.base}, adjustment {done.adjustment}, effective {done.effective}, "
        f"inherited {done.inherited:.2f}, score {done.score:.2f}"
    )


def _given(job: int | None) -> tuple[int, ...]:
    return () if job is None else (job,)


def _copy(chunks: Any) -> None:
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


def _code(job: Job) -> int:
    if job.state == "completed":
        return job.exit_code or 0
    return job.exit_code if job.state in ENDS and job.exit_code else FAILED
