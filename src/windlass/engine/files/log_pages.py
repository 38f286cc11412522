"""Lines of a log: their numbers, pages of them, their times, and the colours at the start of a
page.

Line numbers need no reading: the keys of a log's segments count their newlines. A line is what
`windlass logs` prints as one: missing bytes appear as a line of their own, so they count as two
newlines. Only the segment with the wanted line is read. A page costs a bounded number of bytes.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Final, NamedTuple

from windlass.domain.rows.files import LogRow
from windlass.domain.values.errors import NotFound
from windlass.domain.values.quantities import format_moment, shown_moment
from windlass.engine.attempts.log_segments import LogPiece, Logs, left_out
from windlass.messages.files import LogLine

BLOCK: Final = 64 * 1024
GAP_LINES: Final = 2  # newlines in the line that replaces missing bytes
PAGE_BYTES: Final = 1024 * 1024  # maximum bytes read for one page, unless its first line is longer
LINE_BYTES: Final = 16 * 1024  # maximum bytes shown of one line
LAST_MS: Final = 253_402_300_800_000  # the year 10000: blob stores without times report more
LOOK_BACK: Final = 64 * 1024  # bytes before a page
MAX_SEQUENCES: Final = 32
SEQUENCE: Final = re.compile(rb"\x1b\[([0-9;:]{0,64})m")
TAIL_BLOCK: Final = 256 * 1024  # bytes read at once, from the end backwards
ReadBytes = Callable[[int, int], Awaitable[bytes]]


class LineIndex:
    """The pieces of a log, and how many newlines come before each of them."""

    def __init__(
        self, logs: Logs, row: LogRow, pieces: Sequence[LogPiece], newlines: Sequence[int],
        is_terminated: bool,
    ) -> None:  # fmt: skip
        self.row = row
        self.pieces = pieces
        self._logs = logs
        self._starts = [piece.start for piece in pieces]
        self._before = [0]
        for count in newlines:
            self._before.append(self._before[-1] + count)
        self._is_terminated = is_terminated

    @classmethod
    async def read(cls, logs: Logs, row: LogRow) -> "LineIndex":
        """Reads the names of a log's segments, and the few bytes whose newlines are not counted."""
        pieces = (await logs.find(row, 0, row.bytes)).pieces
        newlines = [await _newlines(logs, piece) for piece in pieces]
        is_terminated = True
        if pieces:
            last = pieces[-1]
            is_terminated = (await bytes_of(logs, last, last.end - 1)).endswith(b"\n")
        return cls(logs, row, pieces, newlines, is_terminated)

    @property
    def lines(self) -> int:
        """Returns how many lines there are; the last one may be unfinished."""
        return self._before[-1] + (not self._is_terminated)

    def piece_at(self, offset: int) -> int:
        """Returns the number of the piece that contains this byte."""
        return max(0, bisect_right(self._starts, offset) - 1)

    def newlines_before(self, piece: int) -> int:
        """Returns how many newlines come before this piece."""
        return self._before[piece]

    async def start_of(self, line: int) -> int:
        """Returns where a line begins, counted from 1; the end of the log if there are fewer."""
        if line <= 1:
            return 0
        wanted = line - 1  # It begins after this newline.
        if wanted > self._before[-1]:
            return self.row.bytes
        number = bisect_left(self._before, wanted) - 1
        piece = self.pieces[number]
        if not piece.key:
            return piece.end if wanted == self._before[number + 1] else piece.start
        data = await bytes_of(self._logs, piece, piece.start)
        return piece.start + _behind_newline(data, wanted - self._before[number])

    async def line_at(self, offset: int) -> int:
        """Returns the number of the line that contains this byte."""
        if not self.pieces:
            return 1
        offset = min(max(0, offset), self.row.bytes - 1)
        number = self.piece_at(offset)
        piece = self.pieces[number]
        if not piece.key:
            return self._before[number] + GAP_LINES
        data = await bytes_of(self._logs, piece, piece.start)
        return self._before[number] + data.count(b"\n", 0, offset - piece.start) + 1


async def bytes_of(logs: Logs, piece: LogPiece, start: int) -> bytes:
    """Returns the bytes of a piece from `start` on, or the line that replaces missing ones."""
    if not piece.key:
        return left_out(piece.end - piece.start)
    part = piece._replace(start=start)
    data = b"".join([chunk async for chunk in logs.read_piece(part)])
    if len(data) != part.end - start:
        raise NotFound("object", piece.key)  # It was just replaced.
    return data


async def _newlines(logs: Logs, piece: LogPiece) -> int:
    if not piece.key:
        return GAP_LINES
    if piece.newlines is not None:
        return piece.newlines
    return (await bytes_of(logs, piece, piece.start)).count(b"\n")


def _behind_newline(data: bytes, number: int) -> int:
    """Returns the position after the given newline, counted from 1."""
    at = 0
    while (inside := data.count(b"\n", at, at + BLOCK)) < number:
        number -= inside
        at += BLOCK
    for _ in range(number):
        at = data.index(b"\n", at) + 1
    return at


class Read(NamedTuple):
    """Bytes of a piece from `offset` on."""

    offset: int
    data: bytes
    piece: LogPiece


def text_of(data: bytes) -> str:
    """Returns bytes of a log as text."""
    return data.decode("utf-8", "replace")


async def read_page(logs: Logs, index: LineIndex, first: int, count: int) -> list[LogLine]:
    """Returns up to `count` lines from number `first` on; fewer if they are long."""
    start = await index.start_of(first)
    if start >= index.row.bytes:
        return []
    reads = await _read(logs, index, start, first)
    found: list[tuple[int, bytes, int]] = []
    for line in _lines(reads, start):
        found.append(line)
        if len(found) == count:
            break
    if not found:  # Only the beginning of a long line.
        end = await index.start_of(first + 1)
        is_last = first >= index.lines
        begin = b"".join(read.data for read in reads)[:LINE_BYTES]
        found.append((start, begin, end - start - (not is_last)))
    elif len(found) < count and _end_of(reads) >= index.row.bytes:
        rest = _unfinished(reads, start)
        if rest[1]:
            found.append((rest[0], rest[1][:LINE_BYTES], len(rest[1])))
    times = await _times(logs, reads)
    return [
        LogLine(
            number=first + place,
            offset=offset,
            text=text_of(data[:LINE_BYTES]),
            size=size,
            is_cut=min(len(data), LINE_BYTES) < size,
            at=shown_moment(_time_at(times, offset)),
        )
        for place, (offset, data, size) in enumerate(found)
    ]


async def _read(logs: Logs, index: LineIndex, start: int, first: int) -> list[Read]:
    """Reads what begins with line `first` at `start`."""
    number, limit = index.piece_at(start), PAGE_BYTES
    reads: list[Read] = []
    for piece in index.pieces[number:]:
        if limit <= 0:
            break
        begin = max(piece.start, start)
        part = piece._replace(end=min(piece.end, begin + limit)) if piece.key else piece
        data = await bytes_of(logs, part, begin)
        if not reads and not piece.key and first > index.newlines_before(number) + 1:
            data = data[1:]  # Its first newline ends the line before.
        reads.append(Read(begin, data, piece))
        limit -= len(data)
    return reads


def _end_of(reads: Sequence[Read]) -> int:
    last = reads[-1]
    return last.offset + len(last.data) if last.piece.key else last.piece.end


def _lines(reads: Sequence[Read], start: int) -> Iterator[tuple[int, bytes, int]]:
    """Yields offset, bytes and size of each line that ends in the bytes read."""
    begin, rest = start, b""
    for read in reads:
        at = 0
        while (end := read.data.find(b"\n", at)) >= 0:
            line = rest + read.data[at:end]
            yield begin, line, len(line)
            at, rest = end + 1, b""
            begin = _place(read, at)
        rest += read.data[at:]


def _unfinished(reads: Sequence[Read], start: int) -> tuple[int, bytes]:
    """Returns the bytes read after the last newline, and where they begin."""
    begin, rest = start, b""
    for read in reads:
        end = read.data.rfind(b"\n")
        if end >= 0:
            begin, rest = _place(read, end + 1), b""
        rest += read.data[end + 1 :]
    return begin, rest


def _place(read: Read, at: int) -> int:
    """Returns the log offset of a byte that was read; a gap counts as one position, at its end."""
    if read.piece.key:
        return read.offset + at
    return read.piece.end if at == len(read.data) else read.piece.start


async def _times(logs: Logs, reads: Sequence[Read]) -> list[tuple[int, int]]:
    times: list[tuple[int, int]] = []
    for read in reads:
        if read.piece.key:
            times += await logs.times_of(read.piece)
    return times


def _time_at(times: Sequence[tuple[int, int]], offset: int) -> int | None:
    place = bisect_right(times, offset, key=lambda one: one[0]) - 1
    return None if place < 0 or times[place][1] >= LAST_MS else times[place][1]


async def colours_before(logs: Logs, index: LineIndex, start: int) -> bytes:
    """Returns the colour escape sequences that are in force at byte `start`."""
    begin = max(0, start - LOOK_BACK)
    data = b""
    for piece in index.pieces[index.piece_at(begin) :]:
        if piece.start >= start:
            break
        if piece.key:  # Missing bytes have no colours.
            part = piece._replace(end=min(piece.end, start))
            data += await bytes_of(logs, part, max(piece.start, begin))
    return in_force(data)


def in_force(data: bytes) -> bytes:
    """Returns a text's escape sequences from the last reset on, at most the last few."""
    found: list[bytes] = []
    for match in SEQUENCE.finditer(data):
        codes = re.split(rb"[;:]", match[1])
        if not codes[0].strip(b"0"):
            found.clear()
        if len(codes) > 1 or codes[0].strip(b"0"):
            found.append(match[0])
    return b"".join(found[-MAX_SEQUENCES:])


async def start_of_last(lines: int, size: int, read: ReadBytes) -> int:
    """Returns where the last `lines` lines of a log of `size` bytes begin."""
    if lines <= 0:
        return size
    end, left = size, lines
    while end > 0:
        begin = max(end - TAIL_BLOCK, 0)
        block = await read(begin, end - begin)
        at = len(block)
        if end == size and block.endswith(b"\n"):
            at -= 1  # It ends the last line and begins none.
        while (at := block.rfind(b"\n", 0, at)) >= 0:
            left -= 1
            if not left:
                return begin + at + 1
        end = begin
    return 0


def start_since(times: Sequence[tuple[int, int]], since_ms: int, size: int) -> int:
    """Returns where the first bytes that came at `since_ms` or later begin."""
    return next((offset for offset, ms in times if ms >= since_ms), size)


async def with_times(
    chunks: AsyncIterator[bytes], offset: int, is_start: bool, times: Sequence[tuple[int, int]]
) -> AsyncIterator[bytes]:
    """Yields a log from `offset` with each line's time before it.

    `is_start` says that a line begins at `offset`.
    """
    offsets = [begin for begin, _ in times]
    async for chunk in chunks:
        made = bytearray()
        for line in _lines_of(chunk):
            if is_start:
                made += _time_before(offset, offsets, times)
            made += line
            offset += len(line)
            is_start = line.endswith(b"\n")
        yield bytes(made)


def _lines_of(chunk: bytes) -> list[bytes]:
    """Splits at newlines alone."""
    *whole, rest = chunk.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def _time_before(offset: int, offsets: Sequence[int], times: Sequence[tuple[int, int]]) -> bytes:
    index = bisect_right(offsets, offset) - 1
    return b"" if index < 0 else f"{format_moment(times[index][1])} ".encode()
