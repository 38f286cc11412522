"""The fuzzer: stores each bug once, small and bisected, and does not count failed runs."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.rig import ForwardingBucket
from tests.fuzzing.support.scripted_solver import BROKEN, FINE, TEST, World
from tests.support.running import run
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass_fuzz.buckets.bucket import PreconditionFailed, Stored
from windlass_fuzz.buckets.layout import build_key, coverage_key
from windlass_fuzz.coverage.coverage_map import CoverageMap, Function, encode
from windlass_fuzz.engines.engine import EngineFailed, Statistics
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.roles.corpus import Corpus
from windlass_fuzz.roles.fuzzer import RESERVE, Fuzzer, FuzzReport
from windlass_fuzz.state.pipeline import Pipeline

SLOW_MS = 120_000  # a limit, not a wait: runs end at the first bug
TITLE = "SIGABRT: bad limit"
EATS = """#!/bin/sh
exec awk 'BEGIN { s = "x"; while (1) s = s s }'
"""
# It fails while it is fuzzed and once after that, then never again.
FLAKY = """#!/bin/sh
if grep -q 'limit 0' $1 && [ "$(cat {mark} 2>/dev/null)" != {times} ]; then
  printf x >> {mark}; echo bad >&2; kill -ABRT $$
fi
echo fine
"""

LONG_MS = 600_000  # a limit, not a wait
FOUR_BUGS = (
    '#!/bin/sh\nfor word in limit other third last; do\n  if grep -q "$word 0" $1; then\n'
    '    echo "bad $word" >&2; kill -ABRT $$\n  fi\ndone\necho fine\n'
)
HANGS = "#!/bin/sh\nif grep -q never $1; then sleep 1000; fi\necho fine\n"


async def findings_of(world: World) -> list[Finding]:
    return [finding async for finding in FindingStore(world.pipeline).all(print)]


def counts(world: World) -> dict[str, int]:
    return {entry.hash: entry.fuzz_count for entry in run(world.pipeline.schedule.read())}


async def fuzz_until_bug(world: World, commit: str) -> FuzzReport:
    return await world.fuzz(commit, until_bug=True, budget_ms=SLOW_MS)


def test_a_bug_is_found_reported_and_counted(tmp_path: Path) -> None:
    world = World(tmp_path)
    good = world.commit("good")
    bad = world.commit("bad", solver_sh=BROKEN)
    run(world.build_and_schedule(good, bad))
    report = run(fuzz_until_bug(world, bad))
    assert (report.outcome, report.fuzz_count, counts(world)) == ("fuzzed", 1, {good: 0, bad: 1})
    (finding,) = run(findings_of(world))
    assert (finding.title, finding.introduced_by, finding.last_good) == (TITLE, bad, good)
    assert (finding.shown, finding.tried, finding.old) == (5, 5, False)
    assert finding.size <= len("limit 0")
    page = run(world.bucket.get(f"solvers/scripted/findings/{finding.key}/report.md"))
    assert page is not None
    assert f"windlass fuzz reproduce scripted {finding.key}" in page.body.decode()
    assert bad in page.body.decode()
    assert not run(world.pipeline.leases.read()).fuzz


def test_what_a_run_did_is_kept(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("good")
    run(world.build_and_schedule(commit))
    run(world.fuzz(budget_ms=1_500))
    (key,) = world.objects("statistics")
    stored = run(world.bucket.get(key))
    assert stored is not None
    kept = msgspec.json.decode(stored.body, type=FuzzReport)
    assert kept.statistics is not None
    assert (kept.commit, kept.statistics.executions > 0) == (commit, True)
    assert world.objects("corpus") == ["solvers/scripted/corpus/corpus.tar.gz"]


def test_an_old_bug_is_not_blamed_on_the_commit_that_was_fuzzed(tmp_path: Path) -> None:
    world = World(tmp_path)
    good = world.commit("good")
    bad = world.commit("bad", solver_sh=BROKEN)
    later = [world.commit(f"later {n}") for n in range(3)]
    run(world.build_and_schedule(good, bad, *later))
    run(fuzz_until_bug(world, later[-1]))
    (finding,) = run(findings_of(world))
    assert (finding.introduced_by, finding.last_good, finding.old) == (bad, good, True)
    assert finding.found_in == later[-1]


def test_a_bug_in_all_builds_has_no_guilty_commit(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.commit("bad", solver_sh=BROKEN)
    second = world.commit("still bad")
    run(world.build_and_schedule(first, second))
    run(fuzz_until_bug(world, second))
    (finding,) = run(findings_of(world))
    assert (finding.introduced_by, finding.last_good) == (first, None)


def test_the_same_bug_is_one_finding_closed_when_fixed_and_reopened_when_back(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=BROKEN)
    again = world.commit("again")
    run(world.build_and_schedule(bad, again))
    run(fuzz_until_bug(world, bad))
    run(fuzz_until_bug(world, again))
    (finding,) = run(findings_of(world))
    assert (finding.times, finding.seen_in) == (2, [bad, again])
    mended = world.commit("mended", solver_sh=FINE)
    run(world.build_and_schedule(mended))
    report = run(world.fuzz(mended, budget_ms=1_000))
    (finding,) = run(findings_of(world))
    assert report.closed == [finding.key]
    assert (finding.state, finding.closed_in) == ("closed", mended)
    back = world.commit("back", solver_sh=BROKEN)
    run(world.build_and_schedule(back))
    run(fuzz_until_bug(world, back))
    (finding,) = run(findings_of(world))
    assert (finding.state, finding.reopened, finding.closed_in) == ("open", 1, None)


def test_a_failure_that_is_not_seen_again_is_no_finding(tmp_path: Path) -> None:
    world = World(tmp_path, cores=1)
    script = FLAKY.format(mark=tmp_path / "mark", times="x")
    commit = world.commit("flaky", solver_sh=script)
    run(world.build_and_schedule(commit))
    report = run(fuzz_until_bug(world, commit))
    assert (report.findings, report.fuzz_count) == ([], 1)
    assert report.statistics is not None
    assert report.statistics.bugs == 1


def test_a_failure_that_is_seen_twice_is_flaky(tmp_path: Path) -> None:
    """The engine saw it, and then triage, once."""
    world = World(tmp_path, cores=1)
    script = FLAKY.format(mark=tmp_path / "mark", times="xx")
    commit = world.commit("flaky", solver_sh=script)
    run(world.build_and_schedule(commit))
    run(fuzz_until_bug(world, commit))
    (finding,) = run(findings_of(world))
    assert (finding.state, finding.shown) == ("flaky", 1)


def test_a_target_that_eats_memory_is_survived_and_its_run_does_not_count(tmp_path: Path) -> None:
    world = World(tmp_path)
    run(world.build_and_schedule(world.commit("hungry", solver_sh=EATS)))
    report = run(world.fuzz(budget_ms=1_000))
    assert report.statistics is not None
    assert report.statistics.memory > 0
    assert (report.findings, report.fuzz_count, report.outcome) == ([], None, "unhealthy")


def test_a_run_that_failed_to_fuzz_does_not_count(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("no tests")
    world.git("rm", "--quiet", "-r", "tests")
    world.git("commit", "--quiet", "--message", "none")
    commit = world.git("rev-parse", "HEAD")
    run(world.build_and_schedule(commit))
    with pytest.raises(EngineFailed, match="no tests"):
        run(world.fuzz(budget_ms=1_000))
    assert counts(world) == {commit: 0}
    assert not run(world.pipeline.leases.read()).fuzz


def test_a_missing_binary_is_passed_over_and_leaves_the_schedule(tmp_path: Path) -> None:
    world = World(tmp_path)
    gone, there = world.commit("one"), world.commit("two")
    run(world.build_and_schedule(gone, there))
    run(world.bucket.delete([build_key("scripted", "production", gone)]))
    report = run(world.fuzz(budget_ms=1_000))
    assert (report.commit, report.removed, counts(world)) == (there, [gone], {there: 1})


def test_by_hand_only_what_is_known_and_built_can_be_fuzzed(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one")
    with pytest.raises(NotFound):
        run(world.fuzz("0123456789"))
    with pytest.raises(InvalidInput, match="windlass fuzz builder scripted --commit"):
        run(world.fuzz(commit))
    assert counts(world) == {}


def test_nothing_to_fuzz_is_said_so(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("one")
    assert run(world.fuzz()).outcome == "nothing"


def test_tests_that_reach_the_change_come_first(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("one", **{"src.c": "int f(void) {\n  return 1;\n}\n", "tests/b.txt": TEST})
    commit = world.commit("two", **{"src.c": "int f(void) {\n  return 2;\n}\n"})
    run(world.build_and_schedule(commit))
    reached = {Function("src.c", "f", 9): frozenset({"tests/b.txt"})}
    found = CoverageMap("a" * 40, reached)
    run(world.bucket.put(coverage_key("scripted"), encode(found)))
    report = run(world.fuzz(budget_ms=1_000))
    assert (report.tests, report.chosen_by) == (1, "1 of 2 reach the changes")


def test_a_damaged_map_means_all_tests(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one")
    run(world.build_and_schedule(commit))
    run(world.bucket.put(coverage_key("scripted"), b"no map"))
    said: list[str] = []
    report = run(world.fuzz(budget_ms=1_000, notify=said.append))
    assert (report.tests, report.chosen_by) == (1, "all, as there is no coverage map")
    assert any("ignoring the coverage map" in line for line in said)


def test_an_unknown_engine_is_named_with_those_that_are_known(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one")
    run(world.build_and_schedule(commit))
    solver = msgspec.structs.replace(world.solver, engine={"name": "magic"})
    with pytest.raises(InvalidInput, match="afl, command, libfuzzer, typefuzz"):
        run(Fuzzer(solver, world.pipeline, world.work("fuzzer")).run_once())
    assert counts(world) == {commit: 0}


def test_a_finding_that_cannot_be_read_stops_no_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=BROKEN)
    later = world.commit("later")
    run(world.build_and_schedule(bad, later))
    (key,) = run(fuzz_until_bug(world, bad)).findings
    record = tmp_path / f"bucket/solvers/scripted/findings/{key}/finding.json"
    record.write_text("{ edited by hand")
    messages: list[str] = []
    report = run(world.fuzz(later, until_bug=True, budget_ms=SLOW_MS, notify=messages.append))
    assert (report.outcome, report.findings, report.fuzz_count) == ("fuzzed", [], 1)
    assert any(f"findings/{key}/finding.json" in line for line in messages)
    assert record.read_text() == "{ edited by hand"
    code, said, complained = Commands(world).run("status", "scripted")
    assert (code, "findings 0 open" in said, key in complained) == (0, True, True)
    assert Commands(world).ask("findings", "scripted") == []


class Crowded(ForwardingBucket):
    """A bucket where another writer always updates the corpus first."""

    async def put_if(self, key: str, *words: Any, **options: Any) -> Stored:
        if "/corpus/" in key:
            raise PreconditionFailed(key)
        return await super().put_if(key, *words, **options)


def test_a_corpus_that_cannot_be_written_costs_no_run(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("good")
    run(world.build_and_schedule(commit))
    world.pipeline = Pipeline(Crowded(world.bucket), "scripted", world.pipeline.runtime, "test")
    messages: list[str] = []
    report = run(world.fuzz(budget_ms=1_500, notify=messages.append))
    assert (report.outcome, report.fuzz_count) == ("fuzzed", 1)
    assert any("the corpus was not updated" in line for line in messages)
    assert len(world.objects("statistics")) == 1


def test_a_run_that_finds_nothing_new_gives_its_slot_back(tmp_path: Path) -> None:
    world = World(tmp_path, more="until_quiet: 1s")
    run(world.build_and_schedule(world.commit("good")))
    said: list[str] = []
    report = run(world.fuzz(budget_ms=120_000, notify=said.append))
    assert "nothing new in 1s: the run ends" in said
    assert (report.outcome, report.fuzz_count) == ("fuzzed", 1)


def test_what_an_engine_that_ends_early_has_saved_is_for_triage(tmp_path: Path) -> None:
    world = World(tmp_path)
    good = world.commit("good")
    bugs = {f"tests/{word}.txt": f"{word} 0" for word in ("limit", "other", "third", "last")}
    bad = world.commit("bad", solver_sh=FOUR_BUGS, **bugs)
    run(world.build_and_schedule(good, bad))

    def slow(line: str) -> None:
        if line.startswith("triaging"):
            world.clock.ahead_ms += LONG_MS // RESERVE

    report = run(world.fuzz(bad, budget_ms=LONG_MS, until_bug=True, notify=slow))
    assert (len(run(findings_of(world))), report.untriaged) == (4, 0)


def test_an_input_of_the_corpus_that_hangs_is_a_finding_and_leaves_the_corpus(
    tmp_path: Path,
) -> None:
    more = "findings: {kinds: [hang]}\ninput_timeout: 300ms"
    world = World(tmp_path, more=more)
    commit = world.commit("hangs", solver_sh=HANGS)
    run(world.build_and_schedule(commit))
    inputs = world.work("inputs")
    for number in range(3):
        (inputs / str(number)).write_text(f"never {number}" if number == 1 else f"input {number}")
    run(Corpus(world.pipeline).merge(inputs))
    report = run(world.fuzz(budget_ms=8_000))
    assert report.outcome == "fuzzed"
    (finding,) = run(findings_of(world))
    assert (finding.kind, "never" in finding.excerpt) == ("hang", True)
    left = world.work("left")
    run(Corpus(world.pipeline).fetch(left))
    texts = {path.read_text() for path in left.iterdir()}
    assert "input 2" in texts
    assert not [text for text in texts if "never" in text]


class FiledEarly(Exception):
    """A finding is in the bucket while its engine still runs."""


def test_a_bug_is_a_finding_while_its_engine_still_runs(tmp_path: Path) -> None:
    world = World(tmp_path)
    good = world.commit("good")
    bad = world.commit("bad", solver_sh=BROKEN, **{"tests/bad.txt": "limit 0"})
    run(world.build_and_schedule(good, bad))

    def look(_: Statistics) -> None:
        if any(key.endswith("/report.md") for key in world.objects("findings")):
            raise FiledEarly

    with pytest.raises(FiledEarly):
        run(world.fuzz(bad, budget_ms=LONG_MS, on_progress=look))
    (finding,) = run(findings_of(world))
    assert (finding.introduced_by, finding.moments["dated"] > 0) == (bad, True)
    page = run(world.bucket.get(f"solvers/scripted/findings/{finding.key}/report.md"))
    assert page is not None
    assert "## Time line" in page.body.decode()


def test_a_search_by_hand_builds_what_is_missing_and_a_lost_build_is_made_again(
    tmp_path: Path,
) -> None:
    world = World(tmp_path)
    good = world.commit("good")
    guilty = world.commit("guilty", solver_sh=BROKEN, **{"tests/bad.txt": "limit 0"})
    later = world.commit("later", solver_sh=f"{BROKEN}# later\n")
    run(world.build_and_schedule(good, later))
    run(fuzz_until_bug(world, later))
    (finding,) = run(findings_of(world))
    assert (finding.introduced_by, len(finding.suspects)) == (later, 2)
    commands = Commands(world)
    (exact,) = commands.ask("findings", "bisect", "scripted", finding.key)
    assert (exact["introduced_by"], len(exact["suspects"])) == (guilty, 1)

    run(world.bucket.delete([build_key("scripted", "production", later)]))
    shown = commands.ask("findings", "reproduce", "scripted", finding.key)
    assert (shown["commit"], shown["shown"]) == (later, True)
