"""Folders of processes: gone with their owner, or with the next who makes one."""

import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.worker.rig import Rig, play, state_of
from windlass.executors.temporary import TemporaryFolder

PREFIX = "windlass-python-"
HOLD = f"""
import sys
from windlass.executors.temporary import TemporaryFolder
folder = TemporaryFolder({PREFIX!r})
(folder.path / "socket").touch()
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def place(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """A place for temporary things where nobody else has any, with a short path."""
    tmp_path_factory.getbasetemp()  # now, or it would be in here
    with tempfile.TemporaryDirectory(prefix="w", dir="/tmp") as folder:
        point_to(Path(folder), monkeypatch)
        yield Path(folder)


def point_to(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let temporary things be made in `place`."""
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)


def holding() -> tuple["subprocess.Popen[str]", Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def everything(place: Path) -> list[Path]:
    return list(place.iterdir())


def end(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.communicate()


def test_one_of_a_killed_process_goes_with_the_next_and_others_stay(place: Path) -> None:
    killed, left = holding()
    alive, held = holding()
    foreign = place / "windlass-other-1"
    foreign.mkdir()
    try:
        end(killed)
        assert left.is_dir()
        with TemporaryFolder(PREFIX) as own:
            assert set(place.iterdir()) == {held, foreign, own.path}
        assert set(place.iterdir()) == {held, foreign}
    finally:
        end(alive)


def test_a_link_is_not_followed(place: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    (place / f"{PREFIX}link").symlink_to(precious)
    TemporaryFolder(PREFIX).close()
    assert (precious / "file").exists()


def test_where_paths_would_be_too_long_for_sockets_a_shorter_place_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("deep" * 20)
    deep.mkdir()
    point_to(deep, monkeypatch)
    with TemporaryFolder(PREFIX) as folder, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder.path / "socket"))
        assert not folder.path.is_relative_to(deep)


def test_an_agent_that_was_killed_leaves_no_folder_of_its_functions(
    place: Path, tmp_path: Path
) -> None:
    async def scene(rig: Rig) -> None:
        call = {"function": "tests.executors.functions:add", "args": [1, 2]}
        async with rig.agent_process("first", task="python") as first:
            job = await rig.ended(await rig.submit(task="python", args=call))
            assert state_of(job) == "completed"
            first.signal(signal.SIGKILL)
            await first.process.wait()
        assert everything(place) == []

    play(tmp_path, scene)
