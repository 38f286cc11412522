"""Runs `ffmpeg` jobs: reads progress from ffmpeg itself, and failures from its report."""

import os
import re
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Final

from windlass.domain.tasks.ffmpeg import (
    FfmpegArgs,
    command_line,
    duration_ms,
    input_options,
    kept_files,
    read_args,
)
from windlass.domain.tasks.sources import Source
from windlass.executors.media.probe import ffmpeg_probe, find_duration, learn_duration
from windlass.executors.media.tool import STOPPED, failed, missing, place_source, run_tool, tail_of
from windlass.ports.executor import JobContext, Result

REPORT: Final = ".windlass-ffmpeg.log"
INFO: Final = 32  # of ffmpeg's log levels
HEAD: Final = 65_536
_PROGRESS: Final = re.compile(rb"[a-z_0-9]+=\s*\S*\s*")


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


class FfmpegExecutor:
    """Implements `Executor`."""

    task = "ffmpeg"

    async def run(self, context: JobContext) -> Result:
        """Transcodes as the job's arguments say."""
        return await transcode(context, read_args(context.args))

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


async def transcode(context: JobContext, args: FfmpegArgs) -> Result:
    """Runs ffmpeg with these arguments and keeps its output."""
    program = find_ffmpeg()
    if program is None:
        return missing("ffmpeg", "install it, or the Python package imageio-ffmpeg")
    sources = [await place_source(context, item, n) for n, item in enumerate(args.inputs)]
    report = context.scratch / REPORT
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
    env = {"FFREPORT": f"file={REPORT}:level={INFO}", "AV_LOG_FORCE_NOCOLOR": "1"}
    end = await run_tool(context, command_line(program, args, sources), env, meter.hear)
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
