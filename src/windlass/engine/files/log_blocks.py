"""Reads a log in blocks of whole lines, forwards or backwards, with read-ahead.

Reading one by one would cost a thousand round trips to a bucket for a log of 1 GB, or many disk
reads while its segments are still small.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from itertools import islice
from typing import Final, NamedTuple

from windlass.engine.attempts.log_segments import LogPiece, Logs
from windlass.engine.files.log_index import LineIndex, bytes_of

BLOCK: Final = 1024 * 1024  # maximum bytes of one read; a longer line is split
AHEAD: Final = 4 * BLOCK  # bytes read ahead of need
AT_ONCE: Final = 16  # concurrent reads


class Block(NamedTuple):
    """Lines of a log from `offset` on, without a gap between them."""

    offset: int
    data: bytes


async def blocks_after(logs: Logs, index: LineIndex, start: int) -> AsyncGenerator[Block, None]:
    """Yields the lines from `start` on; raises `NotFound` if a segment was just replaced."""
    held, offset = bytearray(), start
    async with aclosing(_read_ahead(logs, _pieces_after(index, start))) as pieces:
        async for piece, data in pieces:
            if not piece.key and held:
                yield Block(offset, bytes(held))
                held.clear()
            if not held:
                offset = piece.start
            held += data
            if len(held) >= BLOCK:
                cut = held.rfind(b"\n") + 1 or len(held)
                yield Block(offset, bytes(held[:cut]))
                offset += cut
                del held[:cut]
    if held:
        yield Block(offset, bytes(held))


async def blocks_before(logs: Logs, index: LineIndex, end: int) -> AsyncGenerator[Block, None]:
    """Yields the lines before `end`, the last ones first; raises `NotFound` like the other."""
    parts: deque[bytes] = deque()
    size, offset = 0, end
    async with aclosing(_read_ahead(logs, _pieces_before(index, end))) as pieces:
        async for piece, data in pieces:
            if not piece.key and size:
                yield Block(offset, b"".join(parts))
                parts.clear()
                size = 0
            offset = piece.start
            parts.appendleft(data)
            size += len(data)
            if size >= BLOCK:
                held = b"".join(parts)
                cut = (held.find(b"\n") + 1) % size  # The line before it may begin earlier.
                yield Block(offset + cut, held[cut:])
                parts = deque([held[:cut]])
                size = cut
    if size:
        yield Block(offset, b"".join(parts))


def _pieces_after(index: LineIndex, start: int) -> Iterator[LogPiece]:
    """Yields the pieces to read one by one: at most a block, from one segment; gaps as they are."""
    if start >= index.row.bytes:
        return
    for piece in islice(index.pieces, index.piece_at(start), None):
        low = max(piece.start, start)
        if not piece.key:
            yield piece
            continue
        for begin in range(low, piece.end, BLOCK):
            yield piece._replace(start=begin, end=min(piece.end, begin + BLOCK))


def _pieces_before(index: LineIndex, end: int) -> Iterator[LogPiece]:
    if end <= 0:
        return
    for number in range(index.piece_at(end - 1), -1, -1):
        piece = index.pieces[number]
        high = min(piece.end, end)
        if not piece.key:
            yield piece
            continue
        for stop in range(high, piece.start, -BLOCK):
            yield piece._replace(start=max(piece.start, stop - BLOCK), end=stop)


async def _read_ahead(
    logs: Logs, pieces: Iterator[LogPiece]
) -> AsyncGenerator[tuple[LogPiece, bytes], None]:
    """Yields the pieces with their bytes, in order; a gap has none.

    A search often ends soon, so it reads ahead no more than it has used so far.
    """
    create = asyncio.get_running_loop().create_task
    under_way: deque[tuple[LogPiece, asyncio.Task[bytes] | None]] = deque()
    waiting, done = 0, 0  # bytes
    try:
        while True:
            while len(under_way) < AT_ONCE and waiting <= min(AHEAD, done):
                piece = next(pieces, None)
                if piece is None:
                    break
                read = create(bytes_of(logs, piece, piece.start)) if piece.key else None
                under_way.append((piece, read))
                waiting += piece.end - piece.start if read else 0
            if not under_way:
                return
            piece, read = under_way.popleft()
            data = b"" if read is None else await read
            waiting -= len(data)
            done += len(data)
            yield piece, data
    finally:
        left = [read for _, read in under_way if read is not None]
        for read in left:
            read.cancel()
        await asyncio.gather(*left, return_exceptions=True)
