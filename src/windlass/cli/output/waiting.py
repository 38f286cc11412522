"""Prints to standard error what a job waits for, while following its log."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any, Final

from windlass.cli.output.text import DIM, warn
from windlass.client.blocking.handles import JobHandle
from windlass.client.blocking.in_thread import next_of
from windlass.client.handles import AsyncJob
from windlass.clock import RealClock
from windlass.domain.values.errors import WindlassError

FIRST_MS: Final = 500  # a job that starts at once gives no reason
MAX_MS: Final = 4_000
_DURATION: Final = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|min|h|d)\b(?: \d+ (?:s|min|h)\b)?")
WAITING: Final = frozenset({"blocked", "queued", "retrying", "suspended"})


def follow_saying_why(job: JobHandle[Any]) -> Iterator[bytes]:
    """Yields the job's log until it ends, and says each new reason why it waits."""
    stream = _with_reasons(job.asynchronous)
    try:
        while (chunk := job.client.run(next_of(stream))) is not None:
            yield chunk
    finally:
        job.client.run(_close(stream))


async def _with_reasons(job: AsyncJob[Any]) -> AsyncIterator[bytes]:
    saying = asyncio.create_task(_say_why(job))
    try:
        async for chunk in job.logs(follow=True):
            yield chunk
    finally:
        saying.cancel()


async def _close(stream: AsyncIterator[bytes]) -> None:
    with suppress(RuntimeError):  # It was interrupted while running, and ends by itself.
        await stream.aclose()  # type: ignore[attr-defined]


async def _say_why(job: AsyncJob[Any]) -> None:
    clock, pause, said = RealClock(), FIRST_MS, ""
    while True:
        await clock.sleep_ms(pause)
        pause = min(2 * pause, MAX_MS)
        with suppress(WindlassError):  # Whoever follows the log says that the server is away.
            found = await job.explain()
            reason = _without_durations(found.summary)
            if found.state in WAITING and reason != said:
                said = reason
                warn(f"job {job.id} {found.summary}", DIM)


def _without_durations(text: str) -> str:
    """Returns a reason without its durations, which change while it stays the same."""
    return _DURATION.sub("…", text)
