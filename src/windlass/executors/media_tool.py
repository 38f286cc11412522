"""Runs a media tool for a job: its output line by line, its inputs, how it ended.

The duration of a job's media is measured before it starts: its timeout depends on it. Processes are
started only through the job's context.
"""

import asyncio
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.tasks.media import judge
from windlass.domain.tasks.sources import Source, check_source, scheme_of
from windlass.domain.values.errors import InvalidInput
from windlass.executors.limits import is_own, over_limit
from windlass.ports.executor import Exit, JobContext, Process, Result

READ_BYTES: Final = 65_536
LINE_LIMIT: Final = 1 << 20
DRAIN_S: Final = 2.0  # for the last output of a program that has ended
LINGER_S: Final = 2.0  # for a program to exit on its own after it has reported a failure
REPORT_TAIL: Final = 65_536
# Merges both streams of a program into one, to keep the order of its lines.
AS_ONE: Final = ("/bin/sh", "-c", 'exec "$0" "$@" 2>&1')
STOPPED: Final = Result(outcome="canceled", failure=FailureClass.CANCELED, message="stopped")
_KILLED: Final = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGHUP})

PROBE_S: Final = 30.0  # a source that is silent for this long has no duration to report
LIVE: Final = "live"
DISCOVERER: Final = "gst-discoverer-1.0"
UNKNOWN_HOURS: Final = 99  # hours in 99:99:99, which GStreamer writes for an unknown duration
_DURATION: Final = re.compile(r"^  Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)", re.MULTILINE)


async def run_tool(
    context: JobContext,
    argv: Sequence[str],
    env: Mapping[str, str],
    hear: Callable[[bytes], None],
    doomed: asyncio.Event | None = None,
) -> Exit | None:
    """Runs a program and passes each line of its output to `hear`; None if it was stopped.

    Once `doomed` is set it has reported a failure: if it does not exit by itself, it is ended.
    """
    process = await context.spawn(argv, env=env, capture=True)
    loop = asyncio.get_running_loop()
    reading = loop.create_task(_read_lines(context, process, hear))
    ended = loop.create_task(process.wait())
    stopping = loop.create_task(context.stopping.wait())
    failing = loop.create_task((doomed or asyncio.Event()).wait())
    try:
        await asyncio.wait((ended, stopping, failing), return_when=asyncio.FIRST_COMPLETED)
        if failing.done() and not ended.done():
            await asyncio.wait(
                (ended, stopping), timeout=LINGER_S, return_when=asyncio.FIRST_COMPLETED
            )
        if context.stopping.is_set():
            ended.cancel()
            await process.stop()
            return None
        if not ended.done():
            ended.cancel()
            await process.stop()
            return Exit(1)
        # Processes it left behind may hold its output open; we do not wait for them.
        await asyncio.wait((reading,), timeout=DRAIN_S)
        return ended.result()
    finally:
        for task in (reading, ended, stopping, failing):
            task.cancel()


async def _read_lines(context: JobContext, process: Process, hear: Callable[[bytes], None]) -> None:
    assert process.stdout is not None
    rest = b""
    while data := await process.stdout.read(READ_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            hear(line)
        if len(rest) > LINE_LIMIT:
            hear(rest)
            rest = b""
        room = asyncio.Event()
        if context.log_full(room.set):
            await room.wait()
    if rest:
        hear(rest)


async def place_source(context: JobContext, source: str | Source, number: int) -> str:
    """Returns where a program finds an input; an artifact is fetched first."""
    given = check_source(source, f"args.inputs[{number}]")
    if given.url is not None:
        plain = given.format != "lavfi" and scheme_of(given.url) is None
        return f"./{given.url}" if plain and not given.url.startswith("/") else given.url
    job: Any = given.job
    artifact: Any = given.artifact
    if isinstance(artifact, dict):
        job, artifact = artifact.get("job"), artifact.get("artifact")
    if not isinstance(job, int) or not isinstance(artifact, str):
        expected = "an artifact of a job, looked up when assigned"
        raise InvalidInput(f"args.inputs[{number}].artifact", expected, given.artifact)
    path = f"inputs/{number}/{artifact}"
    await context.fetch(job, artifact, path)
    return f"./{path}"


def tail_of(path: Path) -> str:
    """Returns the end of a file that a tool wrote; "" if it wrote none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - REPORT_TAIL))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def failed(tool: str, end: Exit, stderr: str) -> Result:
    """Returns the result of a failed tool, from its exit code and its standard error."""
    passed = over_limit(end)
    if passed is not None and not end.out_of_memory:
        return passed
    if end.out_of_memory:
        ran_out = _failed(FailureClass.RESOURCE, f"{tool} ran out of memory", end)
        return replace(ran_out, own_limit=is_own(end))
    if end.signal is not None:
        lost = end.signal in _KILLED
        failure = FailureClass.WORKER_LOST if lost else FailureClass.EXECUTION
        return _failed(failure, f"{tool} was killed by signal {end.signal}", end)
    verdict = judge(stderr)
    message = verdict.message or f"{tool} exited with code {end.code}"
    return _failed(verdict.failure, message, end)


def _failed(failure: FailureClass, message: str, end: Exit) -> Result:
    return Result(outcome="failed", failure=failure, message=message, exit_code=end.code)


def missing(tool: str, remedy: str) -> Result:
    """Returns the result where a worker lacks the tool."""
    message = f"{tool} is not installed on this worker: {remedy}"
    return Result(outcome="failed", failure=FailureClass.CONFIGURATION, message=message)


async def learn_duration(
    context: JobContext, declared_ms: int | None, probes: Sequence[list[str]]
) -> int | None:
    """Returns the duration of the longest input; if it was unknown before, the timeout follows it.

    `probes` are commands that describe one input each. Live work has no known end.
    """
    spec = context.spec
    known = declared_ms or spec.get("duration_ms")
    if known or spec.get("queue") == LIVE:
        return known
    found = [await _probe(context, command) for command in probes]
    duration_ms = max((ms for ms in found if ms is not None), default=None)
    if duration_ms is not None:
        await context.measured(duration_ms)
    return duration_ms


def ffmpeg_probe(program: str, options: Sequence[str]) -> list[str]:
    """Returns the ffmpeg command that describes the input of these options."""
    return [program, "-hide_banner", "-nostdin", *options]


def uri_probe(uri: str, ffmpeg: str | None) -> list[list[str]]:
    """Returns the commands that probe one address, with whichever tool is installed."""
    discoverer = shutil.which(DISCOVERER)
    if discoverer is not None:
        return [[discoverer, "--timeout", str(int(PROBE_S)), uri]]
    return [] if ffmpeg is None else [ffmpeg_probe(ffmpeg, ("-i", uri))]


async def _probe(context: JobContext, argv: list[str]) -> int | None:
    lines: list[bytes] = []
    tired = asyncio.Event()
    timer = asyncio.get_running_loop().call_later(PROBE_S, tired.set)
    try:
        await run_tool(
            context, [*AS_ONE, *argv], {"AV_LOG_FORCE_NOCOLOR": "1"}, lines.append, tired
        )
    finally:
        timer.cancel()
    return find_duration(b"\n".join(lines).decode("utf-8", "replace"))


def find_duration(report: str) -> int | None:
    """Returns the duration of the longest input in ms, from the output of ffmpeg or GStreamer."""
    found = [
        int((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)
        for hours, minutes, seconds in _DURATION.findall(report)
        if (int(hours), int(minutes)) != (UNKNOWN_HOURS, UNKNOWN_HOURS)
    ]
    return max(found, default=None) or None
