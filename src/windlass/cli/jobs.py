"""Commands about jobs."""

import sys
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter

from windlass.cli.output import FAILED, NOT_FOUND, console, print_json, print_table, say
from windlass.client.client import Client
from windlass.client.handles import ENDS
from windlass.domain.errors import InvalidInput
from windlass.wire.jobs import Job, JobRequest, PriorityReply, PriorityRequest, UnblockRequest
from windlass.wire.workers import Changed

Json = Annotated[bool, Parameter(name="--json", help="Print JSON for programs.")]
Many = Annotated[list[str] | None, Parameter(consume_multiple=False)]


def build_request(
    command: tuple[str, ...],
    *,
    task: str | None,
    args: str | None,
    target: str | None,
    queue: str,
    priority: str | None,
    requires: list[str] | None,
    resources: list[str] | None,
    after: list[str] | None,
    timeout: str | None,
    retries: int | None,
    key: str | None,
    label: list[str] | None,
    name: str | None,
) -> JobRequest:
    """The job that a command line describes."""
    if task is None and not command:
        raise InvalidInput("command", "a command after --, or --task with --args", "neither")
    if task is not None and command:
        raise InvalidInput("command", "either --task or a command after --", "both")
    return JobRequest(
        task=task or "shell",
        args=_arguments(args) if task is not None else {"argv": list(command)},
        name=name,
        target=target,
        queue=queue,
        priority=priority,
        requires=requires or [],
        resources=dict(_pair(text, "resources") for text in _split(resources)),
        after=[_number(text, "after") for text in after or ()],
        timeout=timeout,
        retries=retries,
        key=key,
        labels=dict(_pair(text, "label") for text in label or ()),
    )


def submit(
    *command: str,
    task: str | None = None,
    args: str | None = None,
    target: str | None = None,
    queue: str = "default",
    priority: str | None = None,
    requires: Many = None,
    resources: Many = None,
    after: Many = None,
    timeout: str | None = None,
    retries: int | None = None,
    key: str | None = None,
    label: Many = None,
    name: str | None = None,
    json: Json = False,
) -> None:
    """Submit a job and print its id.

    Parameters
    ----------
    command
        The program and its arguments, after `--`.
    task
        The kind of work, with its arguments in --args, instead of a command.
    args
        The arguments of the task as JSON.
    target
        The architecture the worker must have, such as arm64.
    queue
        live, default, batch or a queue of your own.
    priority
        high, medium, low or a number.
    requires
        What the worker must offer, such as 'memory>=4GiB'. May be given several times.
    resources
        What the job takes, such as cpus=2.
    after
        The id of a job that must complete first. May be given several times.
    timeout
        How long it may run: 90, 90s, 15m, 6h.
    retries
        How often it is tried again after a failure.
    key
        The same key names the same job, however often it is submitted.
    label
        name=value, for finding it again.
    name
        What to call it.
    """
    request = build_request(
        command, task=task, args=args, target=target, queue=queue, priority=priority,
        requires=requires, resources=resources, after=after, timeout=timeout, retries=retries,
        key=key, label=label, name=name,
    )  # fmt: skip
    with Client() as client:
        job = client.submit(request)
        if json:
            print_json(job.info())
        else:
            say(job.id)


def run(
    *command: str,
    task: str | None = None,
    args: str | None = None,
    target: str | None = None,
    queue: str = "default",
    priority: str | None = None,
    requires: Many = None,
    resources: Many = None,
    after: Many = None,
    timeout: str | None = None,
    retries: int | None = None,
    key: str | None = None,
    label: Many = None,
    name: str | None = None,
) -> None:
    """Submit a job, follow its log, and exit with its exit code.

    The options are those of `submit`.
    """
    request = build_request(
        command, task=task, args=args, target=target, queue=queue, priority=priority,
        requires=requires, resources=resources, after=after, timeout=timeout, retries=retries,
        key=key, label=label, name=name,
    )  # fmt: skip
    with Client() as client:
        job = client.submit(request)
        try:
            _copy(job.logs(follow=True))
            ended = job.wait()
        except KeyboardInterrupt:
            job.cancel("Interrupted")
            ended = job.wait()
    if ended.state != "completed":
        console.print(f"job {ended.id} {ended.state}: {ended.reason or ''}", style="red")
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
    dead: bool = False,
    limit: int = 50,
    json: Json = False,
) -> None:
    """List jobs, newest first.

    Parameters
    ----------
    state
        Only jobs in this state; words of other schedulers are understood too.
    dead
        The dead letters: jobs that failed for good, the quarantined ones among them.
    limit
        How many at most.
    """
    with Client() as client:
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
         j.created_at, j.reason)
        for j in jobs
    ]  # fmt: skip
    columns = ("id", "state", "job", "queue", "prio", "attempt", "worker", "created", "reason")
    print_table(columns, rows, "no jobs")


def show(job: int, *, json: Json = False) -> None:
    """Show one job with its attempts and transitions."""
    with Client() as client:
        info = client.job(job).info()
    if json:
        print_json(info)
        return
    _print_job(info)


def logs(job: int, *, follow: Annotated[bool, Parameter(name=["--follow", "-f"])] = False) -> None:
    """Print a job's log; with -f until it ends."""
    with Client() as client:
        _copy(client.job(job).logs(follow))


def cancel(*jobs: int, reason: str = "Canceled", json: Json = False) -> None:
    """Cancel jobs."""
    if not jobs:
        raise InvalidInput("jobs", "the ids of jobs", "none")
    with Client() as client:
        reply = client.cancel(jobs, reason)
    if json:
        print_json(reply)
    else:
        for done in reply.jobs:
            how = "now" if done.applied else "already"
            say(f"{done.id}: {how} {done.state}" if done.state else f"{done.id}: no such job")
    if any(done.state is None for done in reply.jobs):
        raise SystemExit(NOT_FOUND)


def retry(job: int, *, json: Json = False) -> None:
    """Retry an ended job: a new one takes its place. Prints the new id."""
    with Client() as client:
        new = client.job(job).retry()
        if json:
            print_json(new.info())
        else:
            say(new.id)


def unblock(job: int, *, reject: bool = False, reason: str = "Rejected") -> None:
    """Accept a job that waits for an operator, or reject it."""
    request = UnblockRequest(accept=not reject, reason=reason)
    path = f"/api/v1/jobs/{job}/unblock"
    with Client() as client:
        transport = client.asynchronous.transport
        done = client.run(transport.call("POST", path, Changed, request))
    say("done" if done.applied else "nothing to do")


def prioritize(job: int, *, adjustment: int, json: Json = False) -> None:
    """Set a job's priority adjustment and show what it comes to."""
    path = f"/api/v1/jobs/{job}/priority"
    with Client() as client:
        transport = client.asynchronous.transport
        request = PriorityRequest(adjustment=adjustment)
        done = client.run(transport.call("POST", path, PriorityReply, request))
    if json:
        print_json(done)
        return
    say(
        f"base {done.base}, adjustment {done.adjustment}, effective {done.effective}, "
        f"score {done.score:.2f}"
    )


def _print_job(job: Job) -> None:
    facts: list[tuple[str, Any]] = [
        ("state", job.state),
        ("task", job.task),
        ("args", msgspec.json.encode(job.args).decode()),
        ("queue", job.queue),
        ("priority", f"{job.priority.effective} ({job.priority.base}{job.priority.adjustment:+})"),
        ("worker", job.worker),
        ("reason", job.reason),
        ("exit code", job.exit_code),
        ("result", None if job.result is None else msgspec.json.encode(job.result).decode()),
        ("progress", job.progress),
        ("log", f"{job.log.state}, {job.log.bytes} bytes"),
        ("artifacts", ", ".join(a.name for a in job.artifacts) or None),
        ("superseded by", job.superseded_by),
        ("supersedes", job.supersedes),
    ]
    console.print(f"job {job.id} {job.name or ''}", style="bold")
    print_table(("", ""), [(name, value) for name, value in facts if value is not None], "")
    if job.attempts:
        print_table(
            ("attempt", "state", "worker", "started", "finished", "failure"),
            [
                (a.number, a.state, a.worker, a.started_at, a.finished_at,
                 f"{a.failure.kind}: {a.failure.message}" if a.failure else None)
                for a in job.attempts
            ],
            "",
        )  # fmt: skip
    rows = [(t.at, t.frm or "(new)", t.to, t.reason) for t in job.transitions]
    print_table(("at", "from", "to", "reason"), rows, "")


def _copy(chunks: Any) -> None:
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


def _code(job: Job) -> int:
    if job.state == "completed":
        return job.exit_code or 0
    return job.exit_code if job.state in ENDS and job.exit_code else FAILED


def _arguments(text: str | None) -> Any:
    if text is None:
        return None
    if text.startswith("@"):
        text = _file(Path(text[1:]))
    try:
        return msgspec.json.decode(text)
    except msgspec.MsgspecError as error:
        raise InvalidInput("args", "JSON", str(error)) from None


def _file(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput("args", "a readable file of JSON after @", str(error)) from None


def _split(texts: list[str] | None) -> list[str]:
    return [part for text in texts or () for part in text.split(",") if part]


def _pair(text: str, field: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInput(field, "name=value", text)
    return name, value


def _number(text: str, field: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput(field, "the id of a job", text)
    return int(text)
