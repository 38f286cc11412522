"""Runs `shell` jobs: a program with its arguments, in a process group of its own.

The program may write outputs to the file `$WINDLASS_OUTPUTS`.
"""

import os
import signal
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from windlass.domain.tasks.shell import Input, ShellArgs, cpu_seconds, memory_bytes, read_args
from windlass.domain.values.errors import InvalidInput
from windlass.executors.limits import hint, over_limit
from windlass.ports.executor import Exit, JobContext, Limits, Result

VARIABLE: Final = "WINDLASS_OUTPUTS"
FILE: Final = ".windlass-outputs"
MAX_BYTES: Final = 1 << 20


def with_outputs(result: Result, folder: Path, names: Sequence[str]) -> Result:
    """Returns the program's end with its outputs as the result; it failed if one is missing."""
    written = _read(folder / FILE)
    if isinstance(written, str):
        return _failed(written)
    missing = [name for name in names if name not in written]
    if missing:
        return _failed(f"the job did not write its output {missing[0]}: {missing[0]}=VALUE")
    found = {name: value for name, value in written.items() if name in names}
    body = msgspec.json.encode(found)
    return msgspec.structs.replace(result, result=found, size=len(body))


def _failed(problem: str) -> Result:
    message = f"{problem}, in the file ${VARIABLE}"
    return Result(outcome="failed", failure="execution", exit_code=0, message=message)


def _read(path: Path) -> dict[str, Any] | str:
    """Returns the outputs in a file that a job has made, or what is wrong with it."""
    try:
        # The job may have put anything there: we follow no link and wait for no pipe.
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return {}
    except OSError as error:
        return f"the outputs cannot be read ({error.strerror})"
    with os.fdopen(file, "rb") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return "the outputs are not a regular file"
        content = opened.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        return f"the outputs are longer than {MAX_BYTES} bytes"
    return _parse(content)


def _parse(content: bytes) -> dict[str, Any] | str:
    """Returns lines with NAME=VALUE, or one JSON object."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return "the outputs are not UTF-8 text"
    if text.lstrip().startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except msgspec.MsgspecError:
            return "the outputs are not a valid JSON object"
    found: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        name, sign, value = line.partition("=")
        if sign:
            found[name.strip()] = value
        elif line.strip():
            return f"line {number} of the outputs is not NAME=VALUE"
    return found


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
        code, message = ended.code, f"exit code {ended.code}{hint(ended)}"
    else:
        number = ended.signal or 0
        code, message = 128 + number, f"killed by {_name(number)}"
    return Result(
        outcome="failed", failure="execution", exit_code=code, message=message, quotes_log=True
    )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
