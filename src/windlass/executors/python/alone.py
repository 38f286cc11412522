"""Python functions in processes of their own: for jobs that are isolated, or have limits."""

import asyncio
import os
import socket
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Final

from msgspec.structs import replace

from windlass.domain.lifecycle.failures import FailureClass
from windlass.executors.limits import hint
from windlass.executors.python.code_store import CodeStore
from windlass.executors.python.job import STOPPED, Job, died_result, done_result, failed_result
from windlass.executors.python.messages import (
    ALONE,
    Ask,
    Done,
    Failed,
    Frames,
    Report,
    decode_reports,
    frame,
)
from windlass.executors.python.side_channel import side_channel
from windlass.ports.executor import JobContext, Limits, Result

READ: Final = 65_536
COMMAND: Final = ("-m", "windlass.executors.python.child", ALONE)
PATH: Final = "PYTHONPATH"


class AnswerWriter:
    """Sends answers to a function's process."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    def send(self, order: object) -> None:
        """Sends a message."""
        if not self._writer.is_closing():
            self._writer.write(frame([order]))


async def run_alone(
    job: Job, limits: Limits | None, env: Mapping[str, str], code: CodeStore | None
) -> Result:
    """Runs one call in a process of its own, confined as its job requires.

    With `code`, it imports the modules that the worker keeps.
    """
    context = job.context
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    job.side, side = side_channel()
    with ExitStack() as given:
        ends = [side] if code is None else [side, code.connect()]
        socket.send_fds(ours, [b"!"], [given.enter_context(end).fileno() for end in ends])
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    process = await context.spawn(
        (sys.executable, *COMMAND), env=_environment(context, env),
        stdin=theirs.detach(), limits=limits,
    )  # fmt: skip
    try:
        writer.write(frame([job.call]))
        result = await _listen(job, reader, AnswerWriter(writer))
        end = await process.wait()
    finally:
        writer.close()
        job.side.close()
        job.side = None
    if result is None:
        return STOPPED if context.stopping.is_set() else died_result(end, alone=True)
    if result.failure == FailureClass.RESOURCE:
        return replace(result, message=f"{result.message}{hint(end)}")
    return result


def _environment(context: JobContext, env: Mapping[str, str]) -> Mapping[str, str]:
    """Returns its environment; it also imports from the directory of the agent."""
    seen = {**context.env, **env}
    return {**seen, PATH: os.pathsep.join(filter(None, (os.getcwd(), seen.get(PATH))))}


async def _listen(job: Job, reader: asyncio.StreamReader, answers: AnswerWriter) -> Result | None:
    """Returns how the call ended; None if its process ended without a report."""
    frames, result = Frames(), None
    while data := await reader.read(READ):
        for body in frames.feed(data):
            for report in decode_reports(body):
                result = _hear(job, report, answers) or result
    return result


def _hear(job: Job, report: Report, answers: AnswerWriter) -> Result | None:
    if isinstance(report, Done):
        return done_result(report)
    if isinstance(report, Failed):
        return failed_result(job, report)
    if isinstance(report, Ask):
        job.ask(report, answers)
    else:
        job.pass_on(report)
    return None
