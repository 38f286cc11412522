"""Makes an input smaller while it still shows the same bug: delta debugging.

It removes lines first, then bracketed terms, then words, then bytes if the rest is short. Each
step makes the next one cheaper.
"""

import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

MAX_TRIES: Final = 2_000
FEW_BYTES: Final = 512  # in longer inputs, removing single bytes takes too many runs
_WORDS: Final = re.compile(rb"[A-Za-z_][\w.-]*|\d+|\s+|[^\w\s]")

StillFails = Callable[[bytes], Awaitable[bool]]
"""Returns whether an input still shows the bug; returns False once the time is over."""


async def minimise(data: bytes, still_fails: StillFails, tries: int = MAX_TRIES) -> bytes:
    """Returns the smallest input found; `data` itself must show the bug."""
    counted = _CountedCheck(still_fails, tries)
    while True:
        before = len(data)
        for split in (_lines, _brackets, _words, _bytes):
            data = await reduce_pieces(split(data), counted)
        data = await _hoist(data, counted)
        if len(data) == before or counted.left <= 0:
            return data


class _CountedCheck:
    """Limits the number of runs, and remembers earlier answers."""

    def __init__(self, still_fails: StillFails, tries: int) -> None:
        self._still_fails = still_fails
        self._known: dict[bytes, bool] = {}
        self.left = tries

    async def __call__(self, data: bytes) -> bool:
        if data not in self._known:
            if self.left <= 0:
                return False
            self.left -= 1
            self._known[data] = await self._still_fails(data)
        return self._known[data]


def without(data: bytes, word: str) -> bytes:
    """Returns an input without the outermost bracketed terms that contain a word."""
    kept, place = [], 0
    wanted = re.compile(rb"(?<![^\s()])" + re.escape(word.encode()) + rb"(?![^\s()])")
    while (start := data.find(b"(", place)) >= 0:
        end = _end_of(data, start) + 1
        kept.append(data[place:start])
        if not wanted.search(data[start:end]):
            kept.append(data[start:end])
        place = end
    return b"".join([*kept, data[place:]])


async def reduce_pieces(pieces: Sequence[bytes], still_fails: StillFails) -> bytes:
    """Removes ever smaller groups of pieces as long as the bug stays."""
    kept = list(pieces)
    size = max(len(kept) // 2, 1)
    while kept:
        shorter = await _leave_out(kept, size, still_fails)
        if len(shorter) == len(kept) and size == 1:
            break
        size = max(min(size, len(shorter)) // 2, 1) if len(shorter) == len(kept) else size
        kept = shorter
    return b"".join(kept)


async def _leave_out(pieces: list[bytes], size: int, still_fails: StillFails) -> list[bytes]:
    """Makes one pass from the end, where most removable pieces are."""
    start = max(len(pieces) - size, 0)
    while True:
        candidate = pieces[:start] + pieces[start + size :]
        if len(candidate) < len(pieces) and await still_fails(b"".join(candidate)):
            pieces = candidate
        if start == 0:
            return pieces
        start = max(start - size, 0)


async def _hoist(data: bytes, still_fails: StillFails) -> bytes:
    """Replaces a term with one of its inner terms, from the outside in."""
    start = data.find(b"(")
    while start >= 0:
        end = _end_of(data, start)
        for inner in _terms(data[start + 1 : end]):
            candidate = data[:start] + inner + data[end + 1 :]
            if await still_fails(candidate):
                data = candidate
                break
        else:
            start = data.find(b"(", start + 1)
    return data


def _end_of(data: bytes, start: int) -> int:
    """Returns the position of the bracket that closes the one at `start`."""
    depth = 0
    for place in range(start, len(data)):
        depth += {ord("("): 1, ord(")"): -1}.get(data[place], 0)
        if depth == 0:
            return place
    return len(data)


def _terms(data: bytes) -> Iterator[bytes]:
    """Yields the bracketed terms next to each other."""
    place = data.find(b"(")
    while place >= 0:
        end = _end_of(data, place)
        yield data[place : end + 1]
        place = data.find(b"(", end + 1)


def _lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def _words(data: bytes) -> list[bytes]:
    return _WORDS.findall(data) if b"\0" not in data else [data]


def _bytes(data: bytes) -> list[bytes]:
    return [data[n : n + 1] for n in range(len(data))] if len(data) <= FEW_BYTES else [data]


def _brackets(data: bytes) -> list[bytes]:
    """Splits by the terms inside the outermost brackets."""
    return list(_balanced(data)) if data.count(b"(") else [data]


def _balanced(data: bytes) -> Iterator[bytes]:
    """Yields pieces of depth 0 and 1 as they are, and each deeper term as one piece."""
    depth = start = 0
    for place, byte in enumerate(data):
        if byte == ord("("):
            if depth == 1:
                yield data[start:place]
                start = place
            depth += 1
        elif byte == ord(")"):
            depth = max(depth - 1, 0)
            if depth == 1:
                yield data[start : place + 1]
                start = place + 1
    yield data[start:]
