"""Follows a job's log as it grows, across its attempts."""

from collections.abc import AsyncIterator
from typing import Final

from windlass.domain.rows.files import LogRow, LogState
from windlass.engine.engine import Engine
from windlass.engine.files.files import Files

READ_LIMIT: Final = 8 * 1024 * 1024
FOLLOW_MS: Final = 1_000
RECHECK_MS: Final = 100


async def follow_growing(
    engine: Engine, files: Files, job: int, attempt: int | None = None, offset: int = 0
) -> AsyncIterator[bytes]:
    """Yields the log until it ends; across attempts unless one is named, each from its start."""
    current = attempt
    while True:
        row = await files.log(job, attempt)
        if current not in (None, row.attempt):
            offset = 0
        current = row.attempt or None
        if row.bytes > offset:
            reading = await files.read_log(job, row.attempt, offset, READ_LIMIT)
            async for chunk in reading.chunks:
                yield chunk
            offset = reading.next
        elif row.state == LogState.STREAMING:
            await files.follow_log(job, attempt, offset, FOLLOW_MS)
        elif await _is_over(engine, job, row):
            return
        else:  # It has not begun, or another attempt may come.
            await engine.jobs.wait_ended(job, RECHECK_MS)


async def _is_over(engine: Engine, job: int, row: LogRow) -> bool:
    """Returns True if nothing more can come: the job has ended, and so has its log."""
    facts = (await engine.store.read(lambda tx: tx.jobs.read([job])))[job]
    return bool(facts.state) and row.state != LogState.STREAMING
