"""Runs `ffmpeg`, `gstreamer` and `media` jobs; the latter with whichever tool suits the work.

The duration of a job's media is measured before it starts: its timeout depends on it. Processes are
started only through the job's context.

ffmpeg itself tells its progress, and its report why it failed.

gst-launch handles an error in the thread that met it, and asks its main loop to quit. If that
happens before the main loop runs, as with a file that is broken from its first bytes, the request
is lost and it waits for ever. So we watch its output: after it has reported an error it has a
moment to exit before it is ended.
"""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.tasks.ffmpeg import FfmpegArgs, duration_ms, input_options, kept_files
from windlass.domain.tasks.ffmpeg import command_line as ffmpeg_command
from windlass.domain.tasks.ffmpeg import read_args as read_ffmpeg
from windlass.domain.tasks.gstreamer import GstreamerArgs, sources_of
from windlass.domain.tasks.gstreamer import command_line as gstreamer_command
from windlass.domain.tasks.gstreamer import read_args as read_gstreamer
from windlass.domain.tasks.kind import read_duration
from windlass.domain.tasks.media import as_ffmpeg, as_pipeline, choose_tool, has_pipeline, judge
from windlass.domain.tasks.media import read_args as read_media
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


FFMPEG_REPORT: Final = ".windlass-ffmpeg.log"
INFO: Final = 32  # of ffmpeg's log levels
HEAD: Final = 65_536
_PROGRESS: Final = re.compile(rb"[a-z_0-9]+=\s*\S*\s*")

GST_LAUNCH: Final = "gst-launch-1.0"
GSTREAMER_REPORT: Final = ".windlass-gstreamer.log"
# Warnings of all elements; the HTTP source reports its reasons only at the debug level.
LEVELS: Final = "*:2,souphttpsrc:5"
_ERROR: Final = b"ERROR: from element "
_PERCENT: Final = re.compile(rb"\((\d+(?:\.\d+)?) ?%\)")


def find_ffmpeg() -> str | None:
    """Returns the program: on the PATH, else from the package imageio-ffmpeg."""
    found = shutil.which("ffmpeg")
    if found is not None:
        return found
    try:
        import imageio_ffmpeg
    except ImportError:
        return None
    try:
        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError:
        return None


class _Tool:
    """What the executors of media tools have in common."""

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


class FfmpegExecutor(_Tool):
    """Implements `Executor`."""

    task = "ffmpeg"

    async def run(self, context: JobContext) -> Result:
        """Transcodes as the job's arguments say."""
        return await transcode(context, read_ffmpeg(context.args))


async def transcode(context: JobContext, args: FfmpegArgs) -> Result:
    """Runs ffmpeg with these arguments and keeps its output."""
    program = find_ffmpeg()
    if program is None:
        return missing("ffmpeg", "install it, or the Python package imageio-ffmpeg")
    sources = [await place_source(context, item, n) for n, item in enumerate(args.inputs)]
    report = context.scratch / FFMPEG_REPORT
    output = context.scratch / args.output
    output.parent.mkdir(parents=True, exist_ok=True)
    inputs = [
        ffmpeg_probe(program, input_options(source, place))
        for source, place in zip(args.inputs, sources, strict=True)
        # the stream is converted as it is read
        if not (isinstance(source, Source) and source.format == "lavfi")
    ]
    declared = duration_ms(args) or _limit_ms(args.options)
    meter = Meter(context, report, await learn_duration(context, declared, inputs))
    if context.stopping.is_set():
        return STOPPED
    env = {"FFREPORT": f"file={FFMPEG_REPORT}:level={INFO}", "AV_LOG_FORCE_NOCOLOR": "1"}
    end = await run_tool(context, ffmpeg_command(program, args, sources), env, meter.hear)
    if end is None:
        return STOPPED
    if end.code != 0:
        return failed("ffmpeg", end, _without_command(tail_of(report)))
    await context.upload(kept_files(args))
    meter.finish()
    return Result(exit_code=0)


def _limit_ms(options: list[str]) -> int | None:
    """Returns the limit that `-t` sets on the output, if given in seconds."""
    for option, value in pairwise(options):
        if option == "-t" and re.fullmatch(r"\d+(\.\d+)?", value):
            return int(float(value) * 1000)
    return None


def _without_command(report: str) -> str:
    """Returns a report without its head, which repeats the command line."""
    head, found, rest = report.partition("Command line:\n")
    return rest.partition("\n")[2] if found else head


class Meter:
    """Turns ffmpeg's progress reports into the job's."""

    def __init__(self, context: JobContext, report: Path, duration: int | None) -> None:
        self._context = context
        self._report = report
        self._duration_ms = duration
        self._looked = False
        self._at_ms = 0
        self._shown = -1.0

    def hear(self, line: bytes) -> None:
        """Reads a line of ffmpeg's standard output; anything but progress goes to the log."""
        if not _PROGRESS.fullmatch(line):
            self._context.log(line + b"\n")
            return
        key, _, value = line.decode().partition("=")
        if key == "out_time_us" and value.strip().isdecimal():
            self._at_ms = int(value) // 1000
        elif key == "progress":
            self._show()

    def finish(self) -> None:
        """Reports complete progress."""
        self._context.progress(1.0)

    def _show(self) -> None:
        if self._duration_ms is None and not self._looked:
            self._looked = True
            self._duration_ms = find_duration(_head_of(self._report))
        if self._duration_ms is None:
            self._context.progress({"seconds": self._at_ms / 1000})
            return
        share = round(min(self._at_ms / self._duration_ms, 0.999), 3)
        if share > self._shown:
            self._shown = share
            self._context.progress(share)


def _head_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return os.read(file.fileno(), HEAD).decode("utf-8", "replace")
    except OSError:
        return ""


def find_gstreamer() -> str | None:
    """Returns the program, if this worker has it."""
    return shutil.which(GST_LAUNCH)


class GstreamerExecutor(_Tool):
    """Implements `Executor`."""

    task = "gstreamer"

    async def run(self, context: JobContext) -> Result:
        """Runs the pipeline of the job's arguments."""
        args = read_gstreamer(context.args)
        declared = read_duration(args.duration, "args.duration")
        ffmpeg = find_ffmpeg()
        uris = [_source_uri(context, source) for source in sources_of(args.pipeline)]
        await learn_duration(context, declared, [p for uri in uris for p in uri_probe(uri, ffmpeg)])
        if context.stopping.is_set():
            return STOPPED
        return await launch(context, args)


def _source_uri(context: JobContext, source: str) -> str:
    if scheme_of(source) is not None:
        return source
    return (context.scratch / source).absolute().as_uri()


async def launch(context: JobContext, args: GstreamerArgs) -> Result:
    """Runs a pipeline and keeps its output files."""
    program = find_gstreamer()
    if program is None:
        return missing("gst-launch-1.0", "install gstreamer1.0-tools and its plug-ins")
    report = context.scratch / GSTREAMER_REPORT
    doomed = asyncio.Event()
    shown = -1.0

    def hear(line: bytes) -> None:
        """Logs every line; reads per cent from the element `progressreport`."""
        nonlocal shown
        context.log(line + b"\n")
        if line.startswith(_ERROR):
            doomed.set()
        percent = _PERCENT.search(line) if b"progressreport" in line else None
        if percent is not None and float(percent[1]) / 100 > shown:
            shown = float(percent[1]) / 100
            context.progress(shown)

    env = {"GST_DEBUG": LEVELS, "GST_DEBUG_NO_COLOR": "1", "GST_DEBUG_FILE": GSTREAMER_REPORT,
           "LC_ALL": "C.UTF-8"}  # fmt: skip
    command = [*AS_ONE, *gstreamer_command(program, args)]
    end = await run_tool(context, command, env, hear, doomed)
    if end is None:
        return STOPPED
    if end.code != 0:
        return failed("gst-launch-1.0", end, tail_of(report))
    if args.artifacts:
        await context.upload(args.artifacts)
    context.progress(1.0)
    return Result(exit_code=0)


class MediaExecutor(_Tool):
    """Implements `Executor`."""

    task = "media"

    async def run(self, context: JobContext) -> Result:
        """Converts as the job's arguments say."""
        args = read_media(context.args)
        tool = args.tool
        if tool == "auto":
            queue = str(context.spec.get("queue", "default"))
            present = find_gstreamer() is not None and has_pipeline(args)
            tool = choose_tool(queue, args.output, present)
        context.log(f"[windlass] converting with {tool}\n".encode())
        if tool == "ffmpeg":
            return await transcode(context, as_ffmpeg(args))
        uri = _source_uri(context, await place_source(context, args.input, 0))
        declared = read_duration(args.duration, "args.duration")
        await learn_duration(context, declared, uri_probe(uri, find_ffmpeg()))
        if context.stopping.is_set():
            return STOPPED
        return await launch(context, as_pipeline(args, uri))
