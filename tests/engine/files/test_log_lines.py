"""Where the last lines of a log begin, and the times of its lines."""

import asyncio
from collections.abc import AsyncIterator

from hypothesis import given
from hypothesis import strategies as st

from windlass.engine.files import log_pages
from windlass.engine.files.log_pages import start_of_last, start_since, with_times


@given(st.binary(max_size=60).map(lambda data: data.replace(b"a", b"\n")), st.integers(0, 9))
def test_the_last_lines_are_found_from_the_end(data: bytes, lines: int) -> None:
    async def read(offset: int, limit: int) -> bytes:
        return data[offset : offset + min(limit, log_pages.TAIL_BLOCK)]

    whole = data.split(b"\n")
    expected = [line + b"\n" for line in whole[:-1]] + ([whole[-1]] if whole[-1] else [])
    start = asyncio.run(start_of_last(lines, len(data), read))
    assert data[start:] == b"".join(expected[len(expected) - min(lines, len(expected)) :])


def test_the_last_lines_may_be_longer_than_a_block() -> None:
    data = b"first\n" + b"x" * (3 * log_pages.TAIL_BLOCK) + b"\nlast\n"

    async def read(offset: int, limit: int) -> bytes:
        return data[offset : offset + limit]

    assert asyncio.run(start_of_last(2, len(data), read)) == len(b"first\n")


def test_each_line_has_the_time_of_its_first_byte() -> None:
    times = [(0, 0), (4, 1_000), (7, 61_000)]

    async def chunks() -> AsyncIterator[bytes]:
        for chunk in (b"a\nb", b"c\nd", b"e\r\nf\n"):
            yield chunk

    async def shown(offset: int, is_start: bool) -> list[str]:
        made = [one async for one in with_times(chunks(), offset, is_start, times)]
        return b"".join(made).decode().split("\n")

    at = [f"1970-01-01T00:0{n}Z" for n in ("0:00.000", "0:01.000", "1:01.000")]
    lines = asyncio.run(shown(0, True))
    assert [line.rpartition(" ")[::2] for line in lines] == [
        (at[0], "a"), (at[0], "bc"), (at[1], "de\r"), (at[2], "f"), ("", "")
    ]  # fmt: skip
    assert asyncio.run(shown(0, False))[0] == "a"  # the rest of a line that has its time


def test_what_came_since_begins_with_the_first_bytes_that_came_then() -> None:
    times = [(0, 10), (5, 20), (9, 30)]
    assert [start_since(times, ms, 12) for ms in (5, 11, 20, 30, 31)] == [0, 5, 5, 9, 12]
