"""Python functions that are stopped, crash, or use too much: nothing of them is left."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from tests.executors.conftest import OnPython, PythonBench
from tests.support.job_context import is_alive
from tests.support.running import run
from windlass.executors.python.child_loop import Outbox, Server
from windlass.executors.python.messages import (
    Call,
    Failed,
    Frames,
    Report,
    Stop,
    decode_reports,
    frame,
)
from windlass.ports.executor import Limits


def test_a_sleeping_function_is_stopped_and_cleans_up(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("sleep_and_clean_up")
        running = python.start(context)
        await context.until_written(b"sleeping")
        context.stop()
        assert (await running).outcome == "canceled"
        assert b"cleaned up" in context.written
        assert (await python.call("add", 1, 1)).result == 2

    on_python(body)


def test_a_function_blocked_in_c_is_killed_after_the_grace(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("block_in_c")
        running = python.start(context)
        await context.until_written(b"blocking")
        context.stop()
        assert (await running).outcome == "canceled"
        assert (await python.call("add", 1, 1)).result == 2

    on_python(body, slots=1)


def test_a_function_may_ask_whether_it_is_canceled(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("loop_until_canceled")
        running = python.start(context)
        await context.until_written(b"looping")
        context.stop()
        assert (await running).outcome == "canceled"
        assert b"saw the flag" in context.written

    on_python(body)


def test_an_async_function_that_is_stopped_before_it_begins_says_so_at_once() -> None:
    told: asyncio.Queue[bytes] = asyncio.Queue()

    class Agent:
        def send(self, data: bytes) -> None:
            told.put_nowait(data)

    async def scenario() -> list[Report]:
        server = Server(asyncio.get_running_loop(), cast(Outbox, Agent()))
        call = Call(7, 1, 1, None, "tests.executors.functions:sleep_async", [], {})
        server.data_received(frame([call, Stop(7)]))  # both have come while its process was busy
        async with asyncio.timeout(30):
            (body,) = Frames().feed(await told.get())
        return decode_reports(body)

    assert run(scenario()) == [Failed(7, "canceled", "stopped")]


def test_a_job_that_has_not_begun_is_taken_back(on_python: OnPython, tmp_path: Path) -> None:
    gate = tmp_path / "gate"

    async def body(python: PythonBench) -> None:
        await python.call("nothing")
        for _ in range(5):
            python.executor.expect()  # What only announces calls is no call to take back.
        first = python.start(python.context("wait_for_file", str(gate)))
        contexts = [python.context("print_lines", [str(number)]) for number in range(100)]
        others = [python.start(context) for context in contexts]
        for number in (3, 50, 99):
            contexts[number].stop()
            assert (await others[number]).outcome == "canceled"
        gate.touch()
        assert (await first).outcome == "completed"
        for number, other in enumerate(others):
            ran = number not in (3, 50, 99)
            assert ((await other).outcome == "completed") == ran
            assert bool(contexts[number].written) == ran

    on_python(body, slots=1)


def test_an_async_function_is_stopped_alone(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        stopped, other = python.context("sleep_async"), python.context("sleep_async")
        running, going_on = python.start(stopped), python.start(other)
        await stopped.until_written(b"sleeping")
        await other.until_written(b"sleeping")
        stopped.stop()
        assert (await running).outcome == "canceled"
        assert b"cleaned up" in stopped.written
        assert b"cleaned up" not in other.written
        other.stop()
        assert (await going_on).outcome == "canceled"

    on_python(body)


def test_an_async_function_that_blocks_takes_its_process_along(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        innocent = python.context("sleep_async")
        beside = python.start(innocent)
        await innocent.until_written(b"sleeping")
        context = python.context("block_the_loop")
        running = python.start(context)
        await context.until_written(b"about to block")
        context.stop()
        assert (await running).outcome == "canceled"
        lost = await beside
        assert (lost.outcome, lost.failure) == ("failed", "worker_lost")
        assert (await python.call("greet", "again")).result == {"hello": "again"}

    on_python(body)


def test_a_run_that_is_abandoned_leaves_no_process(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("block_in_c")
        running = python.start(context)
        await context.until_written(b"blocking")
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await python.call("add", 1, 1)).result == 2  # the only slot is free again

    on_python(body, slots=1)


@pytest.mark.parametrize(
    ("how", "failure", "exit_code"),
    [
        ("exit", "execution", 3),
        ("SIGSEGV", "execution", None),
        ("SIGABRT", "execution", None),
        ("SIGKILL", "worker_lost", None),
    ],
)
def test_a_crash_fails_its_job_alone(
    on_python: OnPython, how: str, failure: str, exit_code: int | None
) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("die", how)
        others = [python.start(python.context("add", number)) for number in range(20)]
        result = await python.executor.run(context)
        assert (result.outcome, result.failure) == ("failed", failure)
        assert result.exit_code == exit_code
        assert context.written == b"last words\n"
        assert [(await other).result for other in others] == list(range(20))

    on_python(body)


def test_a_crash_of_an_async_function_is_its_own_if_alone(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        result = await python.call("die_async")
        assert (result.failure, result.exit_code) == ("execution", 4)
        beside = python.context("sleep_async")
        running = python.start(beside)
        await beside.until_written(b"sleeping")
        crashed = await python.call("die_async")
        assert (crashed.failure, (await running).failure) == ("worker_lost", "worker_lost")

    on_python(body)


def test_memory_over_the_limit_is_a_resource_failure(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        result = await python.call("allocate", 1 << 30)
        assert (result.outcome, result.failure) == ("failed", "resource")
        assert (await python.call("allocate", 1000)).result == 1000

    on_python(body, limits=Limits(memory_bytes=400 << 20))


def test_processes_are_used_again_and_grow_to_the_slots(
    on_python: OnPython, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"

    async def body(python: PythonBench) -> None:
        contexts = [python.context("wait_for_file", str(gate)) for _ in range(6)]
        running = [python.start(context) for context in contexts]
        while sum(bool(context.written) for context in contexts) < 4:
            await asyncio.wait(running, timeout=0.01)
        gate.touch()
        pids = {(await job).result for job in running}
        assert len(pids) == python.executor.processes == 4
        assert (await python.call("pid")).result in pids

    on_python(body, slots=4)


def test_a_fork_that_returns_takes_no_calls(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        assert (await python.call("fork_and_return")).result == 1
        results = await asyncio.gather(*(python.call("add", number) for number in range(50)))
        assert [result.result for result in results] == list(range(50))

    on_python(body, slots=1)


def test_no_process_is_left_when_the_executor_is_closed(on_python: OnPython) -> None:
    pids: list[int] = []

    async def body(python: PythonBench) -> None:
        pids.append((await python.call("pid")).result)
        context = python.context("block_in_c")
        running = python.start(context)
        await context.until_written(b"blocking")
        await python.executor.close()
        assert (await running).outcome == "failed"

    on_python(body)
    assert pids
    assert not any(is_alive(pid) for pid in pids)


def test_a_process_that_cannot_start_fails_the_jobs_that_wait(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        results = await asyncio.gather(python.call("add", 1), python.call("greet", "x"))
        for result in results:
            assert (result.outcome, result.failure) == ("failed", "worker_lost")

    on_python(body, preload=["a_module_that_is_nowhere"])
