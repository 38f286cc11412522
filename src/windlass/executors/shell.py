"""Runs `shell` jobs: a program with its arguments, in a process group of its own."""

import signal
from typing import Any

from windlass.domain.tasks.shell import Input, ShellArgs, cpu_seconds, memory_bytes, read_args
from windlass.domain.values.errors import InvalidInput
from windlass.executors.limits import hint, over_limit
from windlass.executors.outputs import FILE, VARIABLE, with_outputs
from windlass.ports.executor import Exit, JobContext, Limits, Result


class ShellExecutor:
    """Implements `Executor`."""

    task = "shell"

    async def run(self, context: JobContext) -> Result:
        """Places the inputs, runs the program and keeps its artifacts."""
        args = read_args(context.args)
        for index, item in enumerate(args.inputs):
            if item.file is None:
                await _place(context, item, f"args.inputs[{index}]")
        limits = _limits(args)
        process = await context.spawn(
            args.argv,
            env=_variables(context, args),
            stdin=None if args.stdin is None else args.stdin.encode(),
            limits=limits,
        )
        ended = await process.wait()
        if args.artifacts and not context.stopping.is_set():
            await context.upload(args.artifacts)
        result = judge(ended)
        if args.outputs and result.outcome == "completed":
            return with_outputs(result, context.scratch, args.outputs)
        return result

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


def _variables(context: JobContext, args: ShellArgs) -> dict[str, str]:
    """Returns the job's variables; one of them names the file for its outputs."""
    if not args.outputs:
        return args.env
    return {**args.env, VARIABLE: str(context.scratch / FILE)}


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


def judge(ended: Exit) -> Result:
    """Returns what the end of a process means for its job."""
    if ended.code == 0:
        return Result(exit_code=0)
    passed = over_limit(ended)
    if passed is not None:
        return passed
    if ended.code is not None:
        message = f"exit code {ended.code}{hint(ended)}"
        return Result(outcome="failed", failure="execution", exit_code=ended.code, message=message)
    number = ended.signal or 0
    message = f"killed by {_name(number)}"
    return Result(outcome="failed", failure="execution", exit_code=128 + number, message=message)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
