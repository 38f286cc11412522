"""A job is given indices with its lease, and no other lease of that worker has them."""

from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from tests.engine.support.rigs import Rigs
from windlass.domain.matching.indices import read_indices
from windlass.engine.verify.check import verify
from windlass.messages.sync import Assignment

GPUS = {"system:gpus": 3, "indices:gpus": ["0", "1", "2"]}


def indices(jobs: tuple[Assignment, ...]) -> list[Any]:
    return [job.indices for job in jobs]


async def test_jobs_get_the_first_free_indices_and_give_them_back(rig: Rig) -> None:
    for n in range(4):
        await rig.submit(resources={"gpus": 1}, args=n)
    agent = await rig.agent(metadata=GPUS)
    first, second, third = await agent.take(10)
    assert indices((first, second, third)) == [
        {"gpus": ("0",)}, {"gpus": ("1",)}, {"gpus": ("2",)}
    ]  # fmt: skip
    await agent.finish(second)
    assert indices(await agent.take(10)) == [{"gpus": ("1",)}]
    leases = (await rig.snapshot()).leases
    assert Counter(read_indices(row.indices)["gpus"] for row in leases) == Counter(
        [("0",), ("1",), ("2",)]
    )


async def test_each_claim_gives_the_next_index(rig: Rig) -> None:
    """Also where a server remembers what the worker holds, and claims in one round trip."""
    agent = await rig.agent(metadata=GPUS)
    given: list[Assignment] = []
    for n in range(3):
        await rig.submit(resources={"gpus": 1}, args=n)
        given += await agent.take(1)
    assert indices(tuple(given)) == [{"gpus": (n,)} for n in ("0", "1", "2")]


async def test_an_index_in_two_leases_is_found(memory_rig: Rig) -> None:
    rig = memory_rig
    agent = await rig.agent(metadata=GPUS)
    for n in range(2):
        await rig.submit(resources={"gpus": 1}, args=n)
    _, second = await agent.take(2)
    assert await verify(rig.store) == []
    await rig.store.transact(lambda tx: tx.placement.hold([(second.job, '{"gpus":["0"]}')]))
    assert [(v.invariant, v.job) for v in await verify(rig.store)] == [("S13", second.job)]
    await rig.store.transact(lambda tx: tx.placement.hold([(second.job, '{"gpus":["1"]}')]))


async def test_one_job_can_have_several_indices_of_several_resources(rig: Rig) -> None:
    both = {**GPUS, "resource:ports": 2, "indices:ports": ["8000", "8001"], "system:cpus": 4}
    await rig.submit(resources={"gpus": 2, "ports": 1, "cpus": 1})
    plain = await rig.submit()
    agent = await rig.agent(metadata=both)
    got = {job.job: job.indices for job in await agent.take(10)}
    assert got.pop(plain) is None
    assert list(got.values()) == [{"gpus": ("0", "1"), "ports": ("8000",)}]


async def test_a_lost_reply_is_sent_again_with_the_same_indices(rig: Rig) -> None:
    agent = await rig.agent(metadata=GPUS)
    await rig.submit(resources={"gpus": 2})
    given = await agent.take(1)
    agent.received = 0
    again = await agent.take(1)
    assert again == given
    assert indices(again) == [{"gpus": ("0", "1")}]


async def test_a_new_incarnation_begins_with_all_indices(rig: Rig) -> None:
    agent = await rig.agent(metadata=GPUS)
    for n in range(3):
        await rig.submit(resources={"gpus": 1}, args=n)
    assert len(await agent.take(10)) == 3
    await agent.enrol(metadata=GPUS, takeover=True)
    await rig.submit(resources={"gpus": 3}, priority=10)
    await rig.advance(MINUTE)
    assert indices(await agent.take(1)) == [{"gpus": ("0", "1", "2")}]


async def test_jobs_that_share_processors_have_one_each(rig: Rig) -> None:
    shared = {"system:cpus": 2, "indices:cpus": ["4", "6"], "system:shares": True}
    agent = await rig.agent(metadata=shared)
    for n in range(3):
        await rig.submit(args=n)
    assert indices(await agent.take(10)) == [{"cpus": ("4",)}, {"cpus": ("6",)}]


async def test_indices_stay_taken_when_an_operator_changes_what_is_offered(rig: Rig) -> None:
    agent = await rig.agent(metadata={**GPUS, "system:shares": True, "system:cpus": 8})
    for n in range(5):
        await rig.submit(resources={"gpus": 1}, args=n)
    held = await agent.take(2)
    await rig.engine.workers.set_metadata(agent.id, {"indices:gpus": ["1", "2"]})
    assert indices(await agent.take(10)) == []  # two are in use, and two are offered
    await agent.finish(held[1])
    assert indices(await agent.take(10)) == [{"gpus": ("1",)}]


async def test_indices_count_though_what_jobs_take_has_changed(rig: Rig) -> None:
    """A job without wishes took a processor, until an operator let jobs share them freely."""
    shared = {"system:cpus": 2, "indices:cpus": ["0", "1"], "system:shares": True}
    agent = await rig.agent(metadata=shared)
    await rig.submit()
    assert indices(await agent.take(1)) == [{"cpus": ("0",)}]
    await rig.engine.workers.set_metadata(agent.id, {"system:shares": False})
    await rig.submit(resources={"cpus": 2})
    assert await agent.take(1) == ()
    await rig.submit(resources={"cpus": 1})
    assert indices(await agent.take(1)) == [{"cpus": ("1",)}]


async def test_the_job_and_its_worker_show_the_indices(rig: Rig) -> None:
    agent = await rig.agent("w", metadata=GPUS)
    job = await rig.submit(resources={"gpus": 2})
    await agent.take(1)
    view = await rig.store.read(lambda tx: tx.views.job(job))
    assert view is not None
    assert view.lease is not None
    assert read_indices(view.lease.indices) == {"gpus": ("0", "1")}
    (held,) = await rig.store.read(lambda tx: tx.placement.indices([agent.id]))
    assert (held.worker, held.job) == (agent.id, job)


async def test_explain_names_the_indices_in_use(memory_rig: Rig) -> None:
    rig = memory_rig
    agent = await rig.agent("w", metadata=GPUS)
    await rig.submit(resources={"gpus": 2})
    await agent.take(1)
    waits = await rig.submit(resources={"gpus": 2})
    found = await rig.engine.explain.job(waits)
    assert found.workers[0].text == "worker w: needs gpus 2, has 1 of 3 free; in use: 0, 1"
    idle = await rig.engine.explain.worker(agent.id)
    assert "1 of 3 free; in use: 0, 1" in idle.work[0].text


async def test_two_servers_never_give_one_index_twice(rig: Rig) -> None:
    if rig.kind != "postgres":
        return
    other = await rig.another_engine()
    agent = await rig.agent(metadata=GPUS)
    same = Agent(other, agent.name)
    same.id, same.incarnation = agent.id, agent.incarnation
    given: list[Assignment] = []
    for n in range(3):
        await rig.submit(resources={"gpus": 1}, args=n)
        turn = (agent, same)[n % 2]
        turn.seq, turn.received = n, max((job.lease for job in given), default=0)
        given += await turn.take(1)
    assert indices(tuple(given)) == [{"gpus": (n,)} for n in ("0", "1", "2")]


class Fleet:
    """Random commands for workers with indices; what their processes hold is counted beside."""

    def __init__(self, rig: Rig, chance: Random) -> None:
        self.rig = rig
        self.chance = chance
        self.agents: list[Agent] = []
        self.jobs: list[int] = []
        self.held: dict[int, dict[tuple[int, int], Assignment]] = {}  # by position of the agent

    async def play(self, steps: int) -> None:
        for n in range(2):
            self.agents.append(await self.rig.agent(f"w{n}", slots=4, metadata=GPUS))
            self.held[n] = {}
        moves = (self.submit, self.submit, self.take, self.take, self.take, self.end, self.end,
                 self.cancel, self.kill, self.expire, self.restart, self.audit)  # fmt: skip
        for _ in range(steps):
            await self.chance.choice(moves)()
            await self.check()

    async def check(self) -> None:
        for n, held in self.held.items():
            users = Counter(
                index for job in held.values() if job.indices for index in job.indices["gpus"]
            )
            assert all(count == 1 for count in users.values()), (n, held)
        leases = Counter(
            (row.worker, index)
            for row in (await self.rig.snapshot()).leases
            for index in read_indices(row.indices).get("gpus", ())
        )
        assert all(count == 1 for count in leases.values()), leases

    async def submit(self) -> None:
        wants = self.chance.choice([{"gpus": 1}, {"gpus": 2}, {}])
        self.jobs.append(await self.rig.submit(resources=wants, args=len(self.jobs), retries=5))

    async def take(self) -> None:
        n = self.chance.randrange(2)
        reply = await self.agents[n].sync(want=self.chance.randint(1, 4))
        self.learn(n, reply)
        if self.chance.random() < 0.2:
            self.agents[n].received = 0  # the reply was lost: all of it comes again

    def learn(self, n: int, reply: Any) -> None:
        for lost in reply.lost:
            self.held[n].pop((lost.job, lost.attempt), None)
        for job in reply.jobs:
            self.held[n][job.job, job.attempt] = job
            assert job.indices is None or set(job.indices) == {"gpus"}
        for stop in reply.cancel:
            self.held[n].pop((stop.job, stop.attempt), None)

    async def end(self) -> None:
        n = self.chance.randrange(2)
        if self.held[n]:
            job = self.held[n].pop(self.chance.choice(list(self.held[n])))
            outcome = self.chance.choice(["completed", "failed"])
            self.learn(n, await self.agents[n].finish(job, outcome))  # type: ignore[arg-type]

    async def cancel(self) -> None:
        if self.jobs:
            await self.rig.engine.jobs.cancel([self.chance.choice(self.jobs)])

    async def kill(self) -> None:
        """kill -9 of agent and jobs; the next agent of the directory takes over."""
        n = self.chance.randrange(2)
        self.held[n].clear()
        await self.agents[n].enrol(slots=4, metadata=GPUS, takeover=True)

    async def expire(self) -> None:
        """A worker falls silent until its leases have ended; its keeper has killed its jobs."""
        n = self.chance.randrange(2)
        for _ in range(8):
            await self.rig.advance(20 * SECOND)
            self.learn(1 - n, await self.agents[1 - n].sync())
            await self.rig.health()
        self.held[n].clear()
        await self.agents[n].enrol(slots=4, metadata=GPUS)

    async def restart(self) -> None:
        """kill -9 of the server."""
        await self.rig.restart()
        for agent in self.agents:
            agent.engine = self.rig.engine

    async def audit(self) -> None:
        n = self.chance.randrange(2)
        self.learn(n, await self.agents[n].audit(tuple(self.held[n].values())))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_no_index_is_held_twice_whatever_happens(rigs: Rigs, kind: str, seed: int) -> None:
    with rigs.open(kind) as rig:
        rig.run(Fleet(rig, Random(seed)).play(80))
        assert rig.run(verify(rig.store)) == []
