"""Measures the duration of a job's media before it starts: its timeout depends on it."""

import asyncio
import re
import shutil
from collections.abc import Sequence
from typing import Final

from windlass.executors.media.tool import AS_ONE, run_tool
from windlass.ports.executor import JobContext

PROBE_S: Final = 30.0  # a source that is silent for this long has no duration to report
LIVE: Final = "live"
DISCOVERER: Final = "gst-discoverer-1.0"
UNKNOWN_HOURS: Final = 99  # hours in 99:99:99, which GStreamer writes for an unknown duration
_DURATION: Final = re.compile(r"^  Duration: (\d+):(\d\d):(\d\d(?:\.\d+)?)", re.MULTILINE)


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
