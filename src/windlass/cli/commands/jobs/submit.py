"""`windlass submit` and `windlass run`."""

from typing import Any

import msgspec

from windlass.cli.commands.jobs.inside_job import add_children, agent_of
from windlass.cli.commands.jobs.job_array import array_of
from windlass.cli.commands.suggestions import STANDARD_QUEUES, warn_of_typos
from windlass.cli.options.connection import HERE, RECONNECT, Connection, WaitForServer
from windlass.cli.options.flags import Json, Quiet
from windlass.cli.options.job import COMMAND_TASK, PLAIN, JobOptions, named_by_flags
from windlass.cli.output.exit_codes import FAILED
from windlass.cli.output.job_view import show_timeout
from windlass.cli.output.live.waiting import follow_saying_why
from windlass.cli.output.text import DIM, RED, copy_log, print_json, say, warn
from windlass.client.blocking.handles import JobHandle
from windlass.client.handles import ENDS
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.values.errors import WindlassError
from windlass.tasks.local_files import refuse_files
from windlass.wire.jobs import Job

STOPPED = (FailureClass.TIMEOUT, FailureClass.WORKER_LOST, FailureClass.CANCELED)


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
    """Prints the default timeout to standard error for a job that sets none."""
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
