"""Pages of a log by line number, and searches, on segments cut in any way."""

import asyncio
import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.forms import by_form
from windlass.blobs.local import LocalBlobs
from windlass.blobs.memory import MemoryBlobs
from windlass.domain.rows.files import LogRow, LogState
from windlass.domain.values.errors import InvalidInput
from windlass.engine.attempts.log_segments import Logs, left_out
from windlass.engine.files import log_pages, log_search
from windlass.engine.files.log_pages import LineIndex, colours_before, read_page
from windlass.engine.files.log_search import finder, search
from windlass.messages.files import LogMatches
from windlass.ports.blobs import Blobs

TEXTS = st.lists(st.sampled_from([b"a", b"bb", b"\n", b"ERR", b"\xc3\xa9"]), max_size=40).map(
    b"".join
)


class Reads:
    """Counts what is read of blobs. Read `waits` ends only after read `waited_for` has begun."""

    def __init__(self, blobs: Blobs, waits: int = 0, waited_for: int = 0) -> None:
        self.bytes = 0
        self.number = 0
        self._waits, self._waited_for = waits, waited_for
        self._later = asyncio.Event()
        self._stream = blobs.stream
        blobs.stream = self.stream  # type: ignore[method-assign]

    async def stream(self, key: str, start: int = 0, end: int | None = None):  # type: ignore[no-untyped-def]
        self.number += 1
        if self.number == self._waited_for:
            self._later.set()
        if self.number == self._waits:
            await self._later.wait()
        async for chunk in self._stream(key, start, end):
            self.bytes += len(chunk)
            yield chunk


async def stored(
    data: bytes, cuts: Sequence[int], missing: int = -1, blobs: Blobs | None = None
) -> tuple[Logs, LineIndex, bytes]:
    """Stores a log in segments; returns also what it reads as, with one segment left out."""
    logs = Logs(blobs or MemoryBlobs())
    bounds = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    shown = b""
    for number, (start, end) in enumerate(pairwise(bounds)):
        if number == missing:
            shown += left_out(end - start)
            continue
        await logs.write(1, 1, start, data[start:end])
        shown += data[start:end]
    row = LogRow(1, 1, int(LogState.COMMITTED), len(data), 0, 0)
    return logs, await LineIndex.read(logs, row), shown


def lines_of(shown: bytes) -> list[bytes]:
    lines = shown.split(b"\n")
    return lines[:-1] if lines[-1] == b"" else lines


@given(TEXTS, st.lists(st.integers(0, 99), max_size=4), st.integers(-1, 3), st.integers(1, 9))
def test_pages_hold_the_lines_that_the_whole_log_has(
    data: bytes, cuts: list[int], missing: int, count: int
) -> None:
    async def scenario() -> None:
        logs, index, shown = await stored(data, cuts, missing)
        expected = lines_of(shown)
        assert index.lines == len(expected)
        found: list[str] = []
        while len(found) < len(expected):
            page = await read_page(logs, index, len(found) + 1, count)
            assert [line.number for line in page] == [len(found) + n + 1 for n in range(len(page))]
            assert page
            found += [line.text for line in page]
            for line in page:
                assert line.size == len(expected[line.number - 1])
                if missing < 0:
                    assert data[line.offset :].startswith(line.text.encode())
                    assert await index.line_at(line.offset) == line.number or not line.text
        assert found == [line.decode("utf-8", "replace") for line in expected]
        assert await read_page(logs, index, len(expected) + 1, count) == []

    asyncio.run(scenario())


def test_a_line_longer_than_a_page_is_cut_and_the_next_one_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_pages, "PAGE_BYTES", 100)
    monkeypatch.setattr(log_pages, "LINE_BYTES", 10)
    data = b"first\n" + b"x" * 500 + b"\nlast\n" + b"y" * 300

    async def scenario() -> None:
        logs, index, _ = await stored(data, [50, 333])
        (first,) = await read_page(logs, index, 1, 1)
        assert first.text == "first"
        (long,) = await read_page(logs, index, 2, 5)
        assert (long.text, long.size, long.offset) == ("x" * 10, 500, 6)
        (last,) = await read_page(logs, index, 3, 5)
        assert last.text == "last"
        (open_line,) = await read_page(logs, index, 4, 5)
        assert (open_line.text, open_line.size) == ("y" * 10, 300)

    asyncio.run(scenario())


@given(
    TEXTS, st.lists(st.integers(0, 99), max_size=4), st.booleans(), st.integers(1, 3),
    st.integers(4, 30), st.sampled_from(["ERR", "a", "bb", "é", "(a|bb)+E", "^a", "R$"]),
)  # fmt: skip
def test_a_search_finds_each_matching_line_once_in_both_directions(
    data: bytes, cuts: list[int], backwards: bool, limit: int, block: int, text: str
) -> None:
    is_regex = text in ("(a|bb)+E", "^a", "R$")
    pattern = re.compile((text if is_regex else re.escape(text)).encode(), re.MULTILINE)
    whole = lines_of(data)
    longest = max(map(len, whole), default=0) + 1
    expected = [n for n, line in enumerate(whole, 1) if pattern.search(line)]

    async def scenario() -> None:
        logs, index, _ = await stored(data, cuts)
        find = finder(text, is_regex, False)
        at: int | None = len(data) if backwards else 0
        numbers: list[int] = []
        while at is not None:
            found = await search(logs, index, find, at, backwards, limit)
            assert len(found.matches) <= limit
            numbers += [match.line for match in found.matches]
            for match in found.matches:
                assert data[match.offset :].startswith(match.match.encode())
                shown = match.before + match.match + match.after
                assert whole[match.line - 1] == shown.encode()
            at = found.next
        assert numbers == (expected[::-1] if backwards else expected)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_search, "BLOCK", max(block, longest))
        patch.setattr(log_search, "SCAN_BYTES", 20)
        asyncio.run(scenario())


@pytest.mark.parametrize("backwards", [False, True])
def test_a_search_passes_over_missing_bytes(backwards: bool) -> None:
    data = b"one a\n" * 3 + b"two a\n" * 3 + b"three a\n" * 3

    async def scenario() -> list[int]:
        logs, index, _ = await stored(data, [18, 36], missing=1)
        start = len(data) if backwards else 0
        found = await search(logs, index, finder(" a", False, False), start, backwards, 100)
        assert found.next is None
        return [match.line for match in found.matches]

    # Two newlines stand for what is missing.
    assert sorted(asyncio.run(scenario())) == [1, 2, 3, 6, 7, 8]


@pytest.mark.parametrize("backwards", [False, True])
def test_a_search_reads_ahead_but_no_more_than_it_has_read(
    backwards: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = b"".join(b"%05d\n" % number for number in range(1_000))
    monkeypatch.setattr(log_search, "BLOCK", 60)
    monkeypatch.setattr(log_search, "AHEAD", 600)
    blobs = MemoryBlobs()

    async def scenario(text: str) -> Reads:
        logs, index, _ = await stored(data, range(0, len(data), 30), blobs=blobs)
        reads = Reads(blobs, waits=10, waited_for=15)
        start = len(data) if backwards else 0
        async with asyncio.timeout(30):
            await search(logs, index, finder(text, False, False), start, backwards, 1)
        return reads

    assert asyncio.run(scenario("none")).bytes == len(data)
    assert asyncio.run(scenario("00999" if backwards else "00000")).number <= 6


@pytest.mark.parametrize("text", ["", "a\nb", "x" * 1_001])
def test_a_search_for_nothing_for_several_lines_or_for_too_much_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput, match="text"):
        finder(text, False, False)


def test_a_wrong_expression_is_refused_and_an_evil_one_takes_no_longer() -> None:
    with pytest.raises(InvalidInput, match="missing"):
        finder("(a", True, False)
    with pytest.raises(InvalidInput, match="regular expression"):
        finder(r"(a)\1", True, False)  # needs backtracking
    find = finder("(a+)+$", True, False)
    assert find(b"a" * 100_000 + b"!", 0) is None


def test_a_match_stays_within_its_line() -> None:
    assert finder(r"a\s+b", True, False)(b"a\nb\na  b", 0) == (4, 8)


def test_a_search_ignores_case_if_asked() -> None:
    assert finder("error", False, True)(b"an ERROR", 0) == (3, 8)
    assert finder("err.r", True, True)(b"an ERROR", 0) == (3, 8)
    assert finder("error", False, False)(b"an ERROR", 0) is None


def test_the_ends_and_the_middle_of_a_large_log_are_read_without_the_rest(tmp_path: Path) -> None:
    lines = by_form(200_000, 12_000_000)
    block = b"".join(b"%07d a line of a log that is quite long, as they are: %d\n" % (n, n * 7919)
                     for n in range(50_000))  # fmt: skip
    data = block * (lines // 50_000)
    blobs = LocalBlobs(tmp_path)
    reads = Reads(blobs)

    async def scenario() -> LogMatches:
        logs = Logs(blobs)
        step = 4 * 1024 * 1024
        for start in range(0, len(data), step):
            await logs.write(1, 1, start, data[start : start + step])
        row = LogRow(1, 1, int(LogState.COMMITTED), len(data), 0, 0)
        for first in (1, lines // 2, lines - 99):
            index = await LineIndex.read(logs, row)
            assert index.lines == lines
            page = await read_page(logs, index, first, 100)
            assert [line.text[:7] for line in page] == [
                f"{(first - 1 + n) % 50_000:07}" for n in range(100)
            ]
            assert all(line.at and line.at > "2020" for line in page)
        # One segment to find a line, and a page, each time.
        assert reads.bytes <= 3 * (step + log_pages.PAGE_BYTES + 1)
        return await search(logs, index, finder("no such text", False, False), 0, False, 10)

    found = asyncio.run(scenario())
    assert found.matches == ()
    assert found.scanned == min(len(data), found.scanned)


RED, BOLD, RESET = b"\x1b[31m", b"\x1b[1m", b"\x1b[0m"
PAINTED = st.lists(
    st.sampled_from([b"a\n", RED, BOLD, RESET, b"\x1b[m", b"\x1b[0;32m", b"\x1b[38;5;0m", b"\n"]),
    max_size=40,
).map(b"".join)


def painted(data: bytes) -> list[str]:
    """What a terminal has on after a text: the codes since the last reset, in their order."""
    kept: list[str] = []
    for codes in re.findall(rb"\x1b\[([0-9;]*)m", data):
        numbers = codes.decode().split(";")
        if numbers[0] in ("", "0"):
            kept, numbers = [], numbers[1:]
        kept += numbers
    return kept


@given(PAINTED, st.lists(st.integers(0, 99), max_size=4), st.integers(1, 30))
def test_a_page_begins_with_the_colours_of_the_lines_before_it(
    data: bytes, cuts: list[int], first: int
) -> None:
    async def scenario() -> None:
        logs, index, shown = await stored(data, cuts)
        start = await index.start_of(first)
        assert painted(await colours_before(logs, index, start)) == painted(shown[:start])

    asyncio.run(scenario())


def test_colours_are_looked_for_in_a_bounded_part_and_are_few() -> None:
    async def scenario() -> None:
        blobs = MemoryBlobs()
        data = RED + b"x" * 3 * log_pages.LOOK_BACK + b"\n"
        logs, index, _ = await stored(data, [], blobs=blobs)
        reads = Reads(blobs)
        assert await colours_before(logs, index, len(data)) == b""
        assert reads.bytes == log_pages.LOOK_BACK

    asyncio.run(scenario())
    many = b"".join(b"\x1b[%dm" % (30 + n % 8) for n in range(1_000))
    assert log_pages.in_force(many) == many[-5 * log_pages.MAX_SEQUENCES :]
