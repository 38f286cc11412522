"""Follows a job's log as it grows, across its attempts."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Final, NamedTuple

from windlass.domain.rows.files import LogRow, LogState
from windlass.domain.values.ids import shown_attempt
from windlass.engine.engine import Engine
from windlass.engine.files.files import Files
from windlass.engine.files.logs import LogReading

READ_LIMIT: Final = 8 * 1024 * 1024
FOLLOW_MS: Final = 500
RECHECK_MS: Final = 100
GIVEN_UP_MS: Final = 60_000  # how long a worker tries to send the rest of a log
SETTLE_MS: Final = 2_000  # how long a reader waits for the last output of a job that has ended


class LogPosition(NamedTuple):
    """Where to read on: a position in the log of one attempt; attempt 0: of any."""

    attempt: int
    offset: int


class NextPart(NamedTuple):
    """What comes next in a job's log; `is_over` if nothing more can come."""

    reading: LogReading
    is_over: bool


async def follow_growing(
    engine: Engine,
    files: Files,
    job: int,
    attempt: int | None = None,
    offset: int = 0,
    timestamps: bool = False,
) -> AsyncIterator[bytes]:
    """Yields the log until it ends; across attempts unless one is named, each from its start."""
    position = LogPosition(attempt or 0, offset)
    while True:
        part = await next_part(
            engine, files, job, attempt, position, FOLLOW_MS, timestamps=timestamps
        )
        async for chunk in part.reading.chunks:
            yield chunk
        if part.is_over or engine.is_stopping:
            return
        position = LogPosition(part.reading.row.attempt, part.reading.next)


async def next_part(
    engine: Engine,
    files: Files,
    job: int,
    attempt: int | None,
    position: LogPosition,
    wait_ms: int,
    limit: int = READ_LIMIT,
    timestamps: bool = False,
) -> NextPart:
    """Returns what comes after `position`; waits for it, at most `wait_ms`.

    An engine that is stopping does not wait.
    """
    clock = asyncio.get_running_loop()
    deadline = clock.time() + wait_ms / 1000
    while True:
        row = await files.log(job, attempt)
        offset = (
            position.offset
            if position.attempt in (0, row.attempt, shown_attempt(row.attempt))
            else 0
        )
        left_ms = int((deadline - clock.time()) * 1000)
        is_over = row.bytes <= offset and await log_is_over(engine, files, row, attempt)
        if row.bytes > offset or is_over or left_ms <= 0 or engine.is_stopping:
            reading = await files.read_log(job, row.attempt, offset, limit)
            if timestamps and row.bytes > offset:
                reading = await files.with_times(reading, offset)
            return NextPart(reading, is_over)
        if row.state == LogState.STREAMING:
            await files.follow_log(job, attempt, offset, min(left_ms, FOLLOW_MS))
        else:  # It has not begun, or another attempt may follow.
            await engine.jobs.wait_ended(job, min(left_ms, RECHECK_MS))


async def settle(engine: Engine, files: Files, job: int, attempt: int | None) -> None:
    """Waits for the rest of the log if the job has ended: its last output may arrive later.

    Waits at most `SETTLE_MS`. The log of an open job is read as it is.
    """
    row = await files.log(job, attempt)
    if row.state != LogState.STREAMING or engine.is_stopping:
        return
    facts = (await engine.store.read(lambda tx: tx.jobs.read([job])))[job]
    if not facts.is_open:
        await files.follow_log(job, attempt, sys.maxsize, SETTLE_MS)


async def log_is_over(
    engine: Engine, files: Files, row: LogRow, attempt: int | None = None
) -> bool:
    """Returns True if nothing more can come: the job has ended, and so has its log.

    If nobody could write the end of a log, it is over once its worker has given up as well.
    """
    if row.state == LogState.STREAMING:
        view = await engine.store.read(lambda tx: tx.views.job(row.job))
        if view is None or view.facts.is_open or view.finished_at is None:
            return False
        return await engine.now() > view.finished_at + GIVEN_UP_MS
    facts = (await engine.store.read(lambda tx: tx.jobs.read([row.job])))[row.job]
    # Bytes that came after we read the row, and before the job ended, still have to be read.
    return not facts.is_open and await files.log(row.job, attempt) == row
