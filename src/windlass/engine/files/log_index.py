"""Line numbers in a log, without reading it: the keys of its segments count their newlines.

A line is what `windlass logs` prints as one: missing bytes appear as a line of their own, so they
count as two newlines. Only the segment with the wanted line is read.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from windlass.domain.rows.files import LogRow
from windlass.domain.values.errors import NotFound
from windlass.engine.attempts.log_segments import LogPiece, Logs, left_out

BLOCK: Final = 64 * 1024
GAP_LINES: Final = 2  # newlines in the line that replaces missing bytes


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
