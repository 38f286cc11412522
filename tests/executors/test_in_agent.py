"""Python and media jobs end to end: an engine, a real agent with its keeper, real processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.worker.rig import Rig, play, state_of
from windlass.clock import RealChance
from windlass.domain.failure import FAILURE_BY_CODE
from windlass.executors import load_executors
from windlass.worker.agent import Agent
from windlass.worker.options import WorkerOptions

FUNCTIONS = "tests.executors.functions"


@asynccontextmanager
async def agent(rig: Rig, slots: int = 4) -> AsyncIterator[Agent]:
    """An agent that runs Python functions and ffmpeg."""
    options = WorkerOptions(name="w", state=rig.folder / "w", slots=slots)
    executors = load_executors(["python", "ffmpeg"])
    started = Agent(rig.gateway, options, executors, rig.clock, RealChance())
    running = asyncio.create_task(started.run())
    try:
        yield started
    finally:
        started.stop()
        await running


async def submit(rig: Rig, name: str, *args: object, **fields: object) -> int:
    call = {"function": f"{FUNCTIONS}:{name}", "args": list(args)}
    return await rig.submit(task="python", args=call, **fields)


def test_functions_run_through_an_agent(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with agent(rig):
            plain = await submit(rig, "add", 20, 22)
            waiting = await submit(rig, "greet", "fleet")
            printed = await submit(rig, "print_lines", ["one", "two"])
            assert (await rig.ended(plain)).result == b"42"
            assert (await rig.ended(waiting)).result == b'{"hello":"fleet"}'
            assert state_of(await rig.ended(printed)) == "completed"
            assert await rig.files.log_end(printed) == b"one\ntwo\n"

    play(tmp_path, scene)


def test_a_blocking_function_does_not_hold_up_the_agent(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with agent(rig):
            blocked = await submit(rig, "block_in_c")
            assert await rig.files.log_line(blocked) == ["blocking"]
            assert (await rig.ended(await submit(rig, "add", 1))).result == b"1"
            await rig.engine.cancel([blocked])
            assert state_of(await rig.ended(blocked)) == "canceled"

    play(tmp_path, scene)


def test_a_function_that_takes_too_long_times_out(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with agent(rig):
            job = await submit(rig, "sleep_and_clean_up", timeout_ms=1_500, max_retries=0)
            record = await rig.ended(job)
            assert (state_of(record), FAILURE_BY_CODE[record.failure]) == ("failed", "timeout")
            assert b"cleaned up" in await rig.files.log_end(job)

    play(tmp_path, scene)


def test_a_transcode_leaves_its_artifact_for_the_next(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with agent(rig):
            clip = {"url": "testsrc=duration=2:size=160x120", "format": "lavfi"}
            made = await rig.submit(
                task="ffmpeg", args={"inputs": [clip], "output": "clip.mp4", "duration": 2}
            )
            assert state_of(await rig.ended(made)) == "completed"
            assert rig.files.artifacts[made, "clip.mp4"][4:8] == b"ftyp"
            source = {"artifact": "clip.mp4", "job": made}
            again = await rig.submit(
                task="ffmpeg", args={"inputs": [source], "output": "still-%02d.png"}
            )
            assert state_of(await rig.ended(again)) == "completed"
            assert rig.files.artifacts[again, "still-01.png"].startswith(b"\x89PNG")

    play(tmp_path, scene)
