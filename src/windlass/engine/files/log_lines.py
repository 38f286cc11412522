"""Lines of logs: where the last ones begin, and when each came."""

from bisect import bisect_right
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final

from windlass.domain.values.quantities import format_moment

BLOCK: Final = 256 * 1024  # bytes read at once, from the end backwards

ReadBytes = Callable[[int, int], Awaitable[bytes]]


async def start_of_last(lines: int, size: int, read: ReadBytes) -> int:
    """Returns where the last `lines` lines of a log of `size` bytes begin."""
    if lines <= 0:
        return size
    end, left = size, lines
    while end > 0:
        begin = max(end - BLOCK, 0)
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
        for line in _lines(chunk):
            if is_start:
                made += _time_at(offset, offsets, times)
            made += line
            offset += len(line)
            is_start = line.endswith(b"\n")
        yield bytes(made)


def _lines(chunk: bytes) -> list[bytes]:
    """Splits at newlines alone."""
    *whole, rest = chunk.split(b"\n")
    return [line + b"\n" for line in whole] + ([rest] if rest else [])


def _time_at(offset: int, offsets: Sequence[int], times: Sequence[tuple[int, int]]) -> bytes:
    index = bisect_right(offsets, offset) - 1
    return b"" if index < 0 else f"{format_moment(times[index][1])} ".encode()
