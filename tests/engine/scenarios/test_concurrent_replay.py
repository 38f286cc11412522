"""Many callers at once on two engines over one store; the log is replayed afterwards.

Which interleaving happens is up to the database. Whatever it was, the order of the events
must replay to the state without a violation (that is what every `rig` ends with), and once
the trouble is over every job must come to an end.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from tests.engine.support.rigs import Rigs
from tests.support.specs import spec_of
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.values.errors import Conflict, NotFound, WindlassError
from windlass.engine.engine import Engine
from windlass.engine.loops.scheduling import CleanupLoop, HealthLoop, SchedulingLoop
from windlass.messages.sync import Assignment

ROUNDS = 25


@pytest.fixture(params=["memory", "postgres"])
def shared_rig(request: pytest.FixtureRequest, rigs: Rigs) -> Iterator[Rig]:
    """Only stores that two engines can work on."""
    with rigs.open(request.param) as opened:
        yield opened


class Crowd:
    """The callers, their chance, and the jobs they know of."""

    def __init__(self, rig: Rig, engines: list[Engine], seed: int) -> None:
        self.rig = rig
        self.engines = engines
        self.chance = random.Random(seed)
        self.jobs: list[int] = []

    def engine(self) -> Engine:
        return self.chance.choice(self.engines)

    def job(self) -> int:
        return self.chance.choice(self.jobs) if self.jobs else 1

    async def submit_many(self) -> None:
        for _ in range(ROUNDS):
            fields = [self._fields() for _ in range(self.chance.randint(1, 3))]
            submitted = await self.engine().submit([spec_of(**each) for each in fields])
            self.jobs += submitted.ids

    def _fields(self) -> dict[str, Any]:
        chance = self.chance
        fields: dict[str, Any] = {"task": chance.choice(["a", "b", "c"])}
        if chance.random() < 0.5 and self.jobs:
            name = chance.choice(["after", "after_any"])
            fields[name] = tuple({self.job() for _ in range(chance.randint(1, 3))})
        if chance.random() < 0.3:
            fields["concurrency"] = Concurrency(key=chance.choice(["x", "y"]), max=2)
        if chance.random() < 0.2:
            fields["allow_failure"] = True
        if chance.random() < 0.2:
            fields["not_before"] = self.rig.now + chance.choice([1, 5 * SECOND])
        return fields

    async def work(self, agent: Agent) -> None:
        held: list[Assignment] = []
        for _ in range(2 * ROUNDS):
            agent.engine = self.engine()
            if held and self.chance.random() < 0.7:
                await self._report(agent, held.pop())
            else:
                held += await agent.take(2, prefetch=self.chance.random() < 0.3)
        for job in held:
            await agent.finish(job)

    async def _report(self, agent: Agent, job: Assignment) -> None:
        kind = self.chance.random()
        if kind < 0.7:
            await agent.finish(job)
        elif kind < 0.8:
            await agent.release(job)
        else:
            failures = [FailureClass.NETWORK, FailureClass.EXECUTION]
            await agent.fail(job, self.chance.choice(failures))

    async def operate(self) -> None:
        for _ in range(ROUNDS):
            engine, job = self.engine(), self.job()
            command = self.chance.choice(["cancel", "retry", "adjust", "loops", "advance"])
            try:
                if command == "cancel":
                    await engine.jobs.cancel([job, self.job()])
                elif command == "retry":
                    self.jobs.append((await engine.jobs.retry(job)).id)
                elif command == "adjust":
                    await engine.jobs.adjust_priority(job, self.chance.randint(-3, 3))
                elif command == "loops":
                    await run_loops(engine, self.rig.now)
                else:
                    await self.rig.advance(self.chance.choice([1, SECOND]))
            except (Conflict, NotFound):
                pass


async def run_loops(engine: Engine, now: int) -> None:
    for loop in (SchedulingLoop(engine), HealthLoop(engine), CleanupLoop(engine)):
        await loop.run_once(now)


async def drain(rig: Rig, engines: list[Engine]) -> None:
    """Let a fresh worker finish everything, as time passes; the others may be drained as bad."""
    agent = await rig.agent("last")
    for _ in range(100):
        for engine in engines:
            await engine.settled()
            await run_loops(engine, rig.now)
        for job in await agent.take(100):
            await agent.finish(job)
        if all(row.facts.state for row in (await rig.snapshot()).jobs):
            return
        await rig.advance(MINUTE)
    left = [row.facts.id for row in (await rig.snapshot()).jobs if not row.facts.state]
    raise AssertionError(f"jobs that never came to an end: {left}")


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_crowd_on_two_engines_leaves_a_log_that_replays(shared_rig: Rig, seed: int) -> None:
    rig = shared_rig
    engines = [rig.engine, await rig.another_engine()]
    agents = [await rig.agent(f"w{n}") for n in range(4)]
    crowd = Crowd(rig, engines, seed)
    await asyncio.gather(
        *[crowd.submit_many() for _ in range(3)],
        *[crowd.work(agent) for agent in agents],
        *[crowd.operate() for _ in range(2)],
    )
    await drain(rig, engines)


async def test_one_name_enrolled_by_many_at_once_is_one_worker(shared_rig: Rig) -> None:
    rig = shared_rig
    engines = [rig.engine, await rig.another_engine()]
    agents = [Agent(engines[n % 2], "same") for n in range(8)]
    answers = await asyncio.gather(*[agent.enrol() for agent in agents], return_exceptions=True)
    assert [a for a in answers if a is not None and not isinstance(a, WindlassError)] == []
    (row,) = (await rig.snapshot()).workers
    assert row.incarnation == max(agent.incarnation for agent in agents)


async def test_one_queue_paused_by_many_at_once_is_paused(shared_rig: Rig) -> None:
    rig = shared_rig
    engines = [rig.engine, await rig.another_engine()]
    answers = await asyncio.gather(*[engines[n % 2].queues.pause("q") for n in range(8)])
    assert any(answers)
    (row,) = (await rig.snapshot()).queues
    assert row.paused


async def test_one_job_retried_by_many_at_once_has_one_successor(shared_rig: Rig) -> None:
    rig = shared_rig
    engines = [rig.engine, await rig.another_engine()]
    job = await rig.submit()
    await rig.engine.jobs.cancel([job])
    answers = await asyncio.gather(*[engines[n % 2].jobs.retry(job) for n in range(8)])
    assert len({answer.id for answer in answers}) == 1
    assert [answer.applied for answer in answers].count(True) == 1
