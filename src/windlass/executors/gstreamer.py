"""Runs `gstreamer` jobs: a pipeline through gst-launch."""

import re
import shutil
from typing import Final

from windlass.domain.tasks.gstreamer import GstreamerArgs, command_line, read_args
from windlass.executors.tool import STOPPED, failed, missing, run_tool, tail_of
from windlass.ports.executor import JobContext, Result

PROGRAM: Final = "gst-launch-1.0"
REPORT: Final = ".windlass-gstreamer.log"
# Warnings of all elements; the HTTP source tells its reasons only to those who debug it.
LEVELS: Final = "*:2,souphttpsrc:5"
_PERCENT: Final = re.compile(rb"\((\d+(?:\.\d+)?) ?%\)")


def find_gstreamer() -> str | None:
    """The program, if this worker has it."""
    return shutil.which(PROGRAM)


class GstreamerExecutor:
    """Implements `Executor`."""

    task = "gstreamer"

    async def run(self, context: JobContext) -> Result:
        """Run the pipeline of the job's arguments."""
        return await launch(context, read_args(context.args))

    async def close(self) -> None:
        """There is nothing to let go of."""


async def launch(context: JobContext, args: GstreamerArgs) -> Result:
    """Run a pipeline and keep the files it is to leave."""
    program = find_gstreamer()
    if program is None:
        return missing("gst-launch-1.0", "install gstreamer1.0-tools and its plug-ins")
    report = context.scratch / REPORT
    shown = -1.0

    def hear(line: bytes) -> None:
        """The element `progressreport` speaks of per cent; every line goes to the log."""
        nonlocal shown
        context.log(line + b"\n")
        percent = _PERCENT.search(line) if b"progressreport" in line else None
        if percent is not None and float(percent[1]) / 100 > shown:
            shown = float(percent[1]) / 100
            context.progress(shown)

    env = {"GST_DEBUG": LEVELS, "GST_DEBUG_NO_COLOR": "1", "GST_DEBUG_FILE": str(report)}
    end = await run_tool(context, command_line(program, args), env, hear)
    if end is None:
        return STOPPED
    if end.code != 0:
        return failed("gst-launch-1.0", end, tail_of(report))
    if args.artifacts:
        await context.upload(args.artifacts)
    context.progress(1.0)
    return Result(exit_code=0)
