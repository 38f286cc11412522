"""A state directory on a full disk: a message that says so, and no job lost for its record."""

from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.worker.rig import Rig, play, state_of
from windlass.worker.agent.state import StateDirectory, StateUnusable


def test_a_worker_says_which_disk_is_full(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "memory.new").symlink_to("/dev/full")
    words = ("--server", "http://127.0.0.1:9", "--state", str(tmp_path / "state"))
    done = Program(tmp_path / "data")("worker", "--name", "w", *words)
    assert done.returncode == 5
    assert f"cannot write to {tmp_path / 'state'}: No space left on device" in done.stderr
    assert "--state" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateUnusable, match="Not a directory"):
        StateDirectory(tmp_path / "file" / "state")


def test_jobs_run_although_the_keeper_cannot_write_its_record(tmp_path: Path) -> None:
    (tmp_path / "w" / "groups").mkdir(parents=True)  # a file of this name cannot be made

    async def scene(rig: Rig) -> None:
        async with rig.agent():
            for _ in range(2):
                record = await rig.ended(await rig.submit("true"))
                assert (state_of(record), record.facts.attempt) == ("completed", 1)

    play(tmp_path, scene)
