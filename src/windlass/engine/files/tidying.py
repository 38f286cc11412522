"""Keeps the blobs tidy: joins small segments of ended logs, and removes files without an owner.

Joining runs in the background, one log at a time, so that reading a log needs few objects. If the
server stops halfway, only some objects are wasted, since the bytes can be read from either form.
The sweep for orphans, which reads all names anyway, finds such logs and joins them. Orphans are
left by a crash, a refused upload or a removed job.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

import structlog

from windlass.domain.rows.files import LogRow
from windlass.domain.values.errors import WindlassError
from windlass.engine.attempts import log_segments as segments
from windlass.engine.attempts.log_segments import SEGMENT_LIMIT, TIMES, Logs, owner_of
from windlass.engine.attempts.writes import is_ended
from windlass.engine.files import artifacts, stacks
from windlass.ports.blobs import BlobInfo, Blobs
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

FROM: Final = 16  # a log with fewer appends is left as it is
MAX_WAITING: Final = 1_000
MAX_COUNTED: Final = 10_000
MAX_FOUND: Final = 1_000  # fragmented logs per sweep; the next sweep finds the others
log = structlog.get_logger()
AT_ONCE: Final = 500
# Uploads that were never adopted, stacks that nobody took, and partly written files from a crash.
UNFINISHED: Final = (artifacts.UPLOADS, stacks.FOLDER, "tmp")
Judge = Callable[[Sequence[BlobInfo]], Awaitable[list[str]]]


class SegmentMerger:
    """Counts appends per log, and joins the segments of long logs when they end."""

    def __init__(self, logs: Logs) -> None:
        self._logs = logs
        self._appends: dict[tuple[int, int], int] = {}
        self._waiting: deque[LogRow] = deque(maxlen=MAX_WAITING)
        self._task: asyncio.Task[None] | None = None

    def appended(self, job: int, attempt: int) -> None:
        """Counts a written segment."""
        if len(self._appends) >= MAX_COUNTED:
            self._appends.clear()  # These belong to lost workers. Dropping them costs some merges.
        key = job, attempt
        self._appends[key] = self._appends.get(key, 0) + 1

    def is_due(self, job: int, attempt: int) -> bool:
        """Returns True if an ended log is long enough to be joined; answers True only once."""
        return self._appends.pop((job, attempt), 0) >= FROM

    def ended(self, row: LogRow) -> None:
        """Schedules the segments of this log to be joined."""
        self._waiting.append(row)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._waiting:
                row = self._waiting.popleft()
                try:
                    await self._logs.merge(row)
                except WindlassError as error:
                    log.info("log_not_merged", job=row.job, reason=error.message)
        finally:
            self._task = None

    async def settled(self) -> None:
        """Waits until nothing is left to join."""
        if self._task is not None:
            await asyncio.wait((self._task,))

    async def close(self) -> None:
        """Stops; segments not joined yet stay as they are."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait((self._task,))


class FragmentedLogs:
    """Finds logs with far more segments than they need, from the names of all segments."""

    def __init__(self) -> None:
        self._found: list[tuple[int, int]] = []
        self._owner: tuple[int, int] | None = None
        self._segments = self._bytes = 0

    def see(self, infos: Sequence[BlobInfo]) -> None:
        """Processes the next segments; those of one log come in order."""
        for info in infos:
            owner = owner_of(info.key)
            if info.key.endswith(TIMES):
                continue
            if owner != self._owner:
                self._close()
                self._owner = owner
            self._segments += 1
            self._bytes += info.size

    def _close(self) -> None:
        needed = self._bytes // SEGMENT_LIMIT + 1
        many = self._segments >= FROM and self._segments > 2 * needed
        if many and self._owner is not None and len(self._found) < MAX_FOUND:
            self._found.append(self._owner)
        self._segments = self._bytes = 0

    async def join(self, store: Store, blobs: Blobs) -> int:
        """Joins the segments of the logs that have ended; returns how many logs."""
        self._close()
        logs, joined = Logs(blobs), 0
        for job, attempt in self._found:
            row = await store.read(partial(_read_log, job=job, attempt=attempt))
            if row is not None and is_ended(row):
                await logs.merge(row)
                joined += 1
        return joined


async def _read_log(tx: ReadTx, job: int, attempt: int) -> LogRow | None:
    return await tx.files.log(job, attempt)


class Swept(NamedTuple):
    """How many files were removed, and how many logs were joined."""

    removed: int
    joined: int


async def sweep_files(store: Store, blobs: Blobs, older_than_ms: int) -> Swept:
    """Removes old files without an owner and joins fragmented logs. It reads every name."""
    scattered = FragmentedLogs()

    async def unreferenced(infos: Sequence[BlobInfo]) -> list[str]:
        digests = {artifacts.digest_of(info.key): info.key for info in infos}
        used = await store.read(lambda tx: tx.files.referenced(list(digests)))
        return [key for digest, key in digests.items() if digest not in used]

    async def unknown(infos: Sequence[BlobInfo]) -> list[str]:
        scattered.see(infos)
        owners = {info.key: segments.owner_of(info.key) for info in infos}
        jobs = sorted({owner[0] for owner in owners.values() if owner})
        found = await store.read(lambda tx: tx.files.logs(jobs))
        known = {(row.job, row.attempt) for rows in found.values() for row in rows}
        return [key for key, owner in owners.items() if owner not in known]

    async def all_of(infos: Sequence[BlobInfo]) -> list[str]:
        return [info.key for info in infos]

    removed = 0
    for folder, judge in (
        (artifacts.FOLDER, unreferenced),
        (segments.FOLDER, unknown),
        *((folder, all_of) for folder in UNFINISHED),
    ):
        removed += await _sweep(blobs, folder, older_than_ms, judge)
    return Swept(removed, await scattered.join(store, blobs))


async def _sweep(blobs: Blobs, folder: str, older_than_ms: int, judge: Judge) -> int:
    removed = 0
    batch: list[BlobInfo] = []
    async for info in blobs.list(folder):
        if info.modified_ms < older_than_ms:
            batch.append(info)
        if len(batch) >= AT_ONCE:
            removed += await _remove(blobs, await judge(batch))
            batch = []
    return removed + await _remove(blobs, await judge(batch) if batch else [])


async def _remove(blobs: Blobs, keys: Sequence[str]) -> int:
    if keys:
        await blobs.delete(keys)
    return len(keys)
