"""Sixteen actors on one bucket for a thousand steps, with every fault a server can have."""

import asyncio

import pytest

from tests.fuzzing.actor_checks import (
    check_apart,
    check_one_chain,
    completions,
    countings,
)
from tests.fuzzing.actors import Nothing, World
from tests.support.s3 import S3Server
from windlass.fuzzing.bucket_dry import DryBucket
from windlass.fuzzing.state import BuildQueue, Schedule
from windlass.ports.loop_time import pass_time
from windlass.simulator.clock import START_MS, VirtualClock
from windlass.simulator.loop import VirtualLoop

STEPS = 1_000
REAL_STEPS = 150


class Ended:
    """A world after its thousand steps, and what stands in its files."""

    def __init__(self, seed: int) -> None:
        loop = VirtualLoop(lambda _: None)
        try:
            self.world = World(DryBucket(Nothing()), VirtualClock(loop), seed)
            loop.run_until_complete(self.world.run(STEPS))
            loop.run_until_complete(self.world.settle())
            board = self.world.board()
            self.queue: BuildQueue = loop.run_until_complete(board.queue.read())
            self.schedule: Schedule = loop.run_until_complete(board.schedule.read())
        finally:
            loop.close()
        self.journal = self.world.journal


@pytest.fixture(scope="module", params=[1, 2, 3])
def ended(request: pytest.FixtureRequest) -> Ended:
    return Ended(request.param)


def test_every_fault_really_happened(ended: Ended) -> None:
    kinds = {"409", "412", "unsent", "lost", "crash before", "crash after"}
    assert set(ended.journal.faults) == kinds
    assert ended.journal.steps >= STEPS


def test_versions_form_one_chain(ended: Ended) -> None:
    check_one_chain(ended.journal)


def test_no_commit_is_lost(ended: Ended) -> None:
    code = [c.hash for c in ended.world.line.commits() if ended.world.line.has_code(c.hash)]
    standing = {*ended.queue.queue, *ended.queue.built, *ended.queue.failed}
    standing.update(entry.hash for entry in ended.schedule)
    fuzzed = {commit for commit, count in countings(ended.journal).items() if count}
    # The newest ones came after the last look of a manager.
    looked_at = code[: code.index(max(standing | fuzzed, key=lambda c: int(c[1:]))) + 1]
    assert len(looked_at) > 50
    assert [commit for commit in looked_at if commit not in standing | fuzzed] == []


def test_no_commit_is_built_twice_to_completion(ended: Ended) -> None:
    moved = completions(ended.journal)
    assert len(moved) > 20
    assert max(moved.values()) == 1


def test_no_commit_is_built_by_two_at_once(ended: Ended) -> None:
    check_apart(ended.journal.builds)


def test_no_commit_is_fuzzed_by_two_at_once(ended: Ended) -> None:
    assert len(ended.journal.fuzzings) > 50
    check_apart(ended.journal.fuzzings)


def test_what_was_fuzzed_is_counted_at_most_once(ended: Ended) -> None:
    finished = ended.journal.finished
    for commit, count in countings(ended.journal).items():
        assert count <= finished[commit] + 1, commit


class FastClock:
    """The real clock of a loop, so many times as fast."""

    SPEED = 100

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    def now_ms(self) -> int:
        passed = asyncio.get_running_loop().time() - self._began
        return START_MS + int(passed * 1000 * self.SPEED)

    async def sleep_ms(self, duration_ms: int) -> None:
        await pass_time(duration_ms / 1000 / self.SPEED)


def test_the_same_holds_on_a_real_server(s3_server: S3Server) -> None:
    from windlass.fuzzing.bucket_s3 import S3Bucket

    async def work() -> World:
        bucket = S3Bucket("actors", **s3_server.options())
        world = World(bucket, FastClock(), seed=4)
        await world.run(REAL_STEPS)
        await world.settle()
        return world

    journal = asyncio.run(work()).journal
    check_one_chain(journal)
    check_apart(journal.builds)
    check_apart(journal.fuzzings)
    assert max(completions(journal).values()) == 1
