"""A page of a log: some lines with their numbers, offsets and times, at a bounded cost."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from windlass.engine.attempts.log_segments import LogPiece, Logs
from windlass.engine.files.log_index import LineIndex, bytes_of

PAGE_BYTES: Final = 1024 * 1024  # maximum bytes read for one page, unless its first line is longer
LINE_BYTES: Final = 16 * 1024  # maximum bytes shown of one line
LAST_MS: Final = 253_402_300_800_000  # the year 10000: blob stores without times report more


class LogLine(NamedTuple):
    """A line without its line end: `data` are its first bytes, `size` is its length."""

    number: int
    offset: int
    data: bytes
    size: int
    at_ms: int | None


class Read(NamedTuple):
    """Bytes of a piece from `offset` on."""

    offset: int
    data: bytes
    piece: LogPiece


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
        LogLine(first + place, offset, data[:LINE_BYTES], size, _time_at(times, offset))
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
