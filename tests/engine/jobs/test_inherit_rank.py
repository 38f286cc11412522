"""Priority inheritance: a job is ordered by the best among itself and those it blocks."""

from contextlib import suppress
from functools import cache

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.support.agent import Agent
from tests.engine.support.rig import HOUR, MINUTE, Rig
from tests.engine.support.rigs import Rigs
from tests.store.conformance.driver import KINDS
from tests.store.conformance.moves import Dice
from tests.support.forms import by_form
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.rank import level, queue_weight, rank
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.records import JobFacts
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.domain.values.ids import JobId, ShapeId
from windlass.store.sql.snapshot import Snapshot

QUEUES = ("default", "batch", "live")
STEPS = 25


def ranks_from_scratch(
    held: Snapshot, queues: dict[ShapeId, str], interval_ms: int
) -> dict[int, int]:
    """The rank of every open job, from nothing but its own priority and the edges."""
    facts = {row.facts.id: row.facts for row in held.jobs if not row.facts.state}
    edges = dict(held.dependents)

    def own(fact: JobFacts) -> int:
        total = level(queue_weight(queues[fact.shape]), fact.base, fact.adjustment)
        return rank(fact.age_from, total, interval_ms)

    @cache
    def found(job: int) -> int:
        behind = [edge >> 1 for edge in edges.get(job, ()) if edge >> 1 in facts]
        return min([own(facts[JobId(job)]), *map(found, behind)])

    return {job: found(job) for job in facts}


async def check(rig: Rig) -> None:
    await rig.engine.settled()
    held = await rig.snapshot()
    queues = {row.id: msgspec.json.decode(row.body, type=Shape).queue for row in held.shapes}
    expected = ranks_from_scratch(held, queues, rig.engine.config.aging_interval_ms)
    told = {row.facts.id: row.facts.rank for row in held.jobs if not row.facts.state}
    assert told == expected
    # What stands in a place is checked by `verify` when the rig is closed.


async def test_what_an_urgent_job_waits_for_goes_first(rig: Rig) -> None:
    first, ordinary, behind = (
        await rig.submit_all(
            {"name": "first", "priority": -5},
            {"name": "ordinary"},
            {"name": "behind", "priority": 50, "after": ("first",)},
        )
    ).ids
    await check(rig)
    assert await rig.order(await rig.agent(), 2) == [first, ordinary]
    assert await rig.state(behind) == "blocked"


async def test_a_chain_inherits_from_its_end(rig: Rig) -> None:
    a = await rig.submit(priority=-9)
    b = await rig.submit(after=(a,), priority=-9)
    other = await rig.submit()
    await rig.submit(after=(b,), priority=9)
    await check(rig)
    assert await rig.order(await rig.agent(), 2) == [a, other]


async def test_an_adjustment_is_passed_on_in_both_directions(rig: Rig) -> None:
    a = await rig.submit(priority=-9)
    b = await rig.submit(after=(a,))
    c = await rig.submit(after_any=(b,))
    other = await rig.submit()
    await rig.engine.jobs.adjust_priority(c, 40)
    await check(rig)
    assert (await rig.record(a)).facts.rank < (await rig.record(other)).facts.rank
    await rig.engine.jobs.adjust_priority(c, -40)
    await check(rig)
    await rig.engine.jobs.adjust_priority(c, 40)
    await rig.engine.jobs.adjust_priority(a, -100)
    await check(rig)
    assert await rig.order(await rig.agent(), 2) == [a, other]


async def test_the_end_of_what_waits_gives_the_rank_back(rig: Rig) -> None:
    a = await rig.submit(priority=-9)
    other = await rig.submit()
    urgent = await rig.submit(after=(a,), priority=30)
    middle = await rig.submit(after=(a,), priority=20)
    await check(rig)
    await rig.engine.jobs.cancel([urgent])
    await check(rig)
    await rig.engine.jobs.cancel([middle])
    await check(rig)
    assert await rig.order(await rig.agent(), 2) == [other, a]


async def test_one_that_did_not_lend_at_first_lends_later(rig: Rig) -> None:
    a = await rig.submit(priority=5)
    waiting = await rig.submit(after=(a,))
    await rig.engine.jobs.adjust_priority(a, -50)
    await check(rig)
    await rig.engine.jobs.cancel([waiting])
    await check(rig)


async def test_planned_parked_and_leased_jobs_inherit_too(rig: Rig) -> None:
    limit = Concurrency("k", 1)
    planned = await rig.submit(not_before=rig.now + HOUR)
    held = await rig.submit(concurrency=limit, priority=60)
    parked = await rig.submit(concurrency=limit, queue="batch")
    agent = await rig.agent()
    taken = await agent.take_one()
    assert taken.job == held
    for job in (planned, held, parked):
        await rig.submit(after=(job,), priority=100)
    await check(rig)
    await agent.fail(taken, FailureClass.NETWORK)
    await rig.advance(HOUR)
    await rig.cleanup()
    await check(rig)


async def test_a_successor_inherits_what_the_old_job_had(rig: Rig) -> None:
    a = await rig.submit(priority=-9, retries=0)
    waiting = await rig.submit(after=(a,), priority=30)
    await check(rig)  # on PostgreSQL a claim passes over what is being moved
    agent = await rig.agent()
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION)
    await rig.engine.settled()
    other = await rig.submit()
    again = (await rig.engine.jobs.retry(a)).id
    await check(rig)
    assert await rig.state(waiting) == "aborted"
    assert await rig.order(agent, 2) == [again, other]


async def test_a_successor_inherits_from_those_that_wait_on(rig: Rig) -> None:
    a = await rig.submit(priority=90, retries=0, allow_failure=True)
    b = await rig.submit(priority=-9)
    waiting = await rig.submit(after=(a, b), priority=95)
    await check(rig)  # on PostgreSQL a claim passes over what is being moved
    agent = await rig.agent()
    await agent.fail(await agent.take_one(), FailureClass.EXECUTION)
    await rig.engine.jobs.adjust_priority(b, -9)
    again = (await rig.engine.jobs.retry(a)).id
    await check(rig)
    assert (await rig.record(again)).facts.rank == (await rig.record(waiting)).facts.rank
    await rig.engine.jobs.cancel([waiting])
    await check(rig)


async def test_a_job_that_waited_for_hours_keeps_what_it_inherits(rig: Rig) -> None:
    a = await rig.submit()
    b = await rig.submit(after=(a,), priority=-9)
    await rig.submit(after=(b,), priority=9)
    await check(rig)  # on PostgreSQL a claim passes over what is being moved
    agent = await rig.agent()
    taken = await agent.take_one()
    await rig.advance(3 * HOUR)
    await agent.finish(taken)
    await check(rig)
    assert await rig.state(b) == "queued"


async def test_more_dependents_than_a_chunk(memory_rig: Rig) -> None:
    rig = memory_rig
    a = await rig.submit(priority=-9)
    done = await rig.submit_all(*[{"after": (a,), "args": n} for n in range(1_500)])
    await rig.engine.jobs.adjust_priority(done.ids[-1], 40)
    await check(rig)
    await rig.engine.jobs.cancel(list(done.ids[-2:]))
    await check(rig)


class Player:
    """Does random things to jobs that wait for each other."""

    def __init__(self, rig: Rig, agent: Agent, dice: Dice) -> None:
        self.rig = rig
        self.agent = agent
        self.dice = dice
        self.jobs: list[int] = []

    async def step(self) -> None:
        moves = [self.submit, self.submit, self.adjust, self.adjust, self.cancel, self.run,
                 self.run, self.retry, self.wait]  # fmt: skip
        await self.dice.one(moves)()

    async def submit(self) -> None:
        count = self.dice.number(1, 5)
        specs = [self.describe(n) for n in range(count)]
        workflow = "w" if self.dice.number(0, 3) == 0 else ""
        try:
            done = await self.rig.submit_all(*specs, workflow=workflow)
        except InvalidInput:  # it named a job twice
            return
        self.jobs += done.ids

    def describe(self, number: int) -> dict[str, object]:
        before = [f"j{n}" for n in range(number)]
        known = self.dice.some(self.jobs, most=2) if self.jobs else []
        named = self.dice.some(before, most=2) if before else []
        return {
            "name": f"j{number}",
            "priority": self.dice.number(-9, 9),
            "queue": self.dice.one(QUEUES),
            "after": (*named, *known[1:]),
            "after_any": tuple(known[:1]),
            "retries": 0,
            "allow_failure": self.dice.number(0, 2) == 0,
            "concurrency": Concurrency("k", 2) if self.dice.number(0, 3) == 0 else None,
            "not_before": self.rig.now + MINUTE if self.dice.number(0, 4) == 0 else None,
        }

    async def adjust(self) -> None:
        if self.jobs:
            job = self.dice.one(self.jobs)
            with suppress(Conflict):  # it may have ended
                await self.rig.engine.jobs.adjust_priority(job, self.dice.number(-20, 20))

    async def cancel(self) -> None:
        if self.jobs:
            await self.rig.engine.jobs.cancel([self.dice.one(self.jobs)])

    async def run(self) -> None:
        for taken in await self.agent.take(self.dice.number(1, 3)):
            if self.dice.number(0, 3):
                await self.agent.finish(taken)
            else:
                await self.agent.fail(taken, FailureClass.EXECUTION)

    async def retry(self) -> None:
        if self.jobs:
            with suppress(Conflict):  # it may be open, or wait for a failure
                self.jobs.append((await self.rig.engine.jobs.retry(self.dice.one(self.jobs))).id)

    async def wait(self) -> None:
        await self.rig.advance(self.dice.one([MINUTE, 2 * HOUR]))
        await self.rig.cleanup()


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=by_form(8, 40))
@given(seed=st.integers(0, 2**32))
def test_ranks_are_those_of_a_computation_from_scratch(rigs: Rigs, kind: str, seed: int) -> None:
    async def play(rig: Rig) -> None:
        player = Player(rig, await rig.agent(), Dice(seed))
        for _ in range(STEPS):
            await player.step()
            await check(rig)

    with rigs.open(kind) as rig:
        rig.run(play(rig))
