"""Runs `shell` jobs: a program with its arguments, in a process group of its own."""

import signal
from typing import Any

from windlass.domain.tasks.shell import Input, ShellArgs, cpu_seconds, memory_bytes, read_args
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_duration, format_size
from windlass.ports.executor import Exit, JobContext, Limits, Result


class ShellExecutor:
    """Implements `Executor`."""

    task = "shell"

    async def run(self, context: JobContext) -> Result:
        """Places the inputs, runs the program and keeps its artifacts."""
        args = read_args(context.args)
        for index, item in enumerate(args.inputs):
            await _place(context, item, f"args.inputs[{index}]")
        limits = _limits(args)
        process = await context.spawn(
            args.argv,
            env=args.env,
            stdin=None if args.stdin is None else args.stdin.encode(),
            limits=limits,
        )
        ended = await process.wait()
        if args.artifacts and not context.stopping.is_set():
            await context.upload(args.artifacts)
        return judge(ended, limits)

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


async def _place(context: JobContext, item: Input, field: str) -> None:
    job: Any = item.job
    artifact: Any = item.artifact
    if isinstance(artifact, dict):
        job, artifact = artifact.get("job"), artifact.get("artifact")
    if not isinstance(job, int) or not isinstance(artifact, str):
        raise InvalidInput(field, "an artifact of a job, looked up when assigned", item.artifact)
    await context.fetch(job, artifact, item.path or artifact)


def _limits(args: ShellArgs) -> Limits | None:
    if args.memory is None and args.cpu_time is None:
        return None
    return Limits(memory_bytes(args), cpu_seconds(args))


def judge(ended: Exit, limits: Limits | None) -> Result:
    """Returns what the end of a process means for its job."""
    if ended.code == 0:
        return Result(exit_code=0)
    if ended.out_of_memory:
        allowed = limits.memory_bytes if limits else 0
        of_what = f"its limit of {format_size(allowed)}" if allowed else "the machine's"
        message = f"out of memory: the program used more than {of_what}"
        return Result(outcome="failed", failure="resource", exit_code=ended.code, message=message)
    if ended.code is not None:
        message = f"exit code {ended.code}"
        return Result(outcome="failed", failure="execution", exit_code=ended.code, message=message)
    if ended.signal == signal.SIGXCPU and limits is not None:
        message = f"CPU time over its limit of {format_duration(limits.cpu_seconds * 1000)}"
        return Result(outcome="failed", failure="resource", message=message)
    number = ended.signal or 0
    message = f"killed by {_name(number)}"
    return Result(outcome="failed", failure="execution", exit_code=128 + number, message=message)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
