"""Logs as segments: objects whose keys hold their offset, length and number of line ends.

A segment never changes. If bytes are written again, whole or split differently, a second segment
with the same bytes exists beside the first, and a reader takes the one that reaches farthest. Bytes
without a segment are a gap, which the reader sees as a line of text.

When a log has ended, its small segments are joined into a few large ones. Both exist for a while: a
reader whose chosen segment was just removed looks again.

The modification time of a segment says when its bytes came. Joined segments keep the times of their
parts in an object beside them.

A log over its limit keeps its beginning and a moving window at its end; the segments in between are
removed in batches.
"""

from collections.abc import AsyncIterator
from typing import Final, NamedTuple

import msgspec

from windlass.domain.rows.files import LogRow, LogState
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.ports.blobs import BlobInfo, Blobs

FOLDER: Final = "logs"
SEGMENT_LIMIT: Final = 4 * 1024 * 1024  # bytes in one append
MAX_OFFSET: Final = 2**53  # no log has a byte there
DELETE_AT_ONCE: Final = 1_000
UNKNOWN: Final = 1  # the size of the final gap of a log whose end never came
TRIES: Final = 4  # a segment that is being read may be joined, with the others around it
TIMES: Final = ".times"  # suffix of the object with the times of a joined segment


class LogPiece(NamedTuple):
    """Bytes of the log from `start` to `end`; without a key they are missing."""

    key: str
    offset: int  # where the segment begins
    start: int
    end: int
    # number of newlines in these bytes; None: unknown until they are read
    newlines: int | None = None
    modified_ms: int = 0


class Segment(NamedTuple):
    """An object with bytes of a log from `start` to `end`."""

    key: str
    start: int
    end: int
    newlines: int
    modified_ms: int


class LogPart(NamedTuple):
    """A part of a log; reading continues at `next`."""

    row: LogRow
    pieces: tuple[LogPiece, ...]
    next: int


def segment_key(job: int, attempt: int, offset: int, data: bytes | bytearray) -> str:
    """Returns the key of a segment; counts its newlines here, so that no reader has to."""
    newlines = data.count(b"\n")
    return f"{FOLDER}/{job}/{attempt}/{offset:020d}-{len(data)}-{newlines}"


def owner_of(key: str) -> tuple[int, int] | None:
    """Returns the job and attempt whose log a segment belongs to."""
    _, *numbers, _ = key.split("/")
    return (int(numbers[0]), int(numbers[1])) if len(numbers) == 2 else None


def placed(row: LogRow, offset: int, data: bytes) -> tuple[int, bytes]:
    """Returns the part of `data` that is new to the log, and its offset."""
    known = min(max(row.bytes - offset, 0), len(data))
    return offset + known, data[known:]


def grown(row: LogRow, offset: int, size: int, limit: int) -> LogRow:
    """Returns the row after this many bytes at `offset`, including the gap they leave."""
    row = row._replace(state=int(LogState.STREAMING))
    if offset > row.bytes:
        row = _with_gap(row, row.bytes, offset)
    row = row._replace(bytes=max(row.bytes, offset + size))
    if limit and row.bytes > limit:
        half = max(limit // 2, 1)
        step = max(limit // 16, 1)
        cut_to = (row.bytes - half) // step * step
        if cut_to > half:
            row = _with_gap(row, half, cut_to)
    return row


def _with_gap(row: LogRow, start: int, end: int) -> LogRow:
    known = row.gap_to > row.gap_from
    first = min(row.gap_from, start) if known else start
    return row._replace(gap_from=first, gap_to=max(row.gap_to, end))


class Logs:
    """The segments of all logs in one blob store."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    async def write(self, job: int, attempt: int, offset: int, data: bytes) -> None:
        """Writes bytes of a log; they become part of it when its row says so."""
        if len(data) > SEGMENT_LIMIT:
            raise InvalidInput("log", f"at most {SEGMENT_LIMIT} bytes at once", len(data))
        await self._blobs.put(segment_key(job, attempt, offset, data), data)

    async def cut(self, row: LogRow, limit: int) -> None:
        """Removes the segments that lie completely in the cut middle of a log over its limit."""
        half = max(limit // 2, 1)
        if not limit or row.gap_to <= half:
            return
        gone: list[str] = []
        async for key, start, end, *_ in self._segments(row, half):
            if start >= row.gap_to:
                break
            if start >= half and end <= row.gap_to:
                gone.append(key)
            if len(gone) >= DELETE_AT_ONCE:
                await self._blobs.delete(gone)
                gone = []
        await self._blobs.delete(gone)

    async def find(self, row: LogRow, offset: int, limit: int) -> LogPart:
        """Returns where the bytes from `offset` on are stored, at most `limit` of them."""
        position, left = offset, limit
        pieces: list[LogPiece] = []
        async for key, start, last, count, at in self._segments(row, position - SEGMENT_LIMIT):
            end = min(last, row.bytes)
            if end <= position:
                continue
            if left <= 0:
                return LogPart(row, tuple(pieces), position)
            if start > position:
                pieces.append(LogPiece("", position, position, start))
                position = start
            stop = min(end, position + left)
            newlines = count if (position, stop) == (start, last) else None
            pieces.append(LogPiece(key, start, position, stop, newlines, at))
            left -= stop - position
            position = stop
        if left > 0 and position < row.bytes:
            pieces.append(LogPiece("", position, position, row.bytes))
            position = row.bytes
        return LogPart(row, tuple(pieces), position)

    async def read(self, part: LogPart) -> AsyncIterator[bytes]:
        """Yields the bytes of a part, with a line instead of missing ones."""
        for piece in part.pieces:
            async for chunk in self._read_anew(part.row, piece, TRIES):
                yield chunk

    async def _read_anew(self, row: LogRow, piece: LogPiece, tries: int) -> AsyncIterator[bytes]:
        """Yields the bytes of a piece, from other segments if its own was just removed."""
        position = piece.start
        try:
            async for chunk in self.read_piece(piece):
                position += len(chunk) if piece.key else 0
                yield chunk
        except NotFound:  # It was just joined with others, or cut out of the middle.
            if tries == 1:
                yield left_out(piece.end - position)
                return
            for other in (await self.find(row, position, piece.end - position)).pieces:
                if other.start >= piece.end:
                    break  # Missing bytes do not count against a limit.
                async for chunk in self._read_anew(row, other, tries - 1):
                    yield chunk

    async def read_piece(self, piece: LogPiece) -> AsyncIterator[bytes]:
        """Yields the bytes of one piece, or a line instead of missing ones; raises `NotFound`."""
        if not piece.key:
            yield left_out(piece.end - piece.start)
            return
        span = piece.start - piece.offset, piece.end - piece.offset
        async for chunk in self._blobs.stream(piece.key, *span):
            yield chunk

    async def merge(self, row: LogRow) -> None:
        """Joins the segments of an ended log into as few as possible."""
        run: list[LogPiece] = []
        for piece in (await self.find(row, 0, row.bytes)).pieces:
            full = run and piece.end - run[0].start > SEGMENT_LIMIT
            if full or not piece.key:
                await self._join(row, run)
                run = []
            if piece.key:
                run.append(piece)
        await self._join(row, run)

    async def _join(self, row: LogRow, run: list[LogPiece]) -> None:
        """Writes a run of pieces as one segment, and removes those it contains completely."""
        if len(run) < 2:
            return
        data = bytearray()
        for piece in run:
            async for chunk in self.read_piece(piece):
                data += chunk
        begin, end = run[0].start, run[-1].end
        joined = segment_key(row.job, row.attempt, begin, data)
        came = await self.times(row, begin, end)
        await self._blobs.put(joined + TIMES, msgspec.json.encode(came))
        await self._blobs.put(joined, bytes(data))
        inside = [
            info.key
            async for info, _, stop in self._objects(row, begin, end)
            if stop <= end and not info.key.startswith(joined)
        ]
        for first in range(0, len(inside), DELETE_AT_ONCE):
            await self._blobs.delete(inside[first : first + DELETE_AT_ONCE])

    async def times(
        self, row: LogRow, begin: int = 0, end: int = MAX_OFFSET
    ) -> list[tuple[int, int]]:
        """Returns (offset, time in ms) pairs for the segments that begin in a range."""
        came: dict[int, int] = {}
        async for info, start, _ in self._objects(row, begin, end):
            parts = [(start, info.modified_ms)]
            if info.key.endswith(TIMES):
                parts = msgspec.json.decode(
                    await self._blobs.get(info.key) or b"[]", type=list[tuple[int, int]]
                )
            for offset, ms in parts:
                came[offset] = min(ms, came.get(offset, ms))
        return sorted(came.items())

    async def times_of(self, piece: LogPiece) -> list[tuple[int, int]]:
        """Returns (offset, time in ms) pairs of a piece, in order."""
        joined = await self._blobs.get(piece.key + TIMES)
        if joined is None:
            return [(piece.offset, piece.modified_ms)]
        return msgspec.json.decode(joined, type=list[tuple[int, int]])

    async def _segments(self, row: LogRow, start: int) -> AsyncIterator[Segment]:
        """Yields the segments that begin at `start` or later, in order."""
        async for info, begin, end in self._objects(row, start):
            if not info.key.endswith(TIMES):
                newlines = int(info.key.rpartition("-")[2])
                yield Segment(info.key, begin, end, newlines, info.modified_ms)

    async def _objects(
        self, row: LogRow, start: int, before: int = MAX_OFFSET
    ) -> AsyncIterator[tuple[BlobInfo, int, int]]:
        """Yields the segments that begin in this range, each preceded by its times, if any."""
        folder = f"{FOLDER}/{row.job}/{row.attempt}"
        async for info in self._blobs.list(folder, f"{folder}/{max(start, 0):020d}"):
            name = info.key.rpartition("/")[2].removesuffix(TIMES)
            offset, size, _ = name.split("-")
            if int(offset) >= before:
                return
            yield info, int(offset), int(offset) + int(size)


def left_out(count: int) -> bytes:
    """Returns the line that replaces missing bytes."""
    if count == UNKNOWN:
        return b"\n[windlass: the rest of the log was lost]\n"
    return f"\n[windlass: {count} bytes of the log were left out here]\n".encode()
