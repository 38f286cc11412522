"""Logs that are searched and read while their segments are joined."""

from collections.abc import AsyncIterator

import pytest

from tests.engine.support.filing import Desk, holder_of
from tests.engine.support.rig import Rig
from windlass.blobs.memory import MemoryBlobs
from windlass.engine.attempts.log_segments import segment_key
from windlass.engine.files import log_search
from windlass.engine.files.files import Files
from windlass.engine.files.logs import LogQuery

LINE = 4  # bytes; each is a segment of its own at first
RUN = 10 * LINE  # bytes that are joined into one segment
DATA = b"".join(b"%3d\n" % number for number in range(100))


class JoiningBlobs(MemoryBlobs):
    """Joins a segment with its neighbours just before it is read."""

    async def stream(
        self, key: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        _, job, attempt, name = key.split("/")
        offset, size, _ = map(int, name.split("-"))
        if size == LINE:
            begin = offset // RUN * RUN
            joined = DATA[begin : begin + RUN]
            await self.put(segment_key(int(job), int(attempt), begin, joined), joined)
            await self.delete(
                [
                    segment_key(int(job), int(attempt), at, DATA[at : at + LINE])
                    for at in range(begin, begin + RUN, LINE)
                ]
            )
        async for chunk in super().stream(key, start, end):
            yield chunk


async def written(rig: Rig) -> tuple[Desk, int]:
    """Returns a desk, and a job with a log in small segments."""
    desk = Desk(rig)
    desk.blobs = JoiningBlobs()
    desk.files = Files(rig.engine, desk.blobs)
    agent = await rig.agent()
    await rig.submit()
    (job,) = await agent.take()
    for at in range(0, len(DATA), LINE):
        await desk.files.append_log(holder_of(agent, job), at, DATA[at : at + LINE])
    return desk, job.job


@pytest.mark.parametrize("backwards", [False, True])
async def test_a_search_goes_on_where_segments_were_just_joined(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch, backwards: bool
) -> None:
    monkeypatch.setattr(log_search, "BLOCK", RUN)
    desk, job = await written(memory_rig)
    found: list[int] = []
    start: int | None = None
    while True:
        query = LogQuery("7", start=start, backwards=backwards)
        matches = await desk.files.search_log(job, None, query)
        found += [match.line for match in matches.matches]
        if (start := matches.next) is None:
            break
    expected = [number + 1 for number in range(100) if "7" in str(number)]
    assert found == (expected[::-1] if backwards else expected)


async def test_a_log_is_read_whole_while_its_segments_are_joined(memory_rig: Rig) -> None:
    desk, job = await written(memory_rig)
    assert await desk.text(job) == DATA
