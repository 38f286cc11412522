"""Where running functions are: whatever they do, in every kind of process."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.executors.conftest import OnPython, PythonBench
from tests.executors.python.test_in_agent import submit
from tests.worker.rig import Rig, play
from windlass.blobs.memory import MemoryBlobs
from windlass.domain.values.errors import Conflict, NotFound
from windlass.engine.files.stacks import Stacks
from windlass.executors.loading import load_executors
from windlass.messages.files import StackThread


def innermost(threads: list[StackThread] | None, function: str) -> str:
    """The code that `function` runs now, in the first thread, which begins with it."""
    assert threads is not None
    first = threads[0].frames[0]
    assert first.function == function
    assert first.file.endswith("tests/executors/functions.py")
    return first.code


@pytest.mark.parametrize(
    ("function", "code"),
    [
        ("sleep_and_clean_up", "threading.Event().wait()"),
        ("sleep_async", "await asyncio.Event().wait()"),
        ("block_the_loop", "threading.Event().wait()"),
    ],
)
def test_a_running_function_says_where_it_is(on_python: OnPython, function: str, code: str) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context(function)
        running = python.start(context)
        await context.until_written(b"\n")
        threads = await python.executor.stack(context)
        while threads is None or code not in threads[0].frames[0].code:  # just before it
            threads = await python.executor.stack(context)
        assert innermost(threads, function) == code
        assert len(threads[0].frames) > 1
        context.stopping.set()
        await running
        assert await python.executor.stack(context) is None

    on_python(body)


async def ask_again(python: PythonBench, context: Any) -> None:
    """Asks until it does not answer: it may be about to block."""
    while True:
        async with asyncio.timeout(0.2):
            await python.executor.stack(context)


def test_a_function_that_holds_pythons_lock_does_not_hold_up_the_asker(on_python: OnPython) -> None:
    async def body(python: PythonBench) -> None:
        context = python.context("block_in_c")
        running = python.start(context)
        await context.until_written(b"\n")
        with pytest.raises(TimeoutError):
            await ask_again(python, context)
        context.stopping.set()
        await running

    on_python(body)


def test_the_server_asks_the_worker_of_the_attempt(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        stacks = Stacks(rig.engine, MemoryBlobs())
        rig.gateway.stack = stacks.answer
        async with rig.agent(executors=load_executors(["python", "shell"]), slots=4):
            shared = await submit(rig, "sleep_and_clean_up")
            lone = await submit(rig, "sleep_and_clean_up", limits={"memory": "1GiB"})
            program = await rig.submit("sh", "-c", "echo; exec sleep 60")
            await rig.files.log_line(program)
            for job in (shared, lone):
                await rig.files.log_line(job)
                found, same = await asyncio.gather(stacks.ask(job), stacks.ask(job))
                assert found.threads == same.threads
                assert innermost(list(found.threads), "sleep_and_clean_up")
                assert (found.job, found.attempt, found.worker) == (job, 1, "w")
            with pytest.raises(Conflict, match="only running Python functions"):
                await stacks.ask(program)
            with pytest.raises(NotFound):
                await stacks.ask(999)
            await rig.engine.jobs.cancel([shared, lone, program])
            await rig.ended(shared)
            with pytest.raises(Conflict, match="is not running"):
                await stacks.ask(shared)
            await rig.ended(lone)
            await rig.ended(program)

    play(tmp_path, scene)
