"""Runs of a matrix: all combinations in a row, the run counts once, a dead one stops nobody."""

import json
import re
from pathlib import Path
from typing import Any

from tests.fuzzing.roles.test_change_check import change, check
from tests.fuzzing.roles.test_fuzzer import counts, findings_of
from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from windlass_fuzz.buckets.layout import build_key, coverage_key
from windlass_fuzz.coverage.coverage_map import CoverageMap, Function, encode
from windlass_fuzz.findings.untriaged import Untriaged
from windlass_fuzz.roles.fuzz_steps import FuzzSteps
from windlass_fuzz.roles.run_health import record_combination
from windlass_fuzz.roles.status import read_status
from windlass_fuzz.statistics.history import history_file

MATRIX = """
matrix:
  targets: [one, two]
  sanitizers: [plain, strict]
  exclude: [{target: two, sanitizer: plain}]
"""
NAMES = ["one-plain", "one-strict", "two-strict"]
BUILD = """#!/bin/sh
set -e
mkdir -p build
{ echo '#!/bin/sh'; echo "WAY=$WINDLASS_FUZZ_COMBINATION"; cat solver.sh; } > build/solver
chmod +x build/solver
"""
FINE = "cat $1 >/dev/null\necho fine\n"
# Only a build with the sanitizer notices; a test of its own shows it.
STRICT = """
if [ "$WAY" = one-strict ] && grep -q 'limit 0' $1; then
  echo 'error: bad limit' >&2
  kill -ABRT $$
fi
echo fine
"""
DEAD = 'if [ "$WAY" = one-plain ]; then exit 3; fi\necho fine\n'
BUG = {"tests/bug.txt": "limit 0\n"}


def a_world(folder: Path, more: str = "") -> World:
    return World(folder, more=MATRIX + more)


def a_commit(world: World, message: str, solver: str = FINE, **files: str) -> str:
    return world.commit(message, build_sh=BUILD, solver_sh=solver, **files)


def combinations(report: Any) -> dict[str, str]:
    return {one.combination: one.outcome for one in report.combinations}


def test_a_run_fuzzes_all_combinations_and_counts_once(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = a_commit(world, "good")
    run(world.build_and_schedule(commit))
    report = run(world.fuzz(budget_ms=3_000))
    assert (report.outcome, counts(world)) == ("fuzzed", {commit: 1})
    assert combinations(report) == dict.fromkeys(NAMES, "fuzzed")
    assert report.statistics is not None
    assert report.statistics.executions == sum(
        one.statistics.executions for one in report.combinations if one.statistics
    )
    points = run(history_file(world.pipeline).read()).runs
    assert [point.combination for point in points] == NAMES
    assert world.objects("corpus") == [
        f"solvers/scripted/corpus/{target}/corpus.tar.gz" for target in ("one", "two")
    ]


def test_a_bug_of_one_combination_is_closed_by_that_combination_alone(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    run(world.build_and_schedule(a_commit(world, "good")))
    bad = a_commit(world, "bug", STRICT, **BUG)
    run(world.build_and_schedule(bad))
    report = run(world.fuzz(bad, budget_ms=3_000))
    (found,) = run(findings_of(world))
    assert found.combinations == ["one-strict"]
    assert (found.combination, found.introduced_by) == ("one-strict", bad)
    assert [one.findings for one in report.combinations] == [[], [found.key], []]
    fixed = a_commit(world, "fix", FINE)
    run(world.build_and_schedule(fixed))
    assert run(world.fuzz(fixed, budget_ms=3_000)).closed == [found.key]
    (closed,) = run(findings_of(world))
    assert closed.combinations == ["one-strict"], "others never showed it, and need not be fine"


def test_a_finding_stays_open_while_its_combination_cannot_be_built(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    bad = a_commit(world, "bug", STRICT, **BUG)
    run(world.build_and_schedule(bad))
    run(world.fuzz(bad, budget_ms=3_000))
    broken = BUILD.replace("set -e", 'set -e\n[ "$WINDLASS_FUZZ_COMBINATION" != one-strict ]')
    later = world.commit("fix, but not there", build_sh=broken, solver_sh=FINE)
    run(world.build_and_schedule(later))
    report = run(world.fuzz(later, budget_ms=3_000))
    (found,) = run(findings_of(world))
    assert (report.closed, found.state) == ([], "open")
    assert "one-strict: the production build exited with code 1" in found.unsure
    assert combinations(report)["one-strict"] == "skipped"


def test_a_dead_combination_is_red_gets_no_more_time_and_stops_nobody(tmp_path: Path) -> None:
    world = a_world(tmp_path, "health: {runs: 1}\n")
    commit = a_commit(world, "dead", DEAD)
    run(world.build_and_schedule(commit))
    report = run(world.fuzz(budget_ms=3_000))
    assert (report.outcome, report.fuzz_count) == ("fuzzed", 1)
    assert combinations(report) == {**dict.fromkeys(NAMES, "fuzzed"), "one-plain": "unhealthy"}
    (red,) = run(read_status(world.pipeline)).unhealthy
    assert (red.combination, red.runs) == ("one-plain", 1)
    again = run(world.fuzz(budget_ms=3_000))
    assert combinations(again)["one-plain"] == "skipped"
    assert again.combinations[0].given_ms == 0
    planned = run(read_status(world.pipeline, world.solver)).next_run
    assert planned is not None
    assert planned.shares[0].ms == 0
    assert "its last run did nothing: only 0 of" in planned.shares[0].why
    assert sum(one.ms for one in planned.shares[1:]) == planned.fuzzing_ms


def test_a_run_in_which_all_combinations_do_nothing_does_not_count(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = a_commit(world, "dead", "exit 3\n")
    run(world.build_and_schedule(commit))
    report = run(world.fuzz(budget_ms=3_000))
    assert (report.outcome, counts(world)) == ("unhealthy", {commit: 0})
    assert "two-strict: only 0 of" in report.why


def test_a_combination_whose_build_is_gone_does_not_stop_the_others(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = a_commit(world, "good")
    run(world.build_and_schedule(commit))
    archive = f"bucket/solvers/scripted/builds/matrix/one-strict/{commit}.tar.gz"
    (tmp_path / archive).unlink()
    report = run(world.fuzz(budget_ms=3_000))
    assert report.outcome == "fuzzed"
    assert combinations(report)["one-strict"] == "lost"


def test_inputs_wait_for_their_own_combination(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = a_commit(world, "bug", STRICT)
    run(world.build_and_schedule(commit))
    waiting = tmp_path / "waiting"
    waiting.mkdir()
    (waiting / "crash").write_text("limit 0\n")
    run(Untriaged(world.pipeline, "one-strict").keep(commit, waiting))
    assert run(read_status(world.pipeline)).untriaged == 1
    report = run(world.fuzz(budget_ms=3_000))
    assert len(report.findings) == 1
    assert run(read_status(world.pipeline)).untriaged == 0


def test_inputs_of_another_commit_are_triaged_with_the_combination_that_they_broke(
    tmp_path: Path,
) -> None:
    bug = (
        "if [ $WAY = one-plain ] && grep -q '%s' $1; then echo 'error: %s' >&2; kill -ABRT $$; fi\n"
    )
    older = bug % ("other 9", "other") + "echo fine\n"
    world = a_world(tmp_path)
    first = a_commit(world, "older", older)
    second = a_commit(world, "bug", bug % ("limit 0", "limit") + older, **BUG)
    run(world.build_and_schedule(first, second))
    waiting = tmp_path / "waiting"
    waiting.mkdir()
    (waiting / "crash").write_text("other 9\n")
    run(Untriaged(world.pipeline, "one-plain").keep(first, waiting))
    run(world.fuzz(second, budget_ms=3_000))
    found = {one.title: one.combinations for one in run(findings_of(world))}
    assert found == {
        "SIGABRT: error: limit": ["one-plain"], "SIGABRT: error: other": ["one-plain"],
    }  # fmt: skip
    assert run(read_status(world.pipeline)).untriaged == 0


def test_until_the_first_bug_the_rest_does_not_run(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = a_commit(world, "bug", STRICT, **BUG)
    run(world.build_and_schedule(commit))
    report = run(world.fuzz(budget_ms=3_000, until_bug=True))
    assert combinations(report) == {
        "one-plain": "fuzzed", "one-strict": "fuzzed", "two-strict": "skipped",
    }  # fmt: skip


def test_the_corpus_from_before_the_matrix_is_where_targets_start(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("good", build_sh=BUILD, solver_sh="echo $(cat $1)\n")
    run(world.build_and_schedule(commit))
    before = run(world.fuzz(budget_ms=1_000)).corpus
    later = World.__new__(World)
    later.__dict__ |= world.__dict__ | {"more": MATRIX}
    later.pipeline.matrix = tuple(NAMES)
    run(later.build_and_schedule(later.commit("more", solver_sh="echo $(cat $1)\n")))
    report = run(later.fuzz(budget_ms=3_000))
    assert before > 0
    assert all(one.corpus >= before for one in report.combinations)


def test_status_says_what_the_next_run_gives_to_whom_and_why(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    bad = a_commit(world, "bug", STRICT, **BUG)
    run(world.build_and_schedule(bad))
    fuzz = Commands(world)
    fresh = fuzz.ask("status", "scripted")["next_run"]
    assert fresh["commit"] == bad
    assert sum(one["ms"] for one in fresh["shares"]) == fresh["fuzzing_ms"]
    assert {one["percent"] for one in fresh["shares"]} == {33}
    fuzz.run("fuzzer", "scripted", "--budget", "3s")
    after = {
        one["combination"]: one for one in fuzz.ask("status", "scripted")["next_run"]["shares"]
    }
    assert after["one-strict"]["ms"] == max(one["ms"] for one in after.values())
    assert "1 new finding" in after["one-strict"]["why"]
    report = run(world.fuzz(budget_ms=3_000))
    given = {one.combination: one.given_ms for one in report.combinations}
    for name, planned in after.items():
        assert abs(100 * given[name] / sum(given.values()) - planned["percent"]) <= 1, "as planned"
    code, said, _ = fuzz.run("status", "scripted")
    assert (code, "next run" in said) == (0, True)
    assert re.search(r"1 new finding in its last 2 runs, \d+s in all", said)


def test_old_commits_are_no_longer_red(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = a_commit(world, "dead", DEAD)
    run(world.build_and_schedule(commit))
    assert [one.combination for one in run(read_status(world.pipeline)).unhealthy] == ["one-plain"]
    run(world.pipeline.schedule.update(lambda _: ()))
    assert run(read_status(world.pipeline)).unhealthy == []


def test_commands_know_the_combinations(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    bad = a_commit(world, "bug", STRICT, **BUG)
    fuzz = Commands(world)
    run(world.enqueue(bad))
    assert "combination one-strict" in " ".join(
        fuzz.run("builder", "scripted", "--dry-run")[1].split()
    )
    run(world.build_and_schedule(bad))
    planned = fuzz.run("fuzzer", "scripted", "--dry-run")[1]
    assert "one-strict: 33 % (it never ran)" in planned
    said = fuzz.run("fuzzer", "scripted", "--budget", "3s")[1]
    assert "two-strict: " in said
    (found,) = run(findings_of(world))
    code, said, _ = fuzz.run("reproduce", "scripted", found.key)
    assert (code, "shows SIGABRT: error: bad limit" in said) == (0, True)
    said = fuzz.run("findings", "show", "scripted", found.key)[1]
    assert re.search(r"one-strict \((\d+) of \1 inputs failed when last run\)", said)
    assert "one-strict (one with command): 1 run," in fuzz.run("stats", "scripted")[1]
    assert fuzz.run("findings", "recheck", "scripted", bad)[1].strip() == "no finding is fixed"


def test_a_rechecked_commit_closes_what_its_combination_runs_fine(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    bad = a_commit(world, "bug", STRICT, **BUG)
    run(world.build_and_schedule(bad))
    run(world.fuzz(budget_ms=3_000))
    fixed = a_commit(world, "fix", FINE)
    run(world.build_and_schedule(fixed))
    assert "fixed: " in Commands(world).run("findings", "recheck", "scripted", fixed)[1]


def test_a_change_is_checked_with_all_combinations(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    a_commit(world, "good")
    change(world, build_sh=BUILD, solver_sh=STRICT, **BUG)
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"]) == (1, "refused")
    (found,) = result["findings"]
    assert (found["age"], found["base"]) == ("new", "runs it fine")
    assert [one["combination"] for one in result["combinations"]] == NAMES


def test_most_time_of_a_check_goes_to_targets_that_reach_the_change(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    a_commit(world, "good", **{"src.c": "int f(void) {\n  return 1;\n}\n"})
    change(world, **{"src.c": "int f(void) {\n  return 2;\n}\n"})
    f, g = Function("src.c", "f", 1), Function("src.c", "g", 9)
    test = frozenset({"tests/a.txt"})
    targets = {"one": {g: test}, "two": {f: test, g: test}}
    found = CoverageMap("a" * 40, targets["two"], targets)
    run(world.bucket.put(coverage_key("scripted"), encode(found)))
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"]) == (0, "passed")
    given = {one["combination"]: one["given_ms"] for one in result["combinations"]}
    assert given["one-plain"] == given["one-strict"] < given["two-strict"] / 9


def test_an_old_bug_of_one_combination_refuses_no_change(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    a_commit(world, "bug", STRICT, **BUG)
    change(world, **{"notes.c": "x"})
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"]) == (0, "passed")
    assert [one["age"] for one in result["findings"]] == ["old"]


def test_a_change_that_breaks_the_build_of_a_combination_shows_what_it_printed(
    tmp_path: Path,
) -> None:
    world = a_world(tmp_path)
    a_commit(world, "good")
    breaks = f"""
if [ $WINDLASS_FUZZ_COMBINATION = {NAMES[0]} ]; then
  echo 'a.c:1: error: x'; exit 3
fi
"""
    change(world, build_sh=BUILD.replace("\n", breaks, 1), **{"notes.c": "x"})
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"]) == (1, "unhealthy")
    assert result["why"].startswith(f"{NAMES[0]}: the production build exited with code 3")
    assert "a.c:1: error: x" in result["output"]
    assert NAMES[1] not in result["output"]
    assert "a.c:1: error: x" in (tmp_path / "out/summary.md").read_text()


def test_a_change_that_kills_a_combination_does_not_pass(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    a_commit(world, "good")
    change(world, build_sh=BUILD, solver_sh=DEAD)
    code, result = check(world, "--head", "change")
    assert (code, result["outcome"]) == (1, "unhealthy")
    assert result["why"].startswith("one-plain: only 0 of")
    assert json.loads((tmp_path / "out" / "result.json").read_text())["findings"] == []


def lose(world: World, commit: str, *names: str) -> None:
    """Deletes the archives of these combinations."""
    run(world.bucket.delete([build_key("scripted", "production", commit, name) for name in names]))


def test_a_combination_whose_build_is_lost_does_not_run_and_is_built_again(tmp_path: Path) -> None:
    world = a_world(tmp_path)
    commit = a_commit(world, "good")
    run(world.build_and_schedule(commit))
    lose(world, commit, "one-strict")
    report = run(world.fuzz(budget_ms=2_000))
    assert combinations(report) == {**dict.fromkeys(NAMES, "fuzzed"), "one-strict": "lost"}
    assert (report.outcome, counts(world)) == ("fuzzed", {commit: 1})
    assert run(read_status(world.pipeline)).unhealthy == []
    said = Commands(world).run("manager", "scripted")[1]
    assert f"queue again, builds of some combinations are gone: {commit[:12]}" in said
    assert run(world.build()).outcome == "built"
    again = Commands(world).run("manager", "scripted")[1]
    assert "gone" not in again
    assert counts(world) == {commit: 1}, "it was never away, and keeps its count"
    assert run(world.pipeline.built(commit)).lost == ()


def test_loss_is_never_a_failed_build(tmp_path: Path) -> None:
    """What is left of the first commit is a combination whose last run did nothing."""
    world = a_world(tmp_path, "health: {runs: 1}\n")
    first, second = a_commit(world, "one is dead", DEAD), a_commit(world, "good")
    run(world.build_and_schedule(first, second))
    run(record_combination(world.pipeline, first, "one-plain", "it did nothing"))
    lose(world, first, "one-strict", "two-strict")
    report = run(world.fuzz(budget_ms=1_000))
    assert (report.commit, report.outcome) == (second, "fuzzed"), "the slot goes to another"
    assert run(world.fuzz(first)).outcome == "nothing"
    queue = run(world.pipeline.queue.read())
    assert (queue.failed, counts(world)) == ((), {first: 0, second: 1})
    lose(world, first, "one-plain")
    selected = run(FuzzSteps(world.pipeline, world.solver).select(60_000))
    assert selected.removed == (first,)
