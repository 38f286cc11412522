"""Containers are not the keeper's children: keeper, guard or the next agent ends them."""

import asyncio
import json
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.running import run
from tests.worker.rig import Witness
from windlass.clock import RealClock
from windlass.worker.isolation.container_engine import end_outside
from windlass.worker.keeper.client import KeeperClient
from windlass.worker.keeper.kept_process import KeptProcess, Program
from windlass.worker.keeper.launch import Start
from windlass.worker.keeper.outside import end_all
from windlass.worker.keeper.processes import boottime, look_at

HOUR_S: Final = 3_600
PATIENCE_S: Final = 60


def outside(folder: Path, name: str, line: str) -> Path:
    """Names something; this line of shell ends it, in its folder."""
    place = folder / "containers" / name
    place.mkdir(parents=True)
    words = ["sh", "-c", line.format(folder=folder)]
    (place / "ender").write_text(json.dumps([words, {"PATH": os.defpath}]))
    return place


async def seen(path: Path) -> None:
    """Waits until a file exists."""
    clock = RealClock()
    while path.name not in os.listdir(path.parent):
        await clock.sleep_ms(10)


def with_keeper(
    folder: Path, scene: Callable[[KeeperClient, KeptProcess], Coroutine[Any, Any, None]]
) -> None:
    """Runs a scene with a keeper and one process that runs something outside."""
    outside(folder, "c1", "touch {folder}/ended")

    async def main() -> None:
        keeper = KeeperClient(folder / "groups", {"PATH": os.defpath}, lambda: None)
        keeper.start()
        keeper.set_deadline(boottime() + HOUR_S, boottime() + HOUR_S)
        program = Program(argv=("sleep", "600"), cwd="/", start=Start(outside="c1"))
        process = keeper.spawn(program)
        await process.started()
        try:
            await asyncio.wait_for(scene(keeper, process), PATIENCE_S)
        finally:
            keeper.close()

    run(main())


def test_the_keeper_ends_it_with_a_process_that_it_has_to_kill(tmp_path: Path) -> None:
    async def scene(keeper: KeeperClient, process: KeptProcess) -> None:
        await process.stop(0)
        await seen(tmp_path / "ended")

    with_keeper(tmp_path, scene)


def test_the_keeper_ends_it_when_its_agent_is_gone(tmp_path: Path) -> None:
    async def scene(keeper: KeeperClient, process: KeptProcess) -> None:
        keeper.close()
        assert (tmp_path / "ended").exists()
        assert list((tmp_path / "containers").iterdir()) == []

    with_keeper(tmp_path, scene)


def test_the_guard_ends_it_when_the_keeper_was_killed(tmp_path: Path) -> None:
    async def scene(keeper: KeeperClient, process: KeptProcess) -> None:
        os.kill(keeper.pid, signal.SIGKILL)
        await seen(tmp_path / "ended")

    with_keeper(tmp_path, scene)


def test_the_keeper_ends_it_when_its_guard_was_killed(tmp_path: Path) -> None:
    async def scene(keeper: KeeperClient, process: KeptProcess) -> None:
        kept = look_at(keeper.pid)
        assert kept is not None
        os.kill(kept.parent, signal.SIGKILL)
        await seen(tmp_path / "ended")

    with_keeper(tmp_path, scene)


def test_a_process_that_watches_over_it_lives_as_long_as_its_job(tmp_path: Path) -> None:
    watch = "echo $$ > {folder}/new; mv {folder}/new {folder}/pid; sleep 600; :"
    line = f"(setsid env -i sh -c '{watch}' c1 &); exec sleep 600"

    async def scene(keeper: KeeperClient, process: KeptProcess) -> None:
        words = ("sh", "-c", line.format(folder=tmp_path))
        program = Program(argv=words, cwd="/", start=Start(outside="c1"))
        watched = keeper.spawn(program, tag=b"A=1")
        await seen(tmp_path / "pid")
        watcher = Witness(int((tmp_path / "pid").read_text()))
        await process.stop(0)
        for _ in range(3):  # The end of each lets the keeper look for what is left of ended jobs.
            await keeper.spawn(Program(argv=("sleep", "0.1"), cwd="/")).wait()
        assert watcher.alive
        await watched.stop(0)
        await watcher.gone()

    with_keeper(tmp_path, scene)


@pytest.mark.parametrize("by_agent", [True, False])
def test_what_cannot_be_ended_stays_named(tmp_path: Path, by_agent: bool) -> None:
    done = outside(tmp_path, "done", "true")
    gone = outside(tmp_path, "gone", "echo Error: No such container: gone >&2; exit 1")
    stuck = outside(tmp_path, "stuck", "echo the daemon is away >&2; exit 1")
    place = tmp_path / "containers"
    ended = run(end_outside(place)) if by_agent else end_all(str(place), 5)
    assert not ended
    assert [path.exists() for path in (done, gone, stuck)] == [False, False, True]
