"""Segments of logs that have ended: joined to few, and not a byte is shown otherwise."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.blobs.conftest import Place
from tests.blobs.test_logs import TEXT, Writer
from tests.store.conformance.driver import SettableClock
from windlass.blobs.memory import MemoryBlobs
from windlass.engine.attempts.log_segments import SEGMENT_LIMIT, left_out
from windlass.ports.blobs import Blobs


async def keys(blobs: Blobs) -> list[str]:
    """Returns the segments; a joined one has an object with its times beside it."""
    return [info.key async for info in blobs.list("logs") if not info.key.endswith(".times")]


def test_many_small_segments_become_few(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        for start in range(0, len(TEXT), 10):
            await writer.append(start, TEXT[start : start + 10])
        assert len(await keys(place.blobs)) > 100
        await writer.logs.merge(writer.row)
        assert len(await keys(place.blobs)) == 1
        assert await writer.read() == (TEXT, len(TEXT))
        assert await writer.read(150, 100) == (TEXT[150:250], 250)
        await writer.logs.merge(writer.row)
        assert await writer.read() == (TEXT, len(TEXT))

    place.run(check())


def test_no_segment_becomes_larger_than_one_may_be(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        piece = bytes(SEGMENT_LIMIT // 3)
        for number in range(7):
            await writer.append(number * len(piece), piece)
        await writer.logs.merge(writer.row)
        sizes = {info.key: info.size async for info in place.blobs.list("logs")}
        found = [sizes[key] for key in await keys(place.blobs)]
        assert max(found) <= SEGMENT_LIMIT
        assert len(found) == 3
        assert sum(found) == writer.row.bytes

    place.run(check())


def test_a_gap_stays_where_it_is(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        for start in (0, 10, 20, 50, 60):
            await writer.append(start, TEXT[start : start + 10])
        shown = TEXT[:30] + left_out(20) + TEXT[50:70]
        assert await writer.read() == (shown, 70)
        await writer.logs.merge(writer.row)
        assert len(await keys(place.blobs)) == 2
        assert await writer.read() == (shown, 70)

    place.run(check())


def test_a_reader_that_began_before_sees_it_all(place: Place) -> None:
    async def check() -> None:
        writer = Writer(place.blobs)
        for start in range(0, len(TEXT), 50):
            await writer.append(start, TEXT[start : start + 50])
        part = await writer.logs.find(writer.row, 0, 10**9)
        reading = writer.logs.read(part)
        first = await anext(reading)
        await writer.logs.merge(writer.row)
        rest = [chunk async for chunk in reading]
        assert first + b"".join(rest) == TEXT

    place.run(check())


@given(
    limit=st.sampled_from([0, 7, 40]),
    appends=st.lists(st.tuples(st.integers(0, 60), st.integers(1, 30)), max_size=15),
)
def test_whatever_was_written_merging_shows_the_same(
    limit: int, appends: list[tuple[int, int]]
) -> None:
    async def check() -> None:
        blobs = MemoryBlobs(SettableClock())
        writer = Writer(blobs, limit)
        for offset, size in appends:
            await writer.append(offset, TEXT[offset : offset + size])
        before = await writer.read()
        await writer.logs.merge(writer.row)
        assert await writer.read() == before

    asyncio.run(check())
