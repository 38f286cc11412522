"""Globs of artifacts: the same files as before, in a time that wildcards do not multiply."""

import asyncio
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.running import run
from windlass.clock import RealClock
from windlass.domain.values.errors import InvalidInput
from windlass.worker.attempt import files as module
from windlass.worker.attempt.files import find_files

PARTS = st.sampled_from(["**", "*", "a", "b", "?", "*.t", "[ab]", "a*b"])
NAMES = st.sampled_from(["a", "b", "ab", "x.t", ".hidden"])


def found(folder: Path, pattern: str) -> list[str]:
    return [name for name, _ in run(find_files(folder, pattern, RealClock()))]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three levels of folders with files of every name in each."""
    root = tmp_path_factory.mktemp("tree")
    for path in ("", "a", "b", "ab", "a/a", "a/b", "b/ab", "a/a/b"):
        folder = root / "d" / path
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("x.t", ".hidden", "f"):
            (folder / name).touch()
    return root / "d"


@given(st.lists(PARTS, min_size=1, max_size=4))
def test_it_finds_what_pathlib_finds(tree: Path, parts: list[str]) -> None:
    pattern = "/".join(parts)
    if pattern.endswith("**"):
        pattern += "/*"  # before Python 3.13, a last ** stands for folders alone
    expected = sorted({p.relative_to(tree).as_posix() for p in tree.glob(pattern) if p.is_file()})
    assert found(tree, pattern) == expected


def test_wildcards_do_not_multiply_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pathlib needs hours for this one; here every folder is read once."""
    deep = tmp_path.joinpath(*["d"] * 30)
    deep.mkdir(parents=True)
    (deep / "file").touch()
    read: list[object] = []
    scandir = os.scandir

    def count(folder: Path) -> object:
        read.append(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", count)
    assert found(tmp_path, "**/" * 12 + "nothing") == []
    assert found(tmp_path, "*/**/" * 12 + "file") == ["/".join(["d"] * 30 + ["file"])]
    assert len(read) == 2 * 31


def test_the_loop_goes_on_while_many_files_are_looked_at(tmp_path: Path) -> None:
    for number in range(2_000):
        (tmp_path / f"{number}").touch()

    async def scenario() -> int:
        turns = 0

        async def turn() -> None:
            nonlocal turns
            while True:
                turns += 1
                await RealClock().sleep_ms(0)

        turning = asyncio.create_task(turn())
        await find_files(tmp_path, "*.none", RealClock())
        turning.cancel()
        return turns

    assert run(scenario()) >= 3


def test_links_lead_to_files_inside_only_and_circles_end(tmp_path: Path) -> None:
    root, outside = tmp_path / "scratch", tmp_path / "secret"
    (root / "out").mkdir(parents=True)
    outside.mkdir()
    for file in (root / "out" / "kept", outside / "key"):
        file.touch()
    os.symlink("out", root / "latest")
    os.symlink("../out", root / "out" / "self")
    os.symlink(outside, root / "away")
    os.symlink(outside / "key", root / "key")
    assert found(root, "latest/*") == ["latest/kept"]
    assert found(root, "**/kept") == ["out/kept"]
    assert found(root, "**/key") == []
    assert found(root, "away/*") == []
    assert found(root, "../secret/*") == []


def test_a_walk_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(11):
        (tmp_path / f"{number}").touch()
    monkeypatch.setattr(module, "MAX_ENTRIES", 10)
    with pytest.raises(InvalidInput, match="at most 10 files"):
        found(tmp_path, "*")
