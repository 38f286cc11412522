"""Sixteen actors on one bucket for a thousand steps, with every fault a server can have."""

import asyncio

import pytest

from tests.fuzzing.support.actor_checks import (
    check_apart,
    check_completed_once,
    check_counted_once,
    check_none_lost,
    check_one_chain,
    completions,
    in_order,
)
from tests.fuzzing.support.actor_runs import STEPS, ActorRun
from tests.fuzzing.support.actors import World
from tests.support.s3 import S3Server
from windlass.ports.loop_time import pass_time
from windlass.simulator.world import START_MS
from windlass_fuzz.state.documents import SCHEDULE
from windlass_fuzz.state.rules import MINIMUM, schedule_of

REAL_STEPS = 150


BOTH = ("main", "release")


@pytest.fixture(scope="module", params=[(1,), (2,), (3,), (4, *BOTH), (5, *BOTH)], ids=str)
def ended(request: pytest.FixtureRequest) -> ActorRun:
    return ActorRun(*request.param)


def test_every_fault_really_happened(ended: ActorRun) -> None:
    kinds = {"409", "412", "unsent", "lost", "crash before", "crash after"}
    assert set(ended.journal.faults) == kinds
    assert ended.journal.steps >= STEPS


def test_versions_form_one_chain(ended: ActorRun) -> None:
    check_one_chain(ended.journal)


def test_no_commit_is_lost(ended: ActorRun) -> None:
    check_none_lost(ended.journal, ended.code, ended.pending)


def test_no_commit_is_built_twice_to_completion(ended: ActorRun) -> None:
    assert len(completions(ended.journal)) > 20
    check_completed_once(ended.journal)


def test_no_commit_is_built_by_two_at_once(ended: ActorRun) -> None:
    check_apart(ended.journal.builds)


def test_no_commit_is_fuzzed_by_two_at_once(ended: ActorRun) -> None:
    assert len(ended.journal.fuzzings) > 50
    check_apart(ended.journal.fuzzings)


def test_what_was_fuzzed_is_counted_once(ended: ActorRun) -> None:
    assert sum(ended.journal.acknowledged.values()) > 50
    check_counted_once(ended.journal)


def test_each_branch_has_a_schedule_of_its_own_and_runs_count_for_both() -> None:
    ended = ActorRun(6, *BOTH)
    assert tuple(ended.state.branches) == BOTH
    for branch in BOTH:
        assert len(schedule_of(ended.schedule, branch)) >= MINIMUM
    listed = [document for document in in_order(ended.journal, SCHEDULE) if document]
    shared = [e for document in listed for e in document if e.get("branches") == list(BOTH)]
    assert any(entry["fuzz_count"] for entry in shared)
    check_counted_once(ended.journal)


class FastClock:
    """The loop's real clock, many times faster."""

    SPEED = 100

    def __init__(self) -> None:
        self._began = asyncio.get_running_loop().time()

    def now_ms(self) -> int:
        passed = asyncio.get_running_loop().time() - self._began
        return START_MS + int(passed * 1000 * self.SPEED)

    async def sleep_ms(self, duration_ms: int) -> None:
        await pass_time(duration_ms / 1000 / self.SPEED)


def test_the_same_holds_on_a_real_server(s3_server: S3Server) -> None:
    from windlass_fuzz.buckets.s3 import S3Bucket

    async def work() -> World:
        bucket = S3Bucket(s3_server.make_bucket("actors"), **s3_server.options())
        world = World(bucket, FastClock(), seed=4)
        await world.run(REAL_STEPS)
        await world.wind_down()
        return world

    journal = asyncio.run(work()).journal
    check_one_chain(journal)
    check_apart(journal.builds)
    check_apart(journal.fuzzings)
    check_completed_once(journal)
    check_counted_once(journal)
