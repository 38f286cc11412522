"""The corpus: inputs that several fuzzers add at once are all kept, once, up to a limit."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from windlass_fuzz.engines.engine import Engine
from windlass_fuzz.roles import corpus
from windlass_fuzz.roles.corpus import Corpus, bounded, name_of, prune

KEY = "solvers/scripted/corpus/corpus.tar.gz"


def folder_with(path: Path, *contents: bytes) -> Path:
    path.mkdir()
    for number, content in enumerate(contents):
        (path / f"any-name-{number}").write_bytes(content)
    return path


def contents(world: World, into: Path) -> set[bytes]:
    into.mkdir()
    run(Corpus(world.pipeline).fetch(into))
    return {path.read_bytes() for path in into.iterdir()}


def test_what_was_added_comes_back_once(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    merged = run(Corpus(world.pipeline).merge(folder_with(tmp_path / "a", b"one", b"two", b"one")))
    assert (merged.inputs, merged.added) == (2, 2)
    again = run(Corpus(world.pipeline).merge(folder_with(tmp_path / "b", b"two", b"three")))
    assert (again.inputs, again.added) == (3, 1)
    assert contents(world, tmp_path / "back") == {b"one", b"two", b"three"}


def test_what_several_add_at_once_is_all_there(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    folders = [folder_with(tmp_path / str(n), b"all", b"input %d" % n) for n in range(3)]

    async def all_at_once() -> None:
        await asyncio.gather(*(Corpus(world.pipeline).merge(folder) for folder in folders))

    run(all_at_once())
    assert contents(world, tmp_path / "back") == {b"all", *(b"input %d" % n for n in range(3))}


def test_what_was_pruned_goes_and_what_others_added_stays(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    run(Corpus(world.pipeline).merge(folder_with(tmp_path / "a", b"kept", b"pruned")))
    mine = tmp_path / "mine"
    mine.mkdir()
    fetched = run(Corpus(world.pipeline).fetch(mine))
    run(Corpus(world.pipeline).merge(folder_with(tmp_path / "b", b"of others")))
    (mine / name_of(b"pruned")).unlink()
    run(Corpus(world.pipeline).merge(mine, fetched))
    assert contents(world, tmp_path / "back") == {b"kept", b"of others"}


def test_a_damaged_archive_counts_as_empty(tmp_path: Path) -> None:
    world = World(tmp_path / "world")
    run(world.bucket.put(KEY, b"no archive at all"))
    run(Corpus(world.pipeline).merge(folder_with(tmp_path / "a", b"new")))
    assert contents(world, tmp_path / "back") == {b"new"}


def test_the_smallest_inputs_stay_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MAX_INPUTS", 2)
    assert set(bounded({"a": b"333", "b": b"1", "c": b"22"})) == {"b", "c"}
    monkeypatch.setattr(corpus, "MAX_BYTES", 2)
    assert set(bounded({"a": b"333", "b": b"1", "c": b"22"})) == {"b"}


def test_the_engine_decides_what_is_pruned_where_it_can(tmp_path: Path) -> None:
    many = [b"input %d" % n for n in range(300)]

    def after(engine: Engine) -> int:
        name = type(engine).__name__
        folder = folder_with(tmp_path / name, *many)
        run(prune(engine, folder, tmp_path / f"scratch-{name}", 1_000))
        return len(list(folder.iterdir()))

    assert after(Picky()) == 1
    assert after(Blind()) == 300


class Blind:
    """An engine that cannot prune."""

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


class Picky(Blind):
    """An engine that needs a single input."""

    async def prune(self, corpus: Path, into: Path, budget_ms: int) -> bool:
        (into / "one").write_bytes(b"enough")
        return True
