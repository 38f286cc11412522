"""Searches a log on the server: forwards or backwards, a bounded number of bytes per call.

It reads blocks of whole lines ahead of need. Reading one by one would cost a thousand round trips
to a bucket for a log of 1 GB, or many disk reads while its segments are still small. It returns one
match per line. Regular expressions use RE2, whose time grows only with the length of the text, so
nobody can keep a server busy with one.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.engine.attempts.log_segments import LogPiece, Logs
from windlass.engine.files.log_pages import LineIndex, bytes_of, text_of
from windlass.messages.files import LogMatch, LogMatches

BLOCK: Final = 1024 * 1024  # maximum bytes of one read; a longer line is split
AHEAD: Final = 4 * BLOCK  # bytes read ahead of need
AT_ONCE: Final = 16  # concurrent reads
SCAN_BYTES: Final = 128 * 1024 * 1024  # bytes searched in one call
MAX_TEXT: Final = 1_000  # maximum bytes of a search text
MEMORY: Final = 8 * 1024 * 1024  # memory that an expression may use
AROUND: Final = 200  # bytes of the line that are shown before and after a match
Find = Callable[[bytes, int], tuple[int, int] | None]  # position of the first match from there on


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


def finder(text: str, is_regex: bool, ignore_case: bool) -> Find:
    """Returns a function that finds this text, or this regular expression, in a block of lines."""
    wanted = text.encode("utf-8", "surrogatepass")
    if not wanted or len(wanted) > MAX_TEXT:
        raise InvalidInput("text", f"1 to {MAX_TEXT} bytes", f"{len(wanted)} bytes")
    if b"\n" in wanted:
        raise InvalidInput("text", "text within one line", text)
    return _compiled(wanted, text, is_regex, ignore_case)


def _compiled(wanted: bytes, text: str, is_regex: bool, ignore_case: bool) -> Find:
    """Returns a search by RE2, which also finds plain text faster than `bytes.find`."""
    import re2  # the first search loads the library

    options = re2.Options()
    options.never_nl = True
    options.case_sensitive = not ignore_case
    options.log_errors = False
    options.max_mem = MEMORY
    if not is_regex:
        options.literal = True
        if not ignore_case:
            options.encoding = re2.Options.Encoding.LATIN1  # search raw bytes
    try:
        compiled: Any = re2.compile((b"(?m)" if is_regex else b"") + wanted, options)
    except re2.error as error:
        why = error.args[0] if error.args else ""
        shown = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise InvalidInput("text", "a regular expression", text, shown) from None

    def find(data: bytes, start: int) -> tuple[int, int] | None:
        match = compiled.search(data, start)
        return None if match is None else match.span()

    return find


async def search(
    logs: Logs, index: LineIndex, find: Find, start: int, backwards: bool, limit: int
) -> LogMatches:
    """Returns up to `limit` matches after `start`, or before it.

    Segments may be joined meanwhile. Then it returns what it has found so far, and the next call
    continues from there; it raises `NotFound` only if nothing was searched yet.
    """
    run = asyncio.get_running_loop().run_in_executor
    matches: list[LogMatch] = []
    scanned, position = 0, start
    reading = blocks_before if backwards else blocks_after
    try:
        async with aclosing(reading(logs, index, start)) as blocks:
            async for block in blocks:
                most = None if backwards else limit - len(matches)
                found = await run(None, _matches, block, find, most)
                first = await index.line_at(block.offset) if found else 0
                scanned += len(block.data)
                if backwards:
                    found = found[::-1][: limit - len(matches)]
                matches += _numbered(found, block, first)
                position = block.offset + (0 if backwards else len(block.data))
                if len(matches) == limit:
                    position = _beyond(matches[-1], block, backwards)
                if scanned >= SCAN_BYTES or len(matches) == limit:
                    is_over = position <= 0 if backwards else position >= index.row.bytes
                    return LogMatches(
                        matches=tuple(matches), next=None if is_over else position, scanned=scanned
                    )
    except NotFound:
        if not scanned:
            raise
        return LogMatches(matches=tuple(matches), next=position, scanned=scanned)
    return LogMatches(matches=tuple(matches), next=None, scanned=scanned)


def _numbered(found: list[LogMatch], block: Block, first: int) -> Iterator[LogMatch]:
    """Yields the matches with their line numbers; the block begins with line `first`."""
    for match in found:
        line = first + block.data.count(b"\n", 0, match.offset - block.offset)
        yield msgspec.structs.replace(match, line=line)


def _beyond(match: LogMatch, block: Block, backwards: bool) -> int:
    """Returns where a search continues after a match: the next line, or the line before."""
    at = match.offset - block.offset
    if backwards:
        return block.offset + block.data.rfind(b"\n", 0, at) + 1
    end = block.data.find(b"\n", at)
    return block.offset + (len(block.data) if end < 0 else end + 1)


def _matches(block: Block, find: Find, limit: int | None) -> list[LogMatch]:
    found: list[LogMatch] = []
    data, at = block.data, 0
    while at < len(data) and (limit is None or len(found) < limit):
        span = find(data, at)
        if span is None:
            break
        start, end = span
        begin = max(data.rfind(b"\n", 0, start) + 1, start - AROUND)
        stop = data.find(b"\n", end)
        stop = len(data) if stop < 0 else stop
        last = min(stop, end + AROUND)
        found.append(
            LogMatch(
                line=0,
                offset=block.offset + start,
                before=text_of(data[begin:start]),
                match=text_of(data[start:end]),
                after=text_of(data[end:last]),
            )
        )
        at = stop + 1
    return found
