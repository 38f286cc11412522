"""Runs `gstreamer` jobs: a pipeline through gst-launch.

gst-launch handles an error in the thread that met it, and asks its main loop to quit. If that
happens before the main loop runs, as with a file that is broken from its first bytes, the request
is lost and it waits for ever. So we watch its output: after it has reported an error it has a
moment to exit before it is ended.
"""

import asyncio
import re
import shutil
from typing import Final

from windlass.domain.tasks.gstreamer import GstreamerArgs, command_line, read_args, sources_of
from windlass.domain.tasks.kind import read_duration
from windlass.domain.tasks.sources import scheme_of
from windlass.executors.media.ffmpeg import find_ffmpeg
from windlass.executors.media.probe import learn_duration, uri_probe
from windlass.executors.media.tool import AS_ONE, STOPPED, failed, missing, run_tool, tail_of
from windlass.ports.executor import JobContext, Result

PROGRAM: Final = "gst-launch-1.0"
REPORT: Final = ".windlass-gstreamer.log"
# Warnings of all elements; the HTTP source reports its reasons only at the debug level.
LEVELS: Final = "*:2,souphttpsrc:5"
_ERROR: Final = b"ERROR: from element "
_PERCENT: Final = re.compile(rb"\((\d+(?:\.\d+)?) ?%\)")


def find_gstreamer() -> str | None:
    """Returns the program, if this worker has it."""
    return shutil.which(PROGRAM)


class GstreamerExecutor:
    """Implements `Executor`."""

    task = "gstreamer"

    async def run(self, context: JobContext) -> Result:
        """Runs the pipeline of the job's arguments."""
        args = read_args(context.args)
        declared = read_duration(args.duration, "args.duration")
        ffmpeg = find_ffmpeg()
        uris = [_uri(context, source) for source in sources_of(args.pipeline)]
        await learn_duration(context, declared, [p for uri in uris for p in uri_probe(uri, ffmpeg)])
        if context.stopping.is_set():
            return STOPPED
        return await launch(context, args)

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


def _uri(context: JobContext, source: str) -> str:
    if scheme_of(source) is not None:
        return source
    return (context.scratch / source).absolute().as_uri()


async def launch(context: JobContext, args: GstreamerArgs) -> Result:
    """Runs a pipeline and keeps its output files."""
    program = find_gstreamer()
    if program is None:
        return missing("gst-launch-1.0", "install gstreamer1.0-tools and its plug-ins")
    report = context.scratch / REPORT
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

    env = {"GST_DEBUG": LEVELS, "GST_DEBUG_NO_COLOR": "1", "GST_DEBUG_FILE": REPORT,
           "LC_ALL": "C.UTF-8"}  # fmt: skip
    command = [*AS_ONE, *command_line(program, args)]
    end = await run_tool(context, command, env, hear, doomed)
    if end is None:
        return STOPPED
    if end.code != 0:
        return failed("gst-launch-1.0", end, tail_of(report))
    if args.artifacts:
        await context.upload(args.artifacts)
    context.progress(1.0)
    return Result(exit_code=0)
