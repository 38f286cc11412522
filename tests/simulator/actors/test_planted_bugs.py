"""Bugs planted in the agent that production and simulation share: the simulator finds them."""

import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from windlass.domain.job.job import JobSpec
from windlass.domain.matching.indices import pick
from windlass.engine import steps
from windlass.engine.claim import gates
from windlass.simulator import simulate
from windlass.simulator.agent import Agent
from windlass.simulator.jobs import Traits
from windlass.simulator.network import Network, Weather
from windlass.simulator.processes import ProcessRegistry
from windlass.simulator.scenario import Scenario
from windlass.simulator.server import Server, StoreFaults, Stores
from windlass.simulator.simulation import end_all_tasks, run_scenario
from windlass.simulator.world import World
from windlass.worker.attempt.context import IndexUse
from windlass.worker.core import agent_core, ports, slots, sync_loop

METADATA = {"gpu": True, "system:cpus": 8}
SEEDS = (1, 2)

# Servers that work, and a network that loses replies.
LOSSY = Scenario(
    store="memory",
    engines=1,
    workers=tuple(
        Traits(name=f"worker-{n}", slots=3, metadata=METADATA, careful=n == 1) for n in (1, 2)
    ),
    clients=1,
    jobs=15,
    retrying=False,
    trouble_ms=20_000,
    weather=Weather(lost=0.05, reply_lost=0.2, doubled=0.1, delay_ms=50),
    store_faults=StoreFaults(),
    worker_troubles=2,
    server_crashes=0,
    partitions=2,
    outage=False,
    slow_operator=False,
)


# Most jobs have steps and waits.
DURABLE = msgspec.structs.replace(LOSSY, durable=0.8)


def break_with_lost_replies(scenario: Scenario = LOSSY) -> set[str]:
    """Runs seeds until one breaks an invariant; returns which it broke."""
    for seed in SEEDS:
        found = {violation.invariant for violation in run_scenario(seed, scenario).violations}
        if found:
            return found
    return set()


def break_with_a_long_pause(folder: Path) -> set[str]:
    """Stops the agent of a long job until its lease is over; returns what that broke."""
    world = World(seed=1)
    network = Network(world, Weather())
    stores = Stores(world, "memory", 1, folder)
    server = Server(world, "server", stores.opener("s1"), StoreFaults(), stores.survives_engine)
    registry = ProcessRegistry(world)
    first, second = (
        Agent(world, network, [server], registry, Traits(name, slots=1, metadata=METADATA))
        for name in ("worker-1", "worker-2")
    )

    async def play() -> None:
        await server.start()
        assert server.engine is not None
        first.start()
        spec = JobSpec(task="compile", args={"ms": 90_000}, timeout=200, idle_timeout=200)
        job = (await server.engine.submit([spec])).ids[0]
        await world.clock.sleep_ms(2_000)
        assert registry.launched == 1
        first.pause()
        second.start()
        world.after(70_000, first.resume)
        assert await server.engine.jobs.wait_ended(job, 600_000)
        assert registry.launched == 2
        for agent in (first, second):
            agent.crash(keeper_lingers=False)
        await server.stop()

    try:
        world.loop.run_until_complete(play())
    finally:
        end_all_tasks(world)
        world.loop.close()
    return {violation.invariant for violation in world.violations}


def plant(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, name: str, right: str, wrong: str,
    user: ModuleType,
) -> None:  # fmt: skip
    """Replaces a piece of a class's source, for the module that uses the class."""
    source = inspect.getsource(getattr(module, name))
    assert source.count(right) == 1, f"{name} does not hold {right!r} once"
    scope: dict[str, Any] = dict(vars(module))
    exec(compile(source.replace(right, wrong), module.__file__ or name, "exec"), scope)
    monkeypatch.setattr(user, name, scope[name])


def test_without_a_bug_nothing_is_found(tmp_path: Path) -> None:
    assert break_with_lost_replies() == set()
    assert break_with_lost_replies(DURABLE) == set()
    assert break_with_a_long_pause(tmp_path) == set()


def test_processes_that_outlive_their_lease_are_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plant(
        monkeypatch, ports, "Deadline",
        "self.soft = max(self.soft, sent_at + self._soft_s)",
        "self.soft = max(self.soft, sent_at + self._soft_s + 20)",
        agent_core,
    )  # fmt: skip
    assert break_with_a_long_pause(tmp_path) == {"S7"}


def test_a_start_that_is_settled_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(
        monkeypatch, slots, "Slots",
        "if self._starting.pop(key, None) is not None:",
        "if True:",
        sync_loop,
    )  # fmt: skip
    assert "S7" in break_with_lost_replies()


def test_a_job_that_runs_before_its_start_is_answered_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plant(
        monkeypatch, slots, "Slots",
        "self._waiting[key] = assignment",
        "self._waiting[key] = assignment; self._launch(assignment)",
        sync_loop,
    )  # fmt: skip
    assert "S7" in break_with_lost_replies()


def test_processors_that_two_processes_hold_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server forgets what is taken, and agents do not wait for it: each is enough alone."""

    async def take(*_: object) -> None:
        """Does not wait."""

    monkeypatch.setattr(gates, "pick", lambda needs, has, _: pick(needs, has, {}))
    monkeypatch.setattr(IndexUse, "take", take)
    broken = (simulate(seed).violations for seed in range(1, 30))
    found = next((violations for violations in broken if violations), [])
    assert {violation.invariant for violation in found} == {"S13"}


def test_a_signal_that_resumes_nobody_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    async def forget(*_: object) -> int:
        """Resumes nobody."""
        return 0

    monkeypatch.setattr(steps, "resume", forget)
    assert "L7" in break_with_lost_replies(DURABLE)


def test_a_signal_that_ends_a_second_wait_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take = steps._take_signal

    async def take_any(work: Any, row: Any, name: str, created_at: int) -> Any:
        """Forgets what the job had before."""
        return await take(work, row._replace(signal=0), name, created_at)

    monkeypatch.setattr(steps, "_take_signal", take_any)
    assert "steps" in break_with_lost_replies(DURABLE)
