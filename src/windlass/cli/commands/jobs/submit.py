"""`windlass submit` and `windlass run`.

Inside a job, what they submit joins the job's own workflow.
"""

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import nullcontext, suppress
from typing import Any, Final

import msgspec

from windlass.cli.commands.suggestions import STANDARD_QUEUES, warn_of_typos
from windlass.cli.options.connection import HERE, RECONNECT, Connection, WaitForServer
from windlass.cli.options.flags import Json, Quiet
from windlass.cli.options.job import COMMAND_TASK, PLAIN, JobOptions, named_by_flags
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.job_view import show_timeout
from windlass.cli.output.text import DIM, RED, copy_log, print_json, say, warn
from windlass.client.blocking.handles import JobHandle
from windlass.client.blocking.in_thread import next_of
from windlass.client.handles import ENDS, AsyncJob
from windlass.client.own_agent import OwnAgent, own_agent
from windlass.clock import RealClock
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.messages.jobs import Job
from windlass.tasks.local_files import refuse_files
from windlass.tasks.submitting import about_one

STOPPED = (FailureClass.TIMEOUT, FailureClass.WORKER_LOST, FailureClass.CANCELED)
MAX_JOBS: Final = 100_000
INDEX: Final = "{index}"
FIRST_MS: Final = 500  # a job that starts at once gives no reason
MAX_MS: Final = 4_000
WAITING: Final = frozenset({"blocked", "queued", "retrying", "suspended"})
_DURATION: Final = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|min|h|d)\b(?: \d+ (?:s|min|h)\b)?")


def submit(
    *command: str,
    count: int | None = None,
    job: JobOptions = PLAIN,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Submit a job and print its id.

    Inside a job, unless you name a server, the new job joins that job's workflow. There, --key
    must be unique within the workflow, and --priority +1 is relative to the running job's.

    Parameters
    ----------
    command
        The program and its arguments, after `--`.
    count
        Submit this many jobs, all or none. {index} in arguments, name and key becomes 0, 1, 2, …
        Prints one id per line.
    """
    request = job.request(command)
    agent = agent_of(at)
    if agent is not None:
        refuse_files([request])
        plain = msgspec.structs.replace(request, key=None)
        children = [plain] if count is None else array_of(plain, count)
        with named_by_flags(bool(command)):
            add_children(agent, children, request.key, json)
        return
    _check_names(request, at)
    with named_by_flags(bool(command)), at.client() as client:
        if count is not None:
            many = client.submit_many(array_of(request, count))
            if json:
                print_json([one.info() for one in many])
            else:
                say("\n".join(str(one.id) for one in many))
                _tell_default(request, many[0])
            return
        submitted = client.submit(request)
        if json:
            print_json(submitted.info())
        else:
            say(submitted.id)
            _tell_default(request, submitted)


def run(
    *command: str,
    quiet: Quiet = False,
    job: JobOptions = PLAIN,
    reconnect: WaitForServer = RECONNECT,
    at: Connection = HERE,
) -> None:
    """Submit a job, follow its log, and exit with its exit code.

    The job's id and, while it waits, the reason go to the standard error.

    Parameters
    ----------
    command
        The program and its arguments, after `--`.
    quiet
        Print the job's log only, and an error if it fails.
    """
    request = job.request(command)
    _check_names(request, at)
    with named_by_flags(bool(command)), at.client(reconnect) as client:
        submitted = client.submit(request)
        if not quiet:
            warn(f"job {submitted.id}", DIM)
            _tell_default(request, submitted)
        try:
            copy_log(submitted.logs(follow=True) if quiet else follow_saying_why(submitted))
            ended = submitted.wait()
        except KeyboardInterrupt:
            submitted.cancel("Interrupted")
            ended = submitted.wait()
    if ended.state != "completed":
        reason = f": {ended.reason}" if ended.reason else ""
        warn(f"job {ended.id} {ended.state}{reason}", RED)
    raise SystemExit(_exit_code_of(ended))


def _tell_default(request: JobSpec, submitted: JobHandle[Any]) -> None:
    """Prints the default timeout to standard error if the job sets none."""
    if request.timeout is not None:
        return
    try:
        job = submitted.info()
    except WindlassError:
        return  # It is submitted, and its id is printed.
    if job.timeout_from in ("default", "queue"):
        warn(f"timeout: {show_timeout(job)}, or --timeout none", DIM)


def _check_names(job: JobSpec, at: Connection) -> None:
    """Asks the server for known names only if a job has an unusual queue or a task."""
    queue = None if job.queue in STANDARD_QUEUES else job.queue
    task = None if job.task == COMMAND_TASK else job.task
    if queue is not None or task is not None:
        warn_of_typos(at, queue, task)


def _exit_code_of(job: Job) -> int:
    if job.state == "completed":
        return job.exit_code or 0
    if job.failure is not None and job.failure.kind in STOPPED:
        return FAILED  # its process was told to end, whatever code it left
    return job.exit_code if job.state in ENDS and job.exit_code else FAILED


def array_of(request: JobSpec, count: int) -> list[JobSpec]:
    """Returns `count` jobs, each with its number in place of `{index}`."""
    if not 1 <= count <= MAX_JOBS:
        raise InvalidInput("--count", f"from 1 to {MAX_JOBS:,}", count)
    if request.key is not None and INDEX not in request.key:
        raise InvalidInput("--key", f"different for each job: put {INDEX} in it", request.key)
    return [_numbered(request, index) for index in range(count)]


def _numbered(request: JobSpec, index: int) -> JobSpec:
    number = str(index)
    name, key = request.name, request.key
    if name is not None:
        name = name.replace(INDEX, number) if INDEX in name else f"{name}[{number}]"
    return msgspec.structs.replace(
        request,
        args=_filled(request.args, number),
        name=name,
        key=None if key is None else key.replace(INDEX, number),
    )


def _filled(value: Any, number: str) -> Any:
    if isinstance(value, str):
        return value.replace(INDEX, number)
    if isinstance(value, list):
        return [_filled(item, number) for item in value]
    if isinstance(value, dict):
        return {key: _filled(item, number) for key, item in value.items()}
    return value


def agent_of(at: Connection) -> OwnAgent | None:
    """Returns the agent of the job that runs this command, unless a server is named."""
    named = at.server or at.data or os.environ.get("WINDLASS_SERVER")
    return None if named or os.environ.get("WINDLASS_DATA") else own_agent()


def add_children(agent: OwnAgent, jobs: Sequence[JobSpec], key: str | None, json: bool) -> None:
    """Adds jobs to the workflow of the job that runs this command, and prints their ids."""
    for job in jobs:
        if job.workflow is not None:
            expected = "unset inside a job, which adds to its own workflow (or pass --server)"
            raise InvalidInput("workflow", expected, job.workflow)
    with about_one(jobs[0]) if len(jobs) == 1 else nullcontext():
        reply = asyncio.run(agent.submit(jobs, key))
    if json:
        print_json(reply)
    else:
        say("\n".join(map(str, reply.ids)))


def follow_saying_why(job: JobHandle[Any]) -> Iterator[bytes]:
    """Yields the job's log until it ends, and says each new reason why it waits."""
    stream = _with_reasons(job.asynchronous)
    try:
        while (chunk := job.client.run(next_of(stream))) is not None:
            yield chunk
    finally:
        job.client.run(_close(stream))


async def _with_reasons(job: AsyncJob[Any]) -> AsyncIterator[bytes]:
    saying = asyncio.create_task(_say_why(job))
    try:
        async for chunk in job.logs(follow=True):
            yield chunk
    finally:
        saying.cancel()


async def _close(stream: AsyncIterator[bytes]) -> None:
    with suppress(RuntimeError):  # It was interrupted while running, and ends by itself.
        await stream.aclose()  # type: ignore[attr-defined]


async def _say_why(job: AsyncJob[Any]) -> None:
    clock, pause, said = RealClock(), FIRST_MS, ""
    while True:
        await clock.sleep_ms(pause)
        pause = min(2 * pause, MAX_MS)
        with suppress(WindlassError):  # Whoever follows the log says that the server is away.
            found = await job.explain()
            reason = _without_durations(found.summary)
            if found.state in WAITING and reason != said:
                said = reason
                warn(f"job {job.id} {found.summary}", DIM)


def _without_durations(text: str) -> str:
    """Returns a reason without its durations, which change while it stays the same."""
    return _DURATION.sub("…", text)
