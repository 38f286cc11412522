"""The logs of attempts: written while they run or shortly after, read at any time.

A reader can follow a job's log as it grows, across its attempts.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Final, Literal, NamedTuple, TypeVar

from windlass.domain.rows.files import LogRow, LogState
from windlass.domain.rows.records import ShownNumbers
from windlass.domain.rows.views import newest_attempt
from windlass.domain.values.errors import InvalidInput, NotFound, existing
from windlass.engine.attempts.log_segments import MAX_OFFSET, SEGMENT_LIMIT, Logs, placed
from windlass.engine.attempts.writes import (
    Write,
    check_holder,
    extend_log,
    finish_log,
    is_ended,
    is_held,
    log_of,
    may_log,
    write_all,
)
from windlass.engine.engine import Engine
from windlass.engine.files.log_pages import (
    LineIndex,
    colours_before,
    read_page,
    start_of_last,
    start_since,
    with_times,
)
from windlass.engine.files.log_search import finder, search
from windlass.engine.files.tidying import SegmentMerger
from windlass.engine.transaction.arguments import check_id
from windlass.messages.files import LogLine, LogMatches
from windlass.ports.blobs import Blobs
from windlass.ports.gateway import Holder
from windlass.store.sql.transaction import ReadTx

Answer = TypeVar("Answer")
TRIES: Final = 5  # segments may be joined while they are read
FOLLOW_SECONDS: Final = 0.5  # how often we check a log that another server writes
READ_LIMIT: Final = 8 * 1024 * 1024
FOLLOW_MS: Final = 500
RECHECK_MS: Final = 100
GIVEN_UP_MS: Final = 60_000  # how long a worker tries to send the rest of a log
SETTLE_MS: Final = 2_000  # how long a reader waits for the last output of a job that has ended


class FoundLog(NamedTuple):
    """The row of an attempt's log, and the number of the attempt that people see."""

    row: LogRow
    shown: int


class LogReading(NamedTuple):
    """A part of a log: its row, its attempt's shown number, where to continue, and its bytes."""

    row: LogRow
    shown: int
    next: int
    chunks: AsyncIterator[bytes]


class LogPage(NamedTuple):
    """Lines of a log, which has `total` so far; `colours` are in force at the first one."""

    row: LogRow
    shown: int
    total: int
    lines: list[LogLine]
    colours: bytes


class LogPosition(NamedTuple):
    """Where to read on: a position in the log of one attempt; attempt 0: of any."""

    attempt: int
    offset: int


class NextPart(NamedTuple):
    """What comes next in a job's log; `is_over` if nothing more can come."""

    reading: LogReading
    is_over: bool


class LogQuery(NamedTuple):
    """What to search for in a log; from `start` on, or before it."""

    text: str
    is_regex: bool = False
    ignore_case: bool = False
    start: int | None = None
    backwards: bool = False
    limit: int = 100


class LogFiles:
    """The commands about logs."""

    def __init__(self, engine: Engine, blobs: Blobs) -> None:
        self._engine = engine
        self._logs = Logs(blobs)
        self.merging = SegmentMerger(self._logs)
        self._write = engine.lane(write_all)
        self._followers: dict[tuple[int, int], set[asyncio.Event]] = {}

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        """Writes log bytes at `offset` and returns where the next ones go. Safe to repeat."""
        check_holder(holder)
        _check_size("offset", offset)
        if len(data) > SEGMENT_LIMIT:
            raise InvalidInput("log", f"at most {SEGMENT_LIMIT} bytes at once", len(data))
        row = await self._writable(holder)
        offset, data = placed(row, offset, data)
        if not data or is_ended(row):
            return row.bytes
        await self._logs.write(holder.job, holder.attempt, offset, data)
        before, after = await self._write(Write(holder, extend_log(row, offset, len(data))))
        self.merging.appended(holder.job, holder.attempt)
        self._wake(holder)
        if after.gap_to > before.gap_to:
            await self._logs.cut(after, self._engine.config.log_limit)
        return int(after.bytes)

    async def end_log(
        self,
        holder: Holder,
        size: int,
        state: Literal["committed", "lost"],
        peak_memory: int = 0,
    ) -> None:
        """Marks a log of `size` bytes as complete, or its rest as lost.

        `peak_memory` is the most memory the attempt used, in bytes, if it was measured.
        """
        check_holder(holder)
        _check_size("bytes", size)
        _check_size("peak_memory", peak_memory)
        if state not in ("committed", "lost"):
            raise InvalidInput("state", "committed or lost", state)
        await self._write(Write(holder, finish_log(size, LogState[state.upper()], peak_memory)))
        self._wake(holder)
        if self.merging.is_due(holder.job, holder.attempt):
            self.merging.ended(await self._engine.store.read(lambda tx: log_of(tx, holder)))

    async def log(self, job: int, attempt: int | None = None) -> FoundLog:
        """Returns the newest log, or that of an attempt, by its shown number or its own."""
        check_id("job", job)

        async def read(tx: ReadTx) -> FoundLog:
            attempts = await _attempts(tx, job)
            number = attempts.newest if attempt is None else attempts.number(attempt)
            row = await tx.files.log(job, number)
            if row is None and number not in attempts.shown:
                raise NotFound("attempt", f"{attempt} of job {job}")
            return attempts.found(row or _no_log(job, number))

        return await self._engine.store.read(read)

    async def log_behind(self, job: int, position: LogPosition) -> FoundLog:
        """Returns the first log with bytes behind this position, else the newest one."""

        async def read(tx: ReadTx) -> FoundLog:
            attempts = await _attempts(tx, job)
            begun = attempts.number(position.attempt)
            for number in attempts.shown:
                row = await tx.files.log(job, number) if number >= begun else None
                if row is not None and row.bytes > (position.offset if number == begun else 0):
                    return attempts.found(row)
            newest = await tx.files.log(job, attempts.newest)
            return attempts.found(newest or _no_log(job, attempts.newest))

        return await self._engine.store.read(read)

    async def read_log(
        self, job: int, attempt: int | None = None, offset: int = 0, limit: int = MAX_OFFSET
    ) -> LogReading:
        """Reads at most `limit` bytes of the log from `offset`; a line marks missing ones."""
        _check_size("offset", offset)
        _check_size("limit", limit)
        return await self.read_part(await self.log(job, attempt), offset, limit)

    async def read_part(self, log: FoundLog, offset: int, limit: int) -> LogReading:
        """Reads a part of a log that was found before."""
        part = await self._logs.find(log.row, offset, limit)
        return LogReading(log.row, log.shown, part.next, self._logs.read(part))

    async def log_start(
        self, job: int, attempt: int | None, tail: int | None, since_ms: int | None
    ) -> int:
        """Returns where the last `tail` lines begin, or the bytes since a time; the later of
        both.
        """
        row = (await self.log(job, attempt)).row

        read = partial(self._bytes, row)
        start = 0 if tail is None else await start_of_last(tail, row.bytes, read)
        if since_ms is not None:
            start = max(start, start_since(await self._logs.times(row), since_ms, row.bytes))
        return start

    async def log_page(
        self, log: FoundLog, count: int, line: int | None = None, offset: int | None = None
    ) -> LogPage:
        """Returns up to `count` lines: from a line number, from an offset, or the last ones."""

        async def read(index: LineIndex) -> LogPage:
            first = line
            if first is None and offset is not None:
                first = await index.line_at(offset)
            if first is None:
                first = max(1, index.lines - count + 1)
            lines = await read_page(self._logs, index, first, count)
            start = lines[0].offset if lines else 0
            colours = await colours_before(self._logs, index, start)
            return LogPage(*log, index.lines, lines, colours)

        return await self._with_index(log.row, read)

    async def search_log(self, job: int, attempt: int | None, query: LogQuery) -> LogMatches:
        """Returns lines that match, and where the search continues."""
        row = (await self.log(job, attempt)).row
        find = finder(query.text, query.is_regex, query.ignore_case)
        start = query.start
        if start is None:
            start = row.bytes if query.backwards else 0
        start, logs = min(start, row.bytes), self._logs
        return await self._with_index(
            row, lambda index: search(logs, index, find, start, query.backwards, query.limit)
        )

    async def _with_index(
        self, row: LogRow, work: Callable[[LineIndex], Awaitable[Answer]]
    ) -> Answer:
        """Runs this on the log's current segments; again if some were just joined."""
        for _ in range(TRIES - 1):
            try:
                return await work(await LineIndex.read(self._logs, row))
            except NotFound:
                continue
        return await work(await LineIndex.read(self._logs, row))

    async def with_times(self, reading: LogReading, offset: int) -> LogReading:
        """Returns the bytes from `offset` with the time at which each line arrived."""
        is_start = not offset
        if offset:
            is_start = (await self._bytes(reading.row, offset - 1, 1)).endswith(b"\n")
        times = await self._logs.times(reading.row)
        return reading._replace(chunks=with_times(reading.chunks, offset, is_start, times))

    async def follow_log(
        self, job: int, attempt: int | None, beyond: int, timeout_ms: int
    ) -> FoundLog:
        """Waits until a log has more than `beyond` bytes, has ended, or the time is up."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            log = await self.log(job, attempt)
            row, left = log.row, deadline - loop.time()
            if row.bytes > beyond or is_ended(row) or left <= 0:
                return log
            await self._sleep((row.job, row.attempt), min(left, FOLLOW_SECONDS))

    async def follow_growing(
        self,
        job: int,
        attempt: int | None = None,
        offset: int = 0,
        timestamps: bool = False,
    ) -> AsyncIterator[bytes]:
        """Yields the log until it ends; across attempts unless one is named."""
        position = LogPosition(attempt or 0, offset)
        while True:
            part = await self.next_part(job, attempt, position, FOLLOW_MS, timestamps=timestamps)
            async for chunk in part.reading.chunks:
                yield chunk
            if part.is_over or self._engine.is_stopping:
                return
            position = LogPosition(part.reading.shown, part.reading.next)

    async def next_part(
        self,
        job: int,
        attempt: int | None,
        position: LogPosition,
        wait_ms: int,
        limit: int = READ_LIMIT,
        timestamps: bool = False,
    ) -> NextPart:
        """Returns what comes after `position`; waits for it, at most `wait_ms`.

        Unless an `attempt` is named, the rest of each log comes before the log of the next attempt.
        The last output of an attempt may arrive after the next one has begun: it waits `SETTLE_MS`
        for it. An engine that is stopping does not wait.
        """
        clock = asyncio.get_running_loop()
        deadline = clock.time() + wait_ms / 1000
        across = attempt is None and position.attempt > 0
        is_settled = False
        while True:
            log = await (self.log_behind(job, position) if across else self.log(job, attempt))
            is_same = position.attempt in (0, log.shown)
            left_ms = int((deadline - clock.time()) * 1000)
            is_settled = is_settled or self._engine.is_stopping
            if across and position.attempt < log.shown and not is_settled:
                is_settled = True
                rest_ms = min(left_ms, SETTLE_MS)
                await self.follow_log(job, position.attempt, position.offset, rest_ms)
                continue
            row, offset = log.row, position.offset if is_same else 0
            is_over = row.bytes <= offset and await self.log_is_over(row, attempt)
            if row.bytes > offset or is_over or left_ms <= 0 or self._engine.is_stopping:
                reading = await self.read_part(log, offset, limit)
                if timestamps and row.bytes > offset:
                    reading = await self.with_times(reading, offset)
                return NextPart(reading, is_over)
            if row.state == LogState.STREAMING:
                await self.follow_log(job, attempt, offset, min(left_ms, FOLLOW_MS))
            else:  # It has not begun, or another attempt may follow.
                await self._engine.jobs.wait_ended(job, min(left_ms, RECHECK_MS))

    async def settle_log(self, job: int, attempt: int | None) -> None:
        """Waits for the rest of the log if the job has ended: its last output may arrive later.

        Waits at most `SETTLE_MS`. The log of an open job is read as it is.
        """
        log = await self.log(job, attempt)
        if log.row.state != LogState.STREAMING or self._engine.is_stopping:
            return
        facts = (await self._engine.store.read(lambda tx: tx.jobs.read([job])))[job]
        if not facts.is_open:
            await self.follow_log(job, attempt, sys.maxsize, SETTLE_MS)

    async def log_is_over(self, row: LogRow, attempt: int | None = None) -> bool:
        """Returns True if nothing more can come: the job has ended, and so has its log.

        If nobody could write the end of a log, it is over once its worker has given up as well.
        """
        if row.state == LogState.STREAMING:
            view = await self._engine.store.read(lambda tx: tx.views.job(row.job))
            if view is None or view.facts.is_open or view.finished_at is None:
                return False
            return await self._engine.now() > view.finished_at + GIVEN_UP_MS
        facts = (await self._engine.store.read(lambda tx: tx.jobs.read([row.job])))[row.job]
        # Bytes that came after we read the row, and before the job ended, still have to be read.
        return not facts.is_open and (await self.log(row.job, attempt)).row == row

    async def _bytes(self, row: LogRow, offset: int, limit: int) -> bytes:
        part = await self._logs.find(row, offset, limit)
        return b"".join([chunk async for chunk in self._logs.read(part)])

    async def _writable(self, holder: Holder) -> LogRow:
        """Returns the log's row if the holder may write to it; called before any byte is stored."""

        async def read(tx: ReadTx) -> LogRow:
            lease = (await tx.leases.read([holder.job])).get(holder.job)
            mine = lease if lease is not None and is_held(lease, holder) else None
            await may_log(tx, holder, mine)
            return await log_of(tx, holder)

        return await self._engine.store.read(read)

    def _wake(self, holder: Holder) -> None:
        for follower in self._followers.get((holder.job, holder.attempt), ()):
            follower.set()

    async def _sleep(self, log: tuple[int, int], seconds: float) -> None:
        grown = asyncio.Event()
        self._followers.setdefault(log, set()).add(grown)
        timer = asyncio.get_running_loop().call_later(seconds, grown.set)
        try:
            await grown.wait()
        finally:
            timer.cancel()
            self._followers[log].discard(grown)
            if not self._followers[log]:
                del self._followers[log]


class _Attempts(NamedTuple):
    """A job's attempts: the number that people see by their own, ascending."""

    shown: dict[int, int]

    @property
    def newest(self) -> int:
        return max(self.shown)

    def number(self, shown: int) -> int:
        """Returns the own number of the newest attempt that is shown with this number."""
        return max((own for own, seen in self.shown.items() if seen == shown), default=shown)

    def found(self, row: LogRow) -> FoundLog:
        return FoundLog(row, self.shown.get(row.attempt, row.attempt))


async def _attempts(tx: ReadTx, job: int) -> _Attempts:
    view = existing("job", job, await tx.views.job(job))
    newest = newest_attempt(view.facts, view.lease)
    shown_number = ShownNumbers(view.attempts)
    numbers = sorted({newest, *(row.number for row in view.attempts)})
    return _Attempts({number: shown_number(number) for number in numbers})


def _no_log(job: int, attempt: int) -> LogRow:
    return LogRow(job, attempt, int(LogState.NONE), 0, 0, 0)


def _check_size(field: str, value: object) -> None:
    if type(value) is not int or not 0 <= value <= MAX_OFFSET:
        raise InvalidInput(field, f"an integer from 0 to {MAX_OFFSET}", value)
