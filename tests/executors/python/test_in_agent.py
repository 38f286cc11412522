"""Python and media jobs end to end: an engine, a real agent with its keeper, real processes."""

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import MemoryFiles
from tests.worker.rig import Rig, play, state_of
from windlass.clock import RealChance
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.executors.loading import load_executors
from windlass.ports.gateway import Holder
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.direct import DirectGateway
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.isolation.job_users import DEFAULT_RANGE, JobUsers

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


def _files_with_code(folder: Path) -> list[Path]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    name = FUNCTIONS.encode()
    return [file for file in files if FUNCTIONS in file.name or name in file.read_bytes()]


def test_no_file_holds_code_that_other_jobs_run(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job may write to every file of the worker's user: it must find no code of others there."""
    folder = tmp_path_factory.mktemp("t")  # a short path, as sockets need it
    monkeypatch.setattr(tempfile, "tempdir", str(folder))

    async def scene(rig: Rig) -> None:
        async with agent(rig):
            assert (await rig.ended(await submit(rig, "add", 20, 22))).result == b"42"
            assert _files_with_code(folder) == []
            assert _files_with_code(JobUsers(rig.folder / "w", DEFAULT_RANGE).place.path) == []

    play(folder, scene)


def test_a_blocking_function_does_not_hold_up_the_agent(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with agent(rig):
            blocked = await submit(rig, "block_in_c")
            assert await rig.files.log_line(blocked) == ["blocking"]
            assert (await rig.ended(await submit(rig, "add", 1))).result == b"1"
            await rig.engine.jobs.cancel([blocked])
            assert state_of(await rig.ended(blocked)) == "canceled"

    play(tmp_path, scene)


def test_a_function_that_takes_too_long_times_out(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with agent(rig):
            await rig.ended(await submit(rig, "add", 1))  # a process is ready
            job = await submit(rig, "sleep_and_clean_up", timeout_ms=1_500, retries=0)
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


def test_a_probed_duration_sets_the_timeout_of_its_attempt(tmp_path: Path) -> None:
    """The clip takes as long to read as it lasts, and the policy allows half of that."""

    async def scene(rig: Rig) -> None:
        async with agent(rig):
            clip = {"url": "testsrc=duration=2:size=64x64:rate=5", "format": "lavfi"}
            made = await rig.submit(
                task="ffmpeg",
                args={"inputs": [clip], "output": "a.mkv", "codec": "mpeg4"},
            )
            assert state_of(await rig.ended(made)) == "completed"
            source = tmp_path / "a.mkv"
            source.write_bytes(rig.files.artifacts[made, "a.mkv"])
            slow = {"url": str(source), "options": ["-re"]}
            job = await rig.submit(
                task="ffmpeg",
                args={"inputs": [slow], "output": "b.mkv", "codec": "mpeg4"},
                retries=0,
            )
            record = await rig.ended(job)
            assert FAILURE_BY_CODE[record.failure] == "timeout"
            assert record.message == (
                "Timed out after 1 s, by the length of its media (--timeout overrides it)"
            )

    class Impatient(MemoryFiles):
        async def measured(self, holder: Holder, duration_ms: int) -> int:
            return duration_ms // 2

    async def impatient(rig: Rig) -> None:
        rig.files = Impatient()
        rig.gateway = DirectGateway(rig.engine, rig.files)
        await scene(rig)

    play(tmp_path, impatient)


@pytest.mark.parametrize(
    ("change", "failure", "attempts"),
    [
        ({"inputs": ["http://127.0.0.1:{port}/x"]}, "network", 4),
        ({"inputs": ["/etc/hostname"]}, "execution", 1),
        ({"codec": "libnope"}, "configuration", 1),
    ],
    ids=["network", "codec", "encoder"],
)
def test_ffmpeg_is_tried_again_when_that_may_help(
    tmp_path: Path, change: dict[str, Any], failure: str, attempts: int
) -> None:
    async def scene(rig: Rig) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))  # a port on which nobody listens
            port = taken.getsockname()[1]
            clip = {"url": "testsrc=duration=1:size=64x64", "format": "lavfi"}
            args = {"inputs": [clip], "output": "a.mkv", "codec": "mpeg4", **change}
            args["inputs"] = [
                text.format(port=port) if isinstance(text, str) else text for text in args["inputs"]
            ]
            async with agent(rig):
                record = await rig.ended(await rig.submit(task="ffmpeg", args=args))
        assert state_of(record) == "failed"
        assert FAILURE_BY_CODE[record.failure] == failure
        assert record.facts.attempt == attempts

    play(tmp_path, scene)
