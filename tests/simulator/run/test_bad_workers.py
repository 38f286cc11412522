"""What the rule for suspected workers does to whole fleets, in virtual time."""

import asyncio
import tempfile
from collections import Counter
from pathlib import Path

import pytest

from tests.support.forms import by_form
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.records import Worker
from windlass.domain.values.ids import WorkerId
from windlass.engine.verify import verify
from windlass.simulator.agent import Agent
from windlass.simulator.jobs import Traits
from windlass.simulator.network import Network, Weather
from windlass.simulator.processes import ProcessRegistry
from windlass.simulator.server import Server, StoreFaults, Stores
from windlass.simulator.simulation import end_all_tasks
from windlass.simulator.world import World
from windlass.store.sql.snapshot import Snapshot

CALM = Weather(delay_ms=5)
SEEDS = range(1, by_form(2, 12) + 1)
HOUR_S = 3_600
RESTART_MS = 500  # until a service manager starts a killed agent again
BAD = Traits(name="bad", slots=2, metadata={"os": "linux"}, breaks=1.0)


class Farm:
    """Workers of one server that run jobs until all have ended."""

    def __init__(self, seed: int, *traits: Traits) -> None:
        self.world = World(seed)
        self._traits = traits
        self.starts: Counter[str] = Counter()
        self.states: Counter[str] = Counter()
        self.workers: dict[str, Worker] = {}
        self.reasons: list[str] = []  # what the log says of workers
        self.seconds = 0.0  # from the submission to the end of the last job
        self.kill_after_ms = 0  # the first worker's agent is killed once, then; 0: never
        self.recovers = False  # the world is calm after a while, and nothing breaks in it
        self.snapshot: Snapshot | None = None
        self._last_end = 0

    def run(self, *jobs: JobSpec, rate: int = 100) -> None:
        """Submits jobs at a given rate and waits until all have ended."""
        world = self.world
        with tempfile.TemporaryDirectory(prefix="windlass-") as folder:
            stores = Stores(world, "memory", 1, Path(folder))
            try:
                play = asyncio.wait_for(self._play(stores, jobs, rate), HOUR_S)
                world.loop.run_until_complete(play)
            finally:
                end_all_tasks(world)
                world.loop.run_until_complete(stores.view.close())
                world.loop.close()
        assert world.violations == []

    async def _play(self, stores: Stores, jobs: tuple[JobSpec, ...], rate: int) -> None:
        world = self.world
        server = Server(
            world, "server-1", stores.opener("s1"), StoreFaults(), stores.survives_engine
        )
        await server.start()
        network, processes = Network(world, CALM), ProcessRegistry(world)
        agents = [Agent(world, network, [server], processes, one) for one in self._traits]
        for agent in agents:
            agent.start()
        await world.clock.sleep_ms(1_000)
        began = world.clock.now_ms()
        if self.kill_after_ms:
            world.after(self.kill_after_ms, agents[0].crash, False)
            world.after(self.kill_after_ms + RESTART_MS, agents[0].start, True)
        assert server.engine is not None
        for first in range(0, len(jobs), rate):
            await server.engine.submit(list(jobs[first : first + rate]))
            await world.clock.sleep_ms(1_000)
            if self.recovers and first >= len(jobs) // 4:
                world.calm = True
        while any(row.facts.is_open for row in (await stores.view.snapshot()).jobs):
            await world.clock.sleep_ms(1_000)
        await self._look(stores)
        self.seconds = (self._last_end - began) / 1_000
        for agent in agents:
            agent.crash(keeper_lingers=False)
        await server.stop()

    async def _look(self, stores: Stores) -> None:
        snapshot = await stores.view.snapshot()
        assert await verify(stores.view, self.world.config) == []
        self.workers = {row.name: row for row in snapshot.workers}
        names = {row.id: row.name for row in snapshot.workers}
        events = await stores.view.read(lambda tx: tx.log.read(0, 1_000_000))
        for event in events:
            if event.job:
                self._last_end = event.at
            if event.to == State.RUNNING.code:
                self.starts[names[WorkerId(event.worker)]] += 1
            elif event.worker and not event.job:
                self.reasons.append(event.reason or "")
        self.states = Counter(str(state_of(row.facts.state)) for row in snapshot.jobs)
        self.snapshot = snapshot


def state_of(code: int | None) -> State:
    return next(state for state in State if state.code == code)


def workers(count: int, slots: int = 2, breaks: float = 0.0) -> list[Traits]:
    return [
        Traits(name=f"worker-{n}", slots=slots, metadata={"os": "linux"}, breaks=breaks)
        for n in range(1, count + 1)
    ]


def job(number: int, ms: int = 1_000, retries: int = 10, poison: bool = False) -> JobSpec:
    return JobSpec(task="compile", args={"ms": ms + number % 7, "poison": poison}, retries=retries)


@pytest.mark.parametrize("rate", [0.03, 0.2, 0.5])
@pytest.mark.parametrize("seed", SEEDS)
def test_with_transient_failures_on_all_workers_every_job_completes(seed: int, rate: float) -> None:
    farm = Farm(seed, *workers(4, breaks=rate))
    farm.run(*[job(number, retries=40) for number in range(200)])
    assert farm.states == {"completed": 200}
    assert {row.status for row in farm.workers.values()} == {int(WorkerStatus.ONLINE)}


@pytest.mark.parametrize("seed", SEEDS)
def test_one_bad_worker_among_five_gets_less_than_a_tenth_of_what_its_peers_get(seed: int) -> None:
    farm = Farm(seed, *workers(4), BAD)
    farm.run(*[job(number) for number in range(1_000)])
    assert farm.states == {"completed": 1_000}
    least = min(farm.starts[f"worker-{n}"] for n in range(1, 5))
    assert farm.starts["bad"] < least / 10
    assert farm.reasons[-1].startswith("Worker bad is on probation: ")
    assert not [said for said in farm.reasons if "worker-" in said and "probation" in said]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_job_that_kills_its_workers_puts_none_on_probation(seed: int) -> None:
    farm = Farm(seed, *workers(3, slots=4))
    farm.run(*[job(number, poison=number == 3) for number in range(60)])
    assert farm.states == {"completed": 59, "failed": 1}
    assert not [said for said in farm.reasons if "probation" in said]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_worker_that_recovers_comes_back_by_itself(seed: int) -> None:
    farm = Farm(seed, *workers(4), BAD)
    farm.recovers = True
    farm.run(*[job(number) for number in range(500)])
    assert farm.states == {"completed": 500}
    assert any("Worker bad is no longer on probation" in said for said in farm.reasons)
    assert farm.workers["bad"].status == WorkerStatus.ONLINE


@pytest.mark.parametrize("count", [20, 40])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_worker_that_is_lost_with_all_its_jobs_costs_at_most_twice_the_time(
    seed: int, count: int
) -> None:
    def took(kill_after_ms: int) -> float:
        farm = Farm(seed, *workers(1, slots=20))
        farm.kill_after_ms = kill_after_ms
        farm.run(*[job(number, ms=3_000) for number in range(count)])
        assert farm.states == {"completed": count}
        return farm.seconds

    undisturbed = took(0)
    for kill_after_ms in (500, 1_500, 2_400):
        assert took(kill_after_ms) <= 2 * undisturbed


@pytest.mark.parametrize("seed", SEEDS)
def test_a_poison_job_among_others_that_are_lost_with_it_is_blamed_alone(seed: int) -> None:
    farm = Farm(seed, *workers(1, slots=20))
    farm.kill_after_ms = 200
    farm.run(*[job(number, ms=3_000, poison=number == 7) for number in range(20)])
    assert farm.states == {"completed": 19, "failed": 1}
    assert farm.snapshot is not None
    (blamed,) = [row.facts for row in farm.snapshot.jobs if row.facts.lost]
    assert str(state_of(blamed.state)) == "failed"
