"""Time in the simulator: it passes at once, in order, and never by itself."""

import asyncio
import threading
from typing import Any

import pytest

from windlass.ports.loop_time import SMALL, aside
from windlass.simulator.processes import CPUS, JOB, Process, ProcessRegistry
from windlass.simulator.virtual_loop import BusyLoopError, IdleLoopError, VirtualLoop
from windlass.simulator.world import START_MS, VirtualClock, World


def make_loop() -> VirtualLoop:
    return VirtualLoop(lambda task: None)


def test_a_year_passes_at_once_and_in_order() -> None:
    loop, seen = make_loop(), []
    clock = VirtualClock(loop)

    async def sleep(ms: int) -> None:
        await clock.sleep_ms(ms)
        seen.append((ms, clock.now_ms() - START_MS))

    async def main() -> None:
        await asyncio.gather(sleep(31_536_000_000), sleep(5), sleep(1_000))

    loop.run_until_complete(main())
    loop.close()
    assert seen == [(5, 5), (1_000, 1_000), (31_536_000_000, 31_536_000_000)]


def test_a_stuck_program_is_told_so() -> None:
    loop = make_loop()
    never: asyncio.Future[Any] = loop.create_future()
    with pytest.raises(IdleLoopError):
        loop.run_until_complete(never)
    loop.close()


def test_a_program_that_lets_no_time_pass_is_told_so() -> None:
    loop = make_loop()

    def go_on() -> None:
        loop.call_soon(go_on)

    go_on()
    with pytest.raises(BusyLoopError):
        loop.run_forever()
    loop.close()


def test_what_a_server_does_in_threads_is_done_at_once() -> None:
    loop = make_loop()
    assert loop.run_until_complete(aside(SMALL + 1, threading.get_ident)) == threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        loop.run_until_complete(aside(SMALL + 1, lambda: 1 // 0))
    loop.close()


def test_two_live_processes_of_one_job_are_seen() -> None:
    """S7 is proven by the registry of processes, so it must see a second one."""
    world = World(seed=1)
    registry = ProcessRegistry(world)
    first = Process(world, registry, {JOB: "7"}, "worker-1", lambda code: None)
    assert world.violations == []
    Process(world, registry, {JOB: "7"}, "worker-2", lambda code: None)
    assert [(v.invariant, v.job) for v in world.violations] == [("S7", 7)]
    first.kill()
    Process(world, registry, {JOB: "8"}, "worker-1", lambda code: None)
    assert len(world.violations) == 1
    world.loop.close()


def test_an_unexpected_error_in_a_task_is_a_finding() -> None:
    world = World(seed=1)

    async def fail() -> None:
        raise KeyError("missing")

    async def main() -> None:
        await asyncio.wait([world.spawn(fail())])

    world.loop.run_until_complete(main())
    world.loop.close()
    assert [v.invariant for v in world.violations] == ["crash"]


def test_two_processes_with_one_processor_are_seen() -> None:
    world = World(seed=1)
    registry = ProcessRegistry(world)
    first = Process(world, registry, {JOB: "7", CPUS: "0,1"}, "worker-1", lambda code: None)
    Process(world, registry, {JOB: "8", CPUS: "0"}, "worker-2", lambda code: None)
    assert world.violations == []
    Process(world, registry, {JOB: "9", CPUS: "1"}, "worker-1", lambda code: None)
    assert [(v.invariant, v.job) for v in world.violations] == [("S13", 9)]
    first.kill()
    Process(world, registry, {JOB: "10", CPUS: "0"}, "worker-1", lambda code: None)
    assert len(world.violations) == 1
    world.loop.close()
