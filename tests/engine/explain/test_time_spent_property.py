"""Whatever happens to jobs, the parts of their time add up to the whole."""

from random import Random
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import SECOND, Rig
from tests.engine.support.rigs import Rigs
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.matching.shapes import Rate
from windlass.domain.matching.workers import WorkerStatus

KINDS: list[dict[str, Any]] = [
    {}, {"queue": "batch"}, {"concurrency": Concurrency("one")}, {"requires": ("zone==eu",)},
    {"rate": Rate("api", 1, 20 * SECOND)}, {"unblock": "manual"}, {"resources": {"cpus": 2}},
]  # fmt: skip


class Play:
    """One random history."""

    def __init__(self, rig: Rig, chance: Random) -> None:
        self.rig = rig
        self.chance = chance
        self.agents: list[Agent] = []
        self.jobs: list[int] = []
        self.held: list[tuple[Agent, Any]] = []

    async def run(self, steps: int) -> None:
        said: list[dict[str, object]] = [{"system:cpus": 2}, {"system:cpus": 4, "zone": "eu"}]
        self.agents = [
            await self.rig.agent(f"w{n}", slots=2, metadata=each) for n, each in enumerate(said)
        ]
        moves = [self.submit, self.submit, self.take, self.take, self.end, self.end, self.pause,
                 self.change_status, self.accept, self.pass_time, self.pass_time]  # fmt: skip
        for _ in range(steps):
            await self.chance.choice(moves)()
        for job in self.jobs:
            await self.check(job)

    async def submit(self) -> None:
        fields = dict(self.chance.choice(KINDS))
        if self.jobs and self.chance.random() < 0.3:
            fields["after_any"] = (self.chance.choice(self.jobs),)
        if self.chance.random() < 0.2:
            fields["not_before"] = self.rig.now + self.chance.randint(1, 30) * SECOND
        self.jobs.append(await self.rig.submit(**fields))

    async def take(self) -> None:
        agent = self.chance.choice(self.agents)
        taken = await agent.take(2, prefetch=self.chance.random() < 0.3)
        self.held += [(agent, job) for job in taken]

    async def end(self) -> None:
        if not self.held:
            return
        agent, job = self.held.pop(self.chance.randrange(len(self.held)))
        how = self.chance.random()
        if how < 0.5:
            await agent.finish(job)
        elif how < 0.8:
            await agent.fail(job, FailureClass.NETWORK)
        else:
            await agent.release(job, "not now")

    async def pause(self) -> None:
        change = self.chance.choice([self.rig.engine.queues.pause, self.rig.engine.queues.resume])
        await change("batch")

    async def change_status(self) -> None:
        agent = self.chance.choice(self.agents)
        status = self.chance.choice([WorkerStatus.ONLINE, WorkerStatus.DISABLED])
        await self.rig.engine.workers.set_status(agent.id, status)

    async def accept(self) -> None:
        if self.jobs:
            job = self.chance.choice(self.jobs)
            if await self.rig.state(job) == "blocked":
                await self.rig.engine.jobs.unblock(job)

    async def pass_time(self) -> None:
        await self.rig.advance(self.chance.randint(1, 10) * SECOND)
        await self.rig.engine.due_jobs.move()

    async def check(self, job: int) -> None:
        found = await self.rig.engine.explain.time_spent(job)
        record = await self.rig.record(job)
        end = record.finished_at or self.rig.now
        assert round(found.total * 1000) == end - record.facts.created_at
        assert sum(round(part.seconds * 1000) for part in found.parts) == round(found.total * 1000)
        assert all(part.seconds > 0 for part in found.parts)
        assert {part.cause for part in found.parts}.isdisjoint({"unknown"})
        assert found.notes == ()
        ends = [found.since, *(segment.end for segment in found.segments)]
        assert [segment.start for segment in found.segments] == ends[:-1]
        assert not found.segments or ends[-1] == found.until
        for cause in {segment.cause for segment in found.segments}:
            (part,) = [part for part in found.parts if part.cause == cause]
            shown = sum(one.seconds for one in found.segments if one.cause == cause)
            assert shown == pytest.approx(part.seconds)


@pytest.mark.parametrize(("kind", "histories"), [("memory", 40), ("sqlite", 15)])
def test_the_parts_of_a_jobs_time_add_up(rigs: Rigs, kind: str, histories: int) -> None:
    for seed in range(histories):
        with rigs.open(kind) as rig:
            rig.run(Play(rig, Random(seed)).run(60))
