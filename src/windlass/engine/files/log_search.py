"""Searches a log on the server: forwards or backwards, a bounded number of bytes per call.

It returns one match per line. Regular expressions use RE2, whose time grows only with the length of
the text, so nobody can keep a server busy with one.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any, Final, NamedTuple

from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.engine.attempts.log_segments import Logs
from windlass.engine.files.log_blocks import Block, blocks_after, blocks_before
from windlass.engine.files.log_index import LineIndex

SCAN_BYTES: Final = 128 * 1024 * 1024  # bytes searched in one call
MAX_TEXT: Final = 1_000  # maximum bytes of a search text
MEMORY: Final = 8 * 1024 * 1024  # memory that an expression may use
AROUND: Final = 200  # bytes of the line that are shown before and after a match

Find = Callable[[bytes, int], tuple[int, int] | None]  # position of the first match from there on


class LogMatch(NamedTuple):
    """A line with a match: where the match is, and its surroundings."""

    line: int
    offset: int
    before: bytes
    match: bytes
    after: bytes


class LogMatches(NamedTuple):
    """Matches in the order of the search, which continues at `next`, unless all was searched."""

    matches: list[LogMatch]
    next: int | None
    scanned: int


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
                    return LogMatches(matches, None if is_over else position, scanned)
    except NotFound:
        if not scanned:
            raise
        return LogMatches(matches, position, scanned)
    return LogMatches(matches, None, scanned)


def _numbered(found: list[LogMatch], block: Block, first: int) -> Iterator[LogMatch]:
    """Yields the matches with their line numbers; the block begins with line `first`."""
    for match in found:
        line = first + block.data.count(b"\n", 0, match.offset - block.offset)
        yield match._replace(line=line)


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
            LogMatch(0, block.offset + start, data[begin:start], data[start:end], data[end:last])
        )
        at = stop + 1
    return found
