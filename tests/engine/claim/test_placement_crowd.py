"""Random jobs with resources, rates and limits on random workers: nothing is oversubscribed.

Every `rig` ends with `verify`, which replays the log: at no event does a worker hold more than
it has, a queue or key run more than it may, a rate let more start than it allows (S13). On
shared stores two engines work at once. In the end every job has run, so nothing starves.
"""

import asyncio
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import SECOND, Rig
from tests.engine.support.rigs import Rigs
from tests.store.conformance.driver import KINDS
from tests.support.specs import spec_of
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.matching.shapes import Rate
from windlass.engine.engine import Engine
from windlass.engine.loops.scheduling import SchedulingLoop
from windlass.messages.sync import Assignment
from windlass.messages.workers import QueueLimits

ROUNDS = 20
WORKERS: tuple[dict[str, object], ...] = (
    {"system:cpus": 4, "system:memory": 2**30, "resource:licences": 1},
    {"system:cpus": 2, "system:memory": 2**29, "resource:licences": 3},
    {"system:cpus": 4, "system:memory": 2**30, "resource:licences": 3},  # all of it fits here
    {"system:cpus": 3, "system:shares": True},
)


@pytest.fixture(params=KINDS)
def any_rig(request: pytest.FixtureRequest, rigs: Rigs) -> Iterator[Rig]:
    with rigs.open(request.param) as opened:
        yield opened


class Crowd:
    """Callers of one or two engines, and their chance."""

    def __init__(self, rig: Rig, engines: list[Engine], seed: int) -> None:
        self.rig = rig
        self.engines = engines
        self.chance = random.Random(seed)
        self.jobs: list[int] = []

    def engine(self) -> Engine:
        return self.chance.choice(self.engines)

    async def submit(self) -> None:
        for _ in range(ROUNDS):
            specs = [spec_of(**self._fields()) for _ in range(self.chance.randint(1, 3))]
            self.jobs += (await self.engine().submit(specs)).ids

    def _fields(self) -> dict[str, Any]:
        chance = self.chance
        fields: dict[str, Any] = {
            "task": chance.choice("ab"),
            "queue": chance.choice(["default", "narrow", "thin"]),
            "priority": chance.randint(-1, 1),
        }
        if chance.random() < 0.6:
            names = chance.sample(["cpus", "memory", "licences"], chance.randint(1, 2))
            most = {"cpus": 4, "memory": 4, "licences": 3}
            amounts = {name: chance.randint(1, most[name]) for name in names}
            if "memory" in amounts:
                amounts["memory"] *= 2**28
            fields["resources"] = amounts
        if chance.random() < 0.2:
            fields["apart"] = chance.choice("xy")
        if chance.random() < 0.2:
            fields["rate"] = Rate(chance.choice("rs"), chance.randint(1, 3), 5 * SECOND)
        if chance.random() < 0.2:
            fields["concurrency"] = Concurrency(chance.choice("km"), 2)
        return fields

    async def work(self, agent: Agent) -> None:
        held: list[Assignment] = []
        for _ in range(2 * ROUNDS):
            agent.engine = self.engine()
            if held and self.chance.random() < 0.6:
                job = held.pop(self.chance.randrange(len(held)))
                kind = self.chance.random()
                if kind < 0.9:
                    await agent.finish(job)
                elif kind < 0.95:
                    await agent.release(job)  # it is queued again
                else:
                    await agent.fail(job, FailureClass.EXECUTION)
            else:
                held += await agent.take(self.chance.randint(1, 3))
        for job in held:
            await agent.finish(job)

    async def operate(self) -> None:
        for _ in range(ROUNDS):
            if self.chance.random() < 0.3 and self.jobs:
                await self.engine().jobs.cancel([self.chance.choice(self.jobs)])
            else:
                await self.rig.advance(self.chance.choice([1, SECOND]))


async def drain(rig: Rig, engines: list[Engine], agents: list[Agent]) -> None:
    """Let the same workers finish everything, as time passes."""
    for _ in range(300):
        for engine in engines:
            await SchedulingLoop(engine).run_once(rig.now)
        for agent in agents:
            for job in await agent.take(20):
                await agent.finish(job)
        if all(row.facts.state for row in (await rig.snapshot()).jobs):
            return
        await rig.advance(5 * SECOND)
    left = [row.facts.id for row in (await rig.snapshot()).jobs if not row.facts.state]
    raise AssertionError(f"jobs that never came to an end: {left}")


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_nothing_is_oversubscribed_and_nothing_starves(any_rig: Rig, seed: int) -> None:
    rig = any_rig
    await rig.engine.queues.set_limits("narrow", QueueLimits(max_running=2))
    await rig.engine.queues.set_limits("thin", QueueLimits(max_per_worker=1))
    engines = [rig.engine]
    if rig.kind != "sqlite":
        engines.append(await rig.another_engine())
    agents = [
        await rig.agent(f"w{n}", slots=5, metadata=metadata) for n, metadata in enumerate(WORKERS)
    ]
    crowd = Crowd(rig, engines, seed)
    await asyncio.gather(
        *[crowd.submit() for _ in range(2)],
        *[crowd.work(agent) for agent in agents],
        crowd.operate(),
    )
    await drain(rig, engines, agents)
