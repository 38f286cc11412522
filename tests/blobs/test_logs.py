"""Logs over blobs: idempotent, contiguous or marked, cut in the middle, in bounded memory."""

import tracemalloc
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.blobs.conftest import Place
from tests.store.conformance.driver import SettableClock
from windlass.blobs.memory import MemoryBlobs
from windlass.domain.rows.files import LogRow, LogState
from windlass.domain.values.errors import InvalidInput
from windlass.engine.attempts.log_segments import (
    SEGMENT_LIMIT,
    Logs,
    grown,
    left_out,
    owner_of,
    placed,
)
from windlass.ports.blobs import Blobs

EMPTY = LogRow(1, 2, int(LogState.NONE), 0, 0, 0)
TEXT = bytes(range(32, 127)) * 11


class Writer:
    """Appends as an engine does, and reads as a server does."""

    def __init__(self, blobs: Blobs, limit: int = 0) -> None:
        self.logs = Logs(blobs)
        self.limit = limit
        self.row = EMPTY

    async def append(self, offset: int, data: bytes) -> int:
        offset, data = placed(self.row, offset, data)
        if data:
            await self.logs.write(1, 2, offset, data)
            before, self.row = self.row, grown(self.row, offset, len(data), self.limit)
            if self.row.gap_to > before.gap_to:
                await self.logs.cut(self.row, self.limit)
        return self.row.bytes

    async def read(self, offset: int = 0, limit: int = 10**12) -> tuple[bytes, int]:
        part = await self.logs.find(self.row, offset, limit)
        return b"".join([chunk async for chunk in self.logs.read(part)]), part.next


def test_segments_are_read_as_one_log(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        for start in range(0, len(TEXT), 100):
            assert await writer.append(start, TEXT[start : start + 100]) == min(
                start + 100, len(TEXT)
            )
        assert await writer.read() == (TEXT, len(TEXT))
        assert await writer.read(150, 100) == (TEXT[150:250], 250)
        assert await writer.read(1_000, 10**6) == (TEXT[1_000:], len(TEXT))
        assert await writer.read(len(TEXT)) == (b"", len(TEXT))
        assert (writer.row.gap_from, writer.row.gap_to) == (0, 0)

    place.run(check())


def test_bytes_that_come_again_change_nothing(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        assert await writer.append(0, TEXT[:50]) == 50
        assert await writer.append(0, TEXT[:50]) == 50
        assert await writer.append(20, TEXT[20:70]) == 70
        assert await writer.append(10, TEXT[10:30]) == 70
        assert await writer.read() == (TEXT[:70], 70)

    place.run(check())


def test_a_write_whose_answer_was_lost_may_come_again_in_other_pieces(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        await writer.append(0, TEXT[:10])
        for size in (30, 5, 90):  # Written, but the row never told.
            await writer.logs.write(1, 2, 10, TEXT[10 : 10 + size])
        await writer.append(10, TEXT[10:20])
        assert await writer.read() == (TEXT[:20], 20)
        await writer.append(20, TEXT[20:60])
        assert await writer.read() == (TEXT[:60], 60)

    place.run(check())


def test_a_gap_is_marked_in_the_row_and_in_the_text(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        await writer.append(0, TEXT[:50])
        assert await writer.append(80, TEXT[80:100]) == 100
        assert (writer.row.gap_from, writer.row.gap_to) == (50, 80)
        marked = TEXT[:50] + left_out(30) + TEXT[80:100]
        assert await writer.read() == (marked, 100)
        assert await writer.read(60, 5) == (left_out(20) + TEXT[80:85], 85)

    place.run(check())


def test_an_end_that_never_came_is_marked(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        await writer.append(0, TEXT[:50])
        writer.row = writer.row._replace(bytes=70)
        assert await writer.read() == (TEXT[:50] + left_out(20), 70)
        assert await writer.read(0, 50) == (TEXT[:50], 50)

    place.run(check())


def test_a_log_over_its_limit_keeps_its_beginning_and_its_end(place: Place) -> None:
    limit = 1_600

    async def check() -> None:
        writer = Writer(place.blobs, limit)
        text = TEXT * 20
        for start in range(0, len(text), 64):
            await writer.append(start, text[start : start + 64])
        shown, end = await writer.read()
        assert end == len(text)
        head, marker, tail = shown.partition(b"\n[windlass: ")
        assert head == text[: len(head)]
        assert 800 <= len(head) <= 864
        tail = tail.partition(b"here]\n")[2]
        assert tail == text[-len(tail) :]
        assert 800 <= len(tail) <= 1_000
        assert marker
        kept = [info.size async for info in place.blobs.list("logs")]
        assert sum(kept) <= limit + 300
        assert writer.row.gap_from == 800
        assert len(text) - 1_000 <= writer.row.gap_to <= len(text) - 800

    place.run(check())


def test_a_segment_that_is_cut_while_it_is_read_is_marked(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        await writer.append(0, TEXT[:50])
        await writer.append(50, TEXT[50:90])
        part = await writer.logs.find(writer.row, 0, 1_000)
        await place.blobs.delete([part.pieces[0].key])
        shown = b"".join([chunk async for chunk in writer.logs.read(part)])
        assert shown == left_out(50) + TEXT[50:90]

    place.run(check())


def test_a_segment_tells_whose_it_is(place: Place) -> None:
    async def check() -> None:
        await Logs(place.blobs).write(11, 3, 0, b"x")
        keys = [info.key async for info in place.blobs.list("logs")]
        assert [owner_of(key) for key in keys] == [(11, 3)]
        assert owner_of("logs/stray") is None

    place.run(check())


def test_too_much_at_once_is_refused(place: Place) -> None:
    with pytest.raises(InvalidInput, match=f"at most {SEGMENT_LIMIT} bytes"):
        place.run(Logs(place.blobs).write(1, 1, 0, bytes(SEGMENT_LIMIT + 1)))


@given(
    limit=st.sampled_from([0, 1, 7, 40]),
    appends=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=15),
)
def test_what_is_shown_is_what_was_written_or_marked(
    limit: int, appends: list[tuple[int, int]]
) -> None:
    """Whatever comes in whatever order, each byte shown stands where it belongs."""
    import asyncio

    async def check() -> None:
        writer = Writer(MemoryBlobs(SettableClock()), limit)
        for offset, size in appends:
            await writer.append(offset, TEXT[offset : offset + size])
        part = await writer.logs.find(writer.row, 0, 10**9)
        position = 0
        for piece in part.pieces:
            assert piece.start == position
            position = piece.end
            if piece.key:
                one = part._replace(pieces=(piece,))
                shown = b"".join([chunk async for chunk in writer.logs.read(one)])
                assert shown == TEXT[piece.start : piece.end]
            else:
                assert writer.row.gap_from <= piece.start
                assert piece.end <= writer.row.gap_to
        assert position == writer.row.bytes

    asyncio.run(check())


def test_a_long_log_passes_through_little_memory(tmp_path: object) -> None:
    """64 MiB in and out again; what is held at once does not grow with the log."""
    import asyncio

    from windlass.blobs.local import LocalBlobs

    async def check() -> int:
        writer = Writer(LocalBlobs(str(tmp_path)))
        segment = bytes(1024 * 1024)
        tracemalloc.start()
        for number in range(64):
            await writer.append(number * len(segment), segment)
        part = await writer.logs.find(writer.row, 0, 10**12)
        size = 0
        async for chunk in _counted(writer.logs.read(part)):
            size += len(chunk)
        assert size == 64 * len(segment)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    assert asyncio.run(check()) < 6 * 1024 * 1024


async def _counted(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk


def test_joined_segments_keep_the_times_of_their_bytes(place: Place) -> None:
    async def check() -> None:
        logs = Logs(place.blobs)
        for offset in range(0, 6, 2):
            await logs.write(12, 1, offset, b"ab")
        row = LogRow(12, 1, int(LogState.COMMITTED), 6, 0, 0)
        before = await logs.times(row)
        assert [offset for offset, _ in before] == [0, 2, 4]
        await logs.merge(row)
        assert await logs.times(row) == before
        await logs.write(12, 1, 6, b"cd")
        await logs.merge(row._replace(bytes=8))
        after = await logs.times(row)
        assert after[:3] == before
        assert [offset for offset, _ in after] == [0, 2, 4, 6]
        names = [info.key async for info in place.blobs.list("logs/12/1")]
        assert len(names) == 2  # the joined segment and its times

    place.run(check())
