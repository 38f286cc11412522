"""The coverage role: with a build from the bucket or its own, in shards or whole."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.fuzzing.support.scripted_solver import World
from tests.support.debian import missing_reason
from tests.support.running import run
from windlass.domain.values.errors import InvalidInput, NotFound, WindlassError
from windlass_fuzz.buckets.layout import coverage_key
from windlass_fuzz.coverage.coverage_map import CoverageMap, decode
from windlass_fuzz.roles.coverage import CoverageReport, CoverageRole

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason=missing_reason("g++") or "")

SOURCE = """\
#include <stdio.h>
static int zero(void) { return 0; }
static int more(void) { return 0; }
int main(int count, char **words) {
  FILE *file = fopen(words[count - 1], "r");
  return fgetc(file) == '0' ? zero() : more();
}
"""
BUILD = """#!/bin/sh
set -e
mkdir -p build
flags=
[ $1 = coverage ] && flags=--coverage
g++ $flags -o build/solver solver.c
"""
FILES = {
    "solver.c": SOURCE, "build.sh": BUILD, "tests/a.txt": "0", "tests/b.txt": "1",
    "tests/c.txt": "2",
}  # fmt: skip


async def map_tests(world: World, **options: Any) -> CoverageReport:
    working = CoverageRole(world.solver, world.pipeline, world.work("coverage"), cores=2)
    return await working.run_once(**options)


def the_map(world: World) -> CoverageMap | None:
    stored = run(world.bucket.get(coverage_key("scripted")))
    return None if stored is None else decode(stored.body)


def reached(found: CoverageMap | None) -> dict[str, list[str]]:
    assert found is not None
    return {f.signature.partition("(")[0]: sorted(t) for f, t in found.functions.items()}


WHOLE = {
    "main": ["tests/a.txt", "tests/b.txt", "tests/c.txt"],
    "zero": ["tests/a.txt"],
    "more": ["tests/b.txt", "tests/c.txt"],
}


def test_the_newest_build_in_the_bucket_is_mapped(tmp_path: Path) -> None:
    world = World(tmp_path)
    commits = [world.commit("one", **FILES), world.commit("two")]
    run(world.enqueue(*commits))
    for _ in commits:
        assert run(world.build()).outcome == "built"
    report = run(map_tests(world))
    assert (report.commit, report.tests, report.merged) == (commits[1], 3, True)
    assert reached(the_map(world)) == WHOLE


def test_tests_with_odd_names_are_mapped_and_links_out_of_the_repository_are_none(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    world.commit("one", **FILES)
    (tmp_path / "private").write_text("0 private")
    tests = world.repository / "tests"
    (tests / "out.txt").symlink_to(tmp_path / "private")
    (tests / "folder").symlink_to(tmp_path)
    (tests / "d.txt").symlink_to("a.txt")
    Path(os.fsdecode(bytes(tests) + b"/\xff.txt")).write_text("0")
    (tests / "new\nline.txt").write_text("1")
    commit = world.commit("odd names")
    run(map_tests(world, commit=commit))
    found = reached(the_map(world))
    assert found["zero"] == ["tests/\\xff.txt", "tests/a.txt", "tests/d.txt"]
    assert found["more"] == ["tests/b.txt", "tests/c.txt", "tests/new\\nline.txt"]
    run(world.enqueue(commit))
    run(world.build())
    report = run(world.fuzz(commit, budget_ms=500))
    assert (report.outcome, report.tests) == ("fuzzed", 6)


def test_a_commit_by_hand_is_built_for_it_if_need_be(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one", **FILES)
    report = run(map_tests(world, commit=commit[:12]))
    assert (report.commit, reached(the_map(world))) == (commit, WHOLE)
    assert world.objects("builds") == []


def test_the_last_part_merges_all(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one", **FILES)
    first = run(map_tests(world, commit=commit, shard=(2, 2)))
    assert (first.merged, first.missing, the_map(world)) == (False, ["1/2"], None)
    second = run(map_tests(world, commit=commit, shard=(1, 2)))
    assert (second.merged, reached(the_map(world))) == (True, WHOLE)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one", **{**FILES, "build.sh": "#!/bin/sh\necho no way; exit 3\n"})
    with pytest.raises(InvalidInput, match="run the builder"):
        run(map_tests(world))
    with pytest.raises(NotFound):
        run(map_tests(world, commit="0123456789"))
    with pytest.raises(WindlassError, match="no way"):
        run(map_tests(world, commit=commit))
    assert the_map(world) is None


def test_a_build_without_coverage_makes_no_map(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one")  # a script, which no compiler ever saw
    with pytest.raises(WindlassError, match="no test wrote any coverage"):
        run(map_tests(world, commit=commit))
    assert the_map(world) is None


def test_a_test_that_crashes_while_it_is_mapped_becomes_a_finding(tmp_path: Path) -> None:
    world = World(tmp_path)
    crashing = SOURCE.replace(
        "return fgetc", "if (fgetc(file) == '2') __builtin_trap();\n  rewind(file);\n  return fgetc"
    )
    commit = world.commit("crashes", **{**FILES, "solver.c": crashing})
    run(world.build_and_schedule(commit))
    report = run(map_tests(world))
    assert report.crashed == ["tests/c.txt"]
    assert len(world.objects("untriaged")) == 1
    fuzzed = run(world.fuzz(commit, until_bug=True, budget_ms=60_000))
    assert len(fuzzed.findings) == 1
    assert world.objects("untriaged") == []


@pytest.mark.parametrize("html", [True, False])
def test_a_plan_names_what_a_run_writes(tmp_path: Path, html: bool) -> None:
    world = World(tmp_path, more="" if html else "coverage: {html: false}")
    commit = world.commit("one", **FILES)
    role = CoverageRole(world.solver, world.pipeline, world.work("coverage"))
    plan = run(role.plan(commit))
    assert world.objects("") == []
    run(map_tests(world, commit=commit))
    written = world.objects("")
    assert all(any(key.startswith(known) for known in plan.writes) for key in written), written
    assert all(any(key.startswith(known) for key in written) for known in plan.writes)
