"""Runs that did nothing do not count; tests run as they are; what waits for triage is kept."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from tests.fuzzing.roles.test_fuzzer import SLOW_MS, counts, findings_of, fuzz_until_bug
from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import BROKEN, FINE, World
from tests.support.running import run
from windlass_fuzz.buckets.layout import build_key, build_log_key
from windlass_fuzz.config.finding_settings import FindingSettings, HealthSettings
from windlass_fuzz.engines.engine import Statistics
from windlass_fuzz.findings.untriaged import Untriaged
from windlass_fuzz.roles.fuzzer import Fuzzer
from windlass_fuzz.roles.run_health import sickness_of
from windlass_fuzz.roles.status import read_status

REFUSES = "#!/bin/sh\necho 'unknown flag --jsn' >&2\nexit 2\n"
# It fails on one test of its own; changing that test does not lead there.
OWN_TEST = "#!/bin/sh\n[ \"$(cat $1)\" = 'exactly this' ] && kill -ABRT $$\nexit 0\n"


def test_a_run_in_which_everything_is_refused_does_not_count(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("wrong flag", solver_sh=REFUSES)
    run(world.build_and_schedule(commit))
    report = run(world.fuzz(budget_ms=1_000))
    assert (report.outcome, report.fuzz_count, counts(world)) == ("unhealthy", None, {commit: 0})
    assert "executions ran to an answer" in report.why
    assert not run(world.pipeline.leases.read()).fuzz
    (sick,) = run(read_status(world.pipeline)).unhealthy
    assert (sick.commit, sick.runs) == (commit, 1)
    code, said, _ = Commands(world).run("status", "scripted")
    assert (code, "unhealthy" in said, commit[:12] in said) == (0, True, True)


def test_answers_to_empty_inputs_do_not_make_a_run_healthy(tmp_path: Path) -> None:
    """A wrong flag may go unnoticed for an empty file, and short tests soon become empty."""
    world = World(tmp_path)
    nothing_to_read = REFUSES.replace("\n", "\n[ -s $1 ] || exit 0\n", 1)
    commit = world.commit("wrong flag", solver_sh=nothing_to_read, **{"tests/a.txt": "ok\n"})
    run(world.build_and_schedule(commit))
    assert run(world.fuzz(budget_ms=3_000)).outcome == "unhealthy"


def test_after_some_such_runs_the_build_is_bad(tmp_path: Path) -> None:
    world = World(tmp_path, more="health: {runs: 2}")
    commit = world.commit("wrong flag", solver_sh=REFUSES)
    run(world.build_and_schedule(commit))
    assert not run(world.fuzz(budget_ms=1_000)).marked_bad
    assert run(world.fuzz(budget_ms=1_000)).marked_bad
    assert counts(world) == {}
    assert run(world.pipeline.queue.read()).failed == (commit,)
    log = run(world.bucket.get(build_log_key("scripted", commit)))
    assert log is not None
    assert "after 2 such runs it is given up" in log.body.decode(), "status sends people there"


def test_a_healthy_run_forgets_those_before(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("good")
    run(world.build_and_schedule(commit))
    engine = {**world.solver.engine, "fine": [7]}
    wrong = msgspec.structs.replace(world.solver, engine=engine)
    sick = Fuzzer(wrong, world.pipeline, world.work("fuzzer"), budget_ms=1_000)
    assert run(sick.run_once()).outcome == "unhealthy"
    assert run(world.fuzz(budget_ms=1_000)).outcome == "fuzzed"
    assert run(read_status(world.pipeline)).unhealthy == []


@pytest.mark.parametrize(
    ("count", "healthy"),
    [
        (Statistics(executions=100, unsupported=100), False),
        (Statistics(executions=100, unsupported=99), False),
        (Statistics(executions=100, unsupported=98), True),
        (Statistics(executions=1_000, unsupported=999, tests=9, tests_fine=1), False),
        (Statistics(executions=1_000, unsupported=980, tests=20, tests_fine=20), False),
        (Statistics(executions=1_000, unsupported=960, tests=20, tests_fine=20), True),
        (Statistics(executions=60, unsupported=50, tests=10, tests_fine=10), True),
        (Statistics(executions=100, timeouts=50, memory=50), False),
        (Statistics(executions=100, coverage=0), False),
        (Statistics(executions=1, coverage=0, bugs=1), True),
        (Statistics(executions=100, coverage=12), True),
        (Statistics(executions=100, unsupported=90, bugs=10), True),
    ],
)
def test_a_share_of_the_executions_must_run_to_an_answer(count: Statistics, healthy: bool) -> None:
    assert (sickness_of(count, HealthSettings(share=0.01)) == "") is healthy


def test_a_test_that_fails_as_it_is_is_found_and_dated(tmp_path: Path) -> None:
    world = World(tmp_path, cores=1)
    good = world.commit("good", **{"tests/own.txt": "exactly this"})
    bad = world.commit("bad", solver_sh=OWN_TEST)
    run(world.build_and_schedule(good, bad))
    report = run(world.fuzz(bad, until_bug=True, budget_ms=SLOW_MS))
    assert report.statistics is not None
    assert (report.statistics.executions, report.statistics.bugs) == (2, 1), "before any mutation"
    (finding,) = run(findings_of(world))
    assert (finding.introduced_by, finding.last_good) == (bad, good)


def test_what_a_killed_run_left_is_triaged_by_the_next(tmp_path: Path) -> None:
    world = World(tmp_path)
    good = world.commit("good")
    bad = world.commit("bad", solver_sh=BROKEN)
    run(world.build_and_schedule(good, bad))
    left = tmp_path / "left"
    left.mkdir()
    (left / "crash").write_text("limit 0")
    run(Untriaged(world.pipeline).keep(bad, left))
    assert run(read_status(world.pipeline)).untriaged == 1
    report = run(world.fuzz(good, budget_ms=1_000))
    (finding,) = run(findings_of(world))
    assert (report.findings, finding.found_in) == ([finding.key], bad)
    assert run(read_status(world.pipeline)).untriaged == 0


def test_what_a_killed_run_left_outlives_the_build_of_its_commit(tmp_path: Path) -> None:
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=BROKEN.replace("limit 0", "never made by chance"))
    later = world.commit("later")
    run(world.build_and_schedule(bad, later))
    left = tmp_path / "left"
    left.mkdir()
    (left / "crash").write_text("never made by chance")
    run(Untriaged(world.pipeline).keep(bad, left))
    run(world.bucket.delete([build_key("scripted", "production", bad)]))
    assert run(world.fuzz(later, budget_ms=1_000)).findings == []
    assert run(read_status(world.pipeline)).untriaged == 1
    report = run(world.fuzz(later, budget_ms=1_000))
    (finding,) = run(findings_of(world))
    assert (report.findings, finding.found_in) == ([finding.key], later)
    assert run(read_status(world.pipeline)).untriaged == 0


def test_failures_are_in_the_bucket_while_the_engine_still_runs(tmp_path: Path) -> None:
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=BROKEN, **{"tests/b.txt": "limit 0"})
    run(world.build_and_schedule(bad))

    async def kill_it() -> None:
        fuzzing = asyncio.create_task(world.fuzz(bad, budget_ms=SLOW_MS))
        while not world.objects("untriaged"):
            await world.clock.sleep_ms(50)
        fuzzing.cancel()
        await asyncio.gather(fuzzing, return_exceptions=True)

    run(kill_it())
    assert run(findings_of(world)) == []
    assert run(read_status(world.pipeline)).untriaged >= 1


def test_a_finding_found_and_not_fixed_is_open_after_the_same_run(tmp_path: Path) -> None:
    """The fixed commit fails for a longer input of the same bug only."""
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=BROKEN)
    half = BROKEN.replace("'limit 0'", "'limit 0.*9'")
    fix = world.commit("half", solver_sh=half, **{"tests/b.txt": "limit 0 and 9"})
    run(world.build_and_schedule(bad, fix))
    run(fuzz_until_bug(world, bad))
    report = run(fuzz_until_bug(world, fix))
    (finding,) = run(findings_of(world))
    assert (report.closed, finding.state, finding.introduced_by) == ([], "open", bad)
    mended = world.commit("mended", solver_sh=FINE)
    run(world.build_and_schedule(mended))
    assert run(world.fuzz(mended, budget_ms=1_000)).closed == [finding.key]


def test_triage_ends_with_its_budget_and_leaves_the_rest(tmp_path: Path) -> None:
    world = World(tmp_path)
    tests = {f"tests/{word}.txt": f"limit 0 {word}" for word in ("one", "two", "three")}
    solver = BROKEN.replace("echo 'bad limit'", "sed 's/limit 0/failed/' $1")
    bad = world.commit("bad", solver_sh=solver, **tests)
    run(world.build_and_schedule(bad))

    slow = msgspec.structs.replace(world.solver, findings=FindingSettings(triage="1ms"))
    report = run(
        Fuzzer(slow, world.pipeline, world.work("fuzzer"), until_bug=True, budget_ms=SLOW_MS)
        .run_once(bad)
    )  # fmt: skip
    assert (len(report.findings), report.untriaged) == (1, 2)
    assert run(read_status(world.pipeline)).untriaged == 2
    assert len(run(fuzz_until_bug(world, bad)).findings) >= 2
    assert run(read_status(world.pipeline)).untriaged == 0


def test_what_waits_has_its_turn_before_what_is_found_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    tests = {f"tests/{word}.txt": f"limit 0 {word}" for word in ("one", "three")}
    solver = BROKEN.replace("echo 'bad limit'", "sed 's/limit 0/failed/' $1")
    bad = world.commit("bad", solver_sh=solver, **tests)
    run(world.build_and_schedule(bad))
    hasty = msgspec.structs.replace(world.solver, findings=FindingSettings(triage="1ms"))
    for count in (1, 2):
        fuzzer = Fuzzer(
            hasty, world.pipeline, world.work("fuzzer"), until_bug=True, budget_ms=SLOW_MS
        )
        run(fuzzer.run_once(bad))
        assert len(run(findings_of(world))) == count


def test_nothing_is_closed_while_inputs_wait_that_may_show_it(tmp_path: Path) -> None:
    """The first input of a bug is mended, a longer one fails, and there is no time to see that."""
    world = World(tmp_path, cores=1)
    bad = world.commit("bad", solver_sh=BROKEN, **{"tests/a.txt": "limit 0\n"})
    half = BROKEN.replace("'limit 0'", "'limit 0.*9'") + "grep -q new $1 && kill -SEGV $$\nexit 0\n"
    tests = {"tests/a.txt": "new", "tests/b.txt": "limit 0 is followed by a 9"}
    fix = world.commit("half", solver_sh=half, **tests)
    run(world.build_and_schedule(bad, fix))
    run(fuzz_until_bug(world, bad))

    def run_out_of_time(said: str) -> None:
        if said.startswith("triaging"):
            world.clock.ahead_ms += SLOW_MS

    report = run(world.fuzz(fix, until_bug=True, budget_ms=SLOW_MS, notify=run_out_of_time))
    states = {one.title: one.state for one in run(findings_of(world))}
    assert (report.closed, report.untriaged) == ([], 1)
    assert states == {"SIGABRT: bad limit": "open", "SIGSEGV": "open"}


def test_findings_are_closed_and_set_aside_by_hand(tmp_path: Path) -> None:
    world = World(tmp_path)
    bad = world.commit("bad", solver_sh=BROKEN)
    later = world.commit("later")
    run(world.build_and_schedule(bad, later))
    (key,) = run(fuzz_until_bug(world, bad)).findings
    fuzz = Commands(world)
    code, said, _ = fuzz.run("findings", "quarantine", "scripted", key, "--why", "known")
    assert (code, said) == (0, f"{key} is quarantined\n")
    run(world.fuzz(later, budget_ms=1_000))
    (finding,) = run(findings_of(world))
    assert (finding.state, finding.note) == ("quarantined", "known")
    assert fuzz.run("findings", "release", "scripted", key)[1] == f"{key} is open\n"
    assert fuzz.run("findings", "close", "scripted", key, "--why", "no bug")[0] == 0
    (finding,) = run(findings_of(world))
    assert (finding.state, finding.closed_by, finding.closed_in) == ("closed", "no bug", None)
    code, said, _ = fuzz.run("findings", "reproduce", "scripted", key, "--commit", bad[:12])
    assert (code, "shows SIGABRT" in said) == (0, True), "the hash that status prints"
    code, _, complained = fuzz.run("findings", "quarantine", "scripted", key, "--why", "x")
    assert (code, "only an open or flaky finding" in complained) == (5, True)
    assert run(findings_of(world))[0].state == "closed"


def test_reproducing_says_what_a_build_does_with_the_input(tmp_path: Path) -> None:
    world = World(tmp_path)
    asserts = 'echo "a.c:1: parse: Assertion \\`%s\' failed." >&2; kill -ABRT $$'
    named = [BROKEN.replace("echo 'bad limit' >&2; kill -ABRT $$", asserts % one) for one in "ab"]
    other = named[1].replace("a.c:1: parse", "b.c:1: solve")
    scripts = {"shows": named[0], "other": other, "refuses": "#!/bin/sh\nexit 3\n", "fine": FINE}
    commits = {name: world.commit(name, solver_sh=text) for name, text in scripts.items()}
    run(world.build_and_schedule(*commits.values()))
    (key,) = run(fuzz_until_bug(world, commits["shows"])).findings
    for name, words in {
        "shows": "shows assertion `a` in a.c parse",
        "other": "fails in another way than assertion `a` in a.c parse: assertion `b` in b.c solve",
        "refuses": "does not show assertion `a` in a.c parse: it refuses the input",
        "fine": "does not show assertion `a` in a.c parse: it runs the input fine",
    }.items():
        code, said, _ = Commands(world).run("reproduce", "scripted", key, "--commit", commits[name])
        assert said.endswith(f"{commits[name]} {words}\n"), said
        assert code == (0 if name in ("shows", "other") else 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ("engine: {name: magic}", "unknown engine magic"),
        ("engine: {name: command, argv: [x], spede: 3}", "spede"),
        ("repository: /nowhere/at/all", "cannot reach repository /nowhere/at/all"),
        ("repository: /nowhere/at/all", "does not appear to be a git repository"),
        ("branch: wrong", "has no branch wrong"),
        ("signature: {ignore: ['(']}", "is not a valid pattern"),
    ],
)
def test_init_and_dry_runs_refuse_what_cannot_work(tmp_path: Path, change: str, words: str) -> None:
    world = World(tmp_path)
    world.commit("one")
    fuzz = Commands(world)
    key = change.partition(":")[0]
    lines = [line for line in world.description.splitlines() if not line.startswith(f"{key}:")]
    (tmp_path / "scripted.yaml").write_text("\n".join([*lines, change]))
    for command in (("init", "scripted"), ("builder", "scripted", "--dry-run")):
        code, _, complained = fuzz.run(*command)
        assert (code != 0, words in " ".join(complained.split())) == (True, True), complained
