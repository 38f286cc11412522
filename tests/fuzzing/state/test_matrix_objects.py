"""The objects of a matrix in the bucket: combinations see only their own, and damage is safe."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzzing.support.rig import KINDS_OF_BUCKETS, Rig, rigs
from windlass_fuzz.buckets.layout import build_key, combinations_key
from windlass_fuzz.builds.build_cache import BuildCache
from windlass_fuzz.findings.untriaged import Untriaged, count_untriaged, forget_orphans
from windlass_fuzz.roles.corpus import Corpus
from windlass_fuzz.state.built_combinations import BuiltCombinations, write_built
from windlass_fuzz.state.pipeline import Pipeline

COMMIT = "a" * 40
OTHER = "b" * 40


@pytest.fixture(params=KINDS_OF_BUCKETS)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    yield from rigs(request, tmp_path, request.param)


def with_matrix(rig: Rig, *names: str) -> Pipeline:
    return Pipeline(rig.bucket, "toy", rig.runtime, "test", names)


def test_builds_of_one_combination_are_not_those_of_another(rig: Rig, tmp_path: Path) -> None:
    rig.run(rig.bucket.put(build_key("toy", "production", COMMIT, "one"), b"x"))
    rig.run(rig.bucket.put(build_key("toy", "production", OTHER, "one-address"), b"x"))
    rig.upload("c" * 40)
    listed = {
        name: rig.run(BuildCache(rig.pipeline, tmp_path, name).commits())
        for name in ("", "one", "one-address", "two")
    }
    assert listed == {"": ["c" * 40], "one": [COMMIT], "one-address": [OTHER], "two": []}


def test_a_commit_is_built_if_a_combination_of_the_file_is(rig: Rig) -> None:
    made = BuiltCombinations(built=("one", "three", "old"), failed={"two": "exit code 1"})
    rig.run(write_built(rig.bucket, "toy", COMMIT, made))
    rig.run(rig.bucket.put(build_key("toy", "production", COMMIT, "one"), b"x"))
    assert rig.run(with_matrix(rig, "one", "two").has_build(COMMIT, ("production",)))
    assert rig.run(with_matrix(rig, "one", "three").built(COMMIT)).lost == ("three",)
    assert not rig.run(with_matrix(rig, "two", "three").has_build(COMMIT, ("production",)))
    assert not rig.run(with_matrix(rig, "one").has_build(COMMIT)), "the coverage build is missing"
    assert not rig.run(with_matrix(rig, "one").has_build(OTHER, ("production",)))


@pytest.mark.parametrize("body", [b"", b"[]", b'{"built": 7}', b"\xff\xfe", b'{"built": [1]}'])
def test_a_damaged_list_of_combinations_is_no_build(rig: Rig, body: bytes) -> None:
    rig.run(rig.bucket.put(combinations_key("toy", COMMIT), body))
    assert not rig.run(with_matrix(rig, "one").has_build(COMMIT, ("production",)))


def test_inputs_of_combinations_wait_apart(rig: Rig, tmp_path: Path) -> None:
    folder = tmp_path / "crashes"
    folder.mkdir()
    (folder / "one").write_bytes(b"1")
    rig.run(Untriaged(rig.pipeline).keep(COMMIT, folder))
    rig.run(Untriaged(rig.pipeline, "one").keep(COMMIT, folder))
    rig.run(Untriaged(rig.pipeline, "one-address").keep(OTHER, folder))
    for name, commits in (("", [COMMIT]), ("one", [COMMIT]), ("one-address", [OTHER]), ("two", [])):
        assert list(rig.run(Untriaged(rig.pipeline, name).commits())) == commits
    assert rig.run(count_untriaged(rig.pipeline)) == 3
    rig.run(Untriaged(rig.pipeline, "one").finish(COMMIT, []))
    assert rig.run(count_untriaged(rig.pipeline)) == 2


def test_inputs_of_a_combination_that_left_the_file_wait_as_long_as_its_build(
    rig: Rig, tmp_path: Path
) -> None:
    folder = tmp_path / "crashes"
    folder.mkdir()
    (folder / "one").write_bytes(b"1")
    for name in ("", "left", "stays"):
        rig.run(Untriaged(rig.pipeline, name).keep(COMMIT, folder))
    rig.run(rig.bucket.put(build_key("toy", "production", COMMIT, "left"), b"x"))
    rig.run(rig.bucket.put(f"solvers/toy/untriaged/_odd/{COMMIT}/x", b"x"))
    rig.run(forget_orphans(rig.pipeline, {"stays"}))
    kept = [
        name for name in ("", "left", "stays") if rig.run(Untriaged(rig.pipeline, name).commits())
    ]
    assert kept == ["left", "stays"]


def test_targets_have_their_own_inputs_and_start_from_those_before(
    rig: Rig, tmp_path: Path
) -> None:
    for name in ("plain", "own", "seen"):
        (tmp_path / name).mkdir()
    (tmp_path / "plain" / "a").write_bytes(b"from before")
    (tmp_path / "own" / "a").write_bytes(b"of one")
    rig.run(Corpus(rig.pipeline).merge(tmp_path / "plain"))
    assert rig.run(Corpus(rig.pipeline, "one").size()) == 1
    rig.run(Corpus(rig.pipeline, "one").merge(tmp_path / "own"))
    rig.run(Corpus(rig.pipeline, "one").fetch(tmp_path / "seen"))
    assert [path.read_bytes() for path in (tmp_path / "seen").iterdir()] == [b"of one"]
    assert rig.run(Corpus(rig.pipeline).size()) == 1
