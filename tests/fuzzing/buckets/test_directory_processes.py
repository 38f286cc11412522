"""Several processes on one directory, and one on a full disk."""

import subprocess
import sys
from pathlib import Path

from tests.fuzzing.support.rig import Rig
from windlass_fuzz.buckets.directory import DirectoryBucket

MAX_S = 120


def start(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fuzzing.support.directory_writer", str(folder), *words],
        stdout=subprocess.PIPE, text=True, cwd=Path(__file__).resolve().parents[3],
    )  # fmt: skip


def said(process: subprocess.Popen[str]) -> str:
    try:
        return process.communicate(timeout=MAX_S)[0]
    finally:
        process.kill()


def test_processes_on_one_directory_lose_nothing(tmp_path: Path) -> None:
    writers = [start(tmp_path, name, "20") for name in ("a", "b", "c")]
    assert [said(writer) for writer in writers] == ["20", "20", "20"]
    rig = Rig(DirectoryBucket(tmp_path))
    queue = rig.run(rig.pipeline.queue.read()).queue
    assert rig.run(rig.pipeline.queue.version()).seq == 60
    assert sorted(queue) == sorted(f"{name}-{n}" for name in "abc" for n in range(20))
    rig.close()


def test_a_full_disk_leaves_the_state_as_it_was(tmp_path: Path) -> None:
    assert said(start(tmp_path, "a", "10")) == "10"
    rig = Rig(DirectoryBucket(tmp_path))
    before = rig.run(rig.pipeline.queue.read())
    assert said(start(tmp_path, "b", "1", "100")) == "disk_full"
    assert rig.run(rig.pipeline.queue.read()) == before
    assert not list((tmp_path / ".windlass" / "tmp").iterdir())
    assert said(start(tmp_path, "b", "1")) == "1"
    rig.close()
