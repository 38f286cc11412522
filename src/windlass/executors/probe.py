"""How long the media of a job is, found out before it starts: its timeout depends on it."""

import asyncio
import re
from collections.abc import Sequence
from typing import Final

from windlass.executors.tool import AS_ONE, run_tool
from windlass.ports.executor import JobContext

PROBE_S: Final = 30.0  # a source that says nothing for so long has no duration to tell
LIVE: Final = "live"
_DURATION: Final = re.compile(r"^  Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)", re.MULTILINE)


async def learn_duration(
    context: JobContext, declared_ms: int | None, program: str | None, inputs: Sequence[list[str]]
) -> int | None:
    """The duration of the longest input; if nobody knew it before, the timeout follows.

    `inputs` are the options of ffmpeg that stand for one each. Live work has no end to know.
    """
    spec = context.spec
    known = declared_ms or spec.get("duration_ms")
    if known or program is None or spec.get("queue") == LIVE:
        return known
    found = [await _probe(context, program, options) for options in inputs]
    duration_ms = max((ms for ms in found if ms is not None), default=None)
    if duration_ms is not None:
        await context.measured(duration_ms)
    return duration_ms


async def _probe(context: JobContext, program: str, options: list[str]) -> int | None:
    lines: list[bytes] = []
    tired = asyncio.Event()
    timer = asyncio.get_running_loop().call_later(PROBE_S, tired.set)
    command = [*AS_ONE, program, "-hide_banner", "-nostdin", *options]
    try:
        await run_tool(context, command, {"AV_LOG_FORCE_NOCOLOR": "1"}, lines.append, tired)
    finally:
        timer.cancel()
    return find_duration(b"\n".join(lines).decode("utf-8", "replace"))


def find_duration(report: str) -> int | None:
    """How long the longest input is, in milliseconds, as ffmpeg found it."""
    found = [
        int((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)
        for hours, minutes, seconds in _DURATION.findall(report)
    ]
    return max(found, default=None) or None
