"""Builds of a matrix: every combination, one that cannot be built, none that can."""

from pathlib import Path

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from windlass_fuzz.builds.build_cache import BuildCache
from windlass_fuzz.roles.status import read_status
from windlass_fuzz.state.pipeline import Pipeline

MATRIX = """
matrix:
  targets: [one, two]
  sanitizers:
    - {name: plain, flags: [--plain]}
    - {name: address, env: {KIND: address}}
  exclude: [{target: two, sanitizer: address}]
"""
NAMES = ("one-plain", "one-address", "two-plain")
# The binary says how it was built. `broken` names a combination that cannot be built.
BUILD = """#!/bin/sh
set -e
mkdir -p build
[ "${WINDLASS_FUZZ_COMBINATION:-none}" != "$(cat broken 2>/dev/null)" ] || exit 1
if [ "$(cat broken 2>/dev/null)" = all ] && [ "$1" = production ]; then exit 1; fi
printf '#!/bin/sh\\necho "%s"\\n' "$*:$WINDLASS_FUZZ_TARGET:$KIND" > build/solver
if [ "$(cat dumb 2>/dev/null)" = "${WINDLASS_FUZZ_COMBINATION:-none}" ]; then
  echo 'exit 3' >> build/solver
fi
chmod +x build/solver
"""


def a_world(folder: Path) -> World:
    return World(folder, more=MATRIX)


def built(world: World, commit: str, name: str) -> str | None:
    """Returns the text of a combination's program; None if it was not built."""
    builds = BuildCache(world.pipeline, world.folder / "fetched", name)
    found = run(builds.fetch(commit))
    return None if found is None else (found.folder / "build" / "solver").read_text()


def test_each_combination_is_built_in_its_own_way(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = world.commit("a solver", build_sh=BUILD)
    run(world.enqueue(commit))
    report = run(world.build())
    assert (report.outcome, report.broken, report.alarm) == ("built", {}, "")
    assert "production --plain:one:" in (built(world, commit, "one-plain") or "")
    assert "production:one:address" in (built(world, commit, "one-address") or "")
    assert built(world, commit, "two-address") is None
    assert run(world.pipeline.built(commit)).built == NAMES
    assert commit in run(world.pipeline.queue.read()).built


def test_a_combination_that_cannot_be_built_is_red_and_the_others_are_built(
    tmp_path: Path,
) -> None:
    world = a_world(tmp_path)
    commit = world.commit("broken", build_sh=BUILD, broken="one-address")
    run(world.enqueue(commit))
    report = run(world.build())
    assert report.outcome == "built"
    assert list(report.broken) == ["one-address"]
    assert run(world.pipeline.has_build(commit))
    (red,) = run(read_status(world.pipeline)).unhealthy
    assert (red.commit, red.combination, red.runs) == (commit, "one-address", 0)
    assert "exited with code 1" in red.why
    said = Commands(world).run("status", "scripted")[1]
    assert "windlass fuzz builder log scripted COMMIT shows the output" in said


def test_a_combination_that_can_be_built_again_is_no_longer_red(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    flag = tmp_path / "works-now"
    script = BUILD.replace("|| exit 1", f"|| [ -e {flag} ] || exit 1")
    commit = world.commit("broken", build_sh=script, broken="one-address")
    run(world.enqueue(commit))
    run(world.build())
    assert len(run(read_status(world.pipeline)).unhealthy) == 1
    flag.touch()
    assert run(world.build(commit=commit)).broken == {}
    assert run(read_status(world.pipeline)).unhealthy == []


def test_without_any_combination_the_commit_has_failed(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = world.commit("all broken", build_sh=BUILD, broken="all")
    run(world.enqueue(commit))
    report = run(world.build())
    assert report.outcome == "failed"
    assert "no combination can be built; one-plain: " in report.why
    assert run(world.pipeline.queue.read()).failed == (commit,)
    assert not run(world.pipeline.has_build(commit, ("production",)))


def test_a_build_that_answers_no_test_raises_an_alarm_of_its_combination(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = world.commit("dumb", build_sh=BUILD, dumb="two-plain")
    run(world.enqueue(commit))
    report = run(world.build())
    assert report.alarm.startswith("two-plain: the new build does not answer the only test")
    (red,) = run(read_status(world.pipeline)).unhealthy
    assert red.combination == "two-plain"


def test_builds_from_before_the_matrix_are_no_builds_of_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("a solver")
    run(world.enqueue(commit))
    run(world.build())
    assert run(world.pipeline.has_build(commit))
    now = Pipeline(world.bucket, "scripted", world.pipeline.runtime, "test", NAMES)
    assert not run(now.has_build(commit))
    assert run(now.has_build(commit, ("coverage",)))
