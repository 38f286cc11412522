"""The commands that run a role, as people and scripts type them."""

import signal
from pathlib import Path

import pytest

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import BROKEN, World
from tests.support.running import run
from tests.support.waiting import until
from windlass_fuzz.buckets.layout import KINDS

SLOW = "#!/bin/sh\ncat $1 > /dev/null; sleep 0.05; echo fine\n"


def test_the_way_of_a_commit_from_the_queue_to_a_closed_finding(tmp_path: Path) -> None:
    world = World(tmp_path)
    good = world.commit("good")
    bad = world.commit("bad", solver_sh=BROKEN)
    fuzz = Commands(world)
    run(world.enqueue(good, bad))
    code, said, complained = fuzz.run("builder", "scripted")
    assert (code, said.startswith(f"{good}: built in ")) == (0, True)
    assert "production build" in complained, "progress goes to standard error"
    assert fuzz.ask("builder", "scripted", "--dry-run")["commit"] == bad
    assert fuzz.ask("builder", "scripted")["outcome"] == "built"
    code, said, _ = fuzz.run("builder", "scripted")
    assert (code, said) == (0, "the queue is empty\n")
    report = fuzz.ask("fuzzer", "scripted", "--commit", bad, "--budget", "2m", "--until-bug")
    (key,) = report["findings"]
    assert key in fuzz.run("findings", "scripted")[1]
    assert bad in fuzz.run("findings", "show", "scripted", key[:6])[1]
    code, said, _ = fuzz.run("findings", "reproduce", "scripted", key, "--input", str(tmp_path))
    assert (code, "bad limit" in said) == (0, True)
    assert (tmp_path / key).read_text() == "limit 0"
    code, said, _ = fuzz.run("findings", "reproduce", "scripted", key, "--commit", good)
    assert (code, f"{good} does not show" in said) == (1, True)


def test_single_steps_change_no_state(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one")
    fuzz = Commands(world)
    assert fuzz.run("builder", "make", "scripted", commit, "--kind", "production")[0] == 0
    assert not run(world.pipeline.has_build(commit))
    assert fuzz.run("builder", "make", "scripted", commit)[0] == 0
    assert run(world.pipeline.has_build(commit, KINDS))
    report = fuzz.ask("fuzzer", "campaign", "scripted", commit, "--budget", "1s")
    assert (report["outcome"], report["fuzz_count"]) == ("fuzzed", None)
    assert run(world.pipeline.schedule.read()) == ()
    assert run(world.pipeline.queue.read()).built == ()


def test_a_failed_build_sets_the_exit_code(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("bad", build_sh="#!/bin/sh\necho oh no; exit 9\n")
    run(world.enqueue(commit))
    fuzz = Commands(world)
    code, said, _ = fuzz.run("builder", "scripted")
    assert (code, "exited with code 9" in said) == (1, True)
    assert f"windlass fuzz builder log scripted {commit}" in said
    code, said, _ = fuzz.run("builder", "log", "scripted", commit[:8])
    assert (code, "oh no" in said, "exited with code 9" in said) == (0, True, True)
    assert fuzz.run("builder", "log", "scripted", "0123456789")[0] == 4
    code, _, complained = fuzz.run("builder", "make", "scripted", commit[:10])
    assert (code, "oh no" in complained) == (5, True)
    assert world.objects("build-logs") == [f"solvers/scripted/build-logs/{commit}.log"]


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["builder", "scripted", "--commit", "0123456789"], 4, "commit 0123456789"),
        (["fuzzer", "scripted", "--commit", "0123456789"], 4, "commit 0123456789"),
        (["fuzzer", "scripted", "--budget", "soon"], 2, "budget"),
        (["coverage", "scripted", "--shard", "3/2"], 2, "2/4"),
        (["coverage", "scripted"], 2, "run the builder"),
        (["findings", "show", "scripted", "ffff"], 4, "finding ffff"),
        (["findings", "file", "scripted"], 2, "issues.project"),
        (["findings", "recheck", "scripted", "0123456789"], 4, "commit 0123456789"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, words: list[str], code: int, complaint: str) -> None:
    world = World(tmp_path)
    run(world.build_and_schedule(world.commit("one")))
    run(world.bucket.delete([key for key in world.objects("builds") if "/coverage/" in key]))
    ended, _, complained = Commands(world).run(*words)
    assert (ended, complaint in complained) == (code, True), complained


def test_everything_in_a_row(tmp_path: Path) -> None:
    world = World(tmp_path, more="commits: {extensions: [.sh], fresh: 5}")
    world.commit("good")
    bad = world.commit("bad", solver_sh=BROKEN)
    fuzz = Commands(world)
    code, said, complained = fuzz.run("run", "scripted", "--rounds", "1", "--budget", "1s")
    assert (code, "from 1 test," in said, "no coverage map" in complained) == (0, True, True)
    reports = fuzz.ask("run", "scripted", "--rounds", "50", "--budget", "3s", "--until-bug")
    assert reports[-1]["findings"]
    (finding,) = fuzz.ask("findings", "scripted")
    assert finding["introduced_by"] == bad


def test_everything_in_a_row_fails_if_no_commit_can_be_built(tmp_path: Path) -> None:
    world = World(tmp_path, more="commits: {extensions: [.sh], fresh: 5}")
    bad = world.commit("bad", build_sh="#!/bin/sh\nexit 3\n")
    code, said, complained = Commands(world).run("run", "scripted", "--budget", "1s")
    assert (code, "1 build failed" in said) == (1, True)
    assert f"windlass fuzz builder log scripted {bad}" in complained


def test_a_stopped_fuzzer_gives_the_commit_back_uncounted(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("slow", solver_sh=SLOW)
    run(world.build_and_schedule(commit))
    fuzzer = Commands(world).start("fuzzer", "scripted", "--budget", "10m")

    async def begun() -> bool:
        return any((world.folder / "work").glob("scripted/fuzzer-1/scratch/*/run-*"))

    run(until("the fuzzer runs its target", begun, 60))
    fuzzer.send_signal(signal.SIGTERM)
    _, complained = fuzzer.communicate(timeout=60)
    assert (fuzzer.returncode, "released" in complained) == (5, True)
    assert [entry.fuzz_count for entry in run(world.pipeline.schedule.read())] == [0]
    assert not run(world.pipeline.leases.read()).fuzz


def test_a_fuzzer_without_room_says_so_and_the_next_one_goes_on(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one")
    run(world.build_and_schedule(commit))
    fuzz = Commands(world)
    assert fuzz.ask("fuzzer", "campaign", "scripted", commit, "--budget", "1s")
    size = (tmp_path / "bucket" / world.objects("builds")[-1]).stat().st_size
    code, _, complained = fuzz.run("fuzzer", "scripted", "--budget", "1s", largest_file=size - 1)
    assert (code, "Traceback" in complained, "disk space" in complained) == (5, False, True), (
        complained
    )
    assert [entry.fuzz_count for entry in run(world.pipeline.schedule.read())] == [0]
    assert fuzz.ask("fuzzer", "scripted", "--budget", "1s")["fuzz_count"] == 1


def test_a_damaged_mirror_is_cloned_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    first = world.commit("one")
    run(world.enqueue(first))
    assert run(world.build()).outcome == "built"
    mirror = world.work("builder") / "mirror.git"
    (mirror / "config").write_text("cut o")
    second = world.commit("two")
    run(world.enqueue(second))
    report = run(world.build())
    assert (report.outcome, report.commit) == ("built", second)


def test_a_bucket_that_is_not_there_is_said_and_not_made(tmp_path: Path) -> None:
    world = World(tmp_path)
    misspelt = tmp_path / "buckte"
    fuzz = Commands(world, WINDLASS_FUZZ_BUCKET=str(misspelt))
    for command in (("status",), ("stats",), ("findings", "list")):
        code, _, complained = fuzz.run(*command, "scripted")
        said = " ".join(complained.split())
        assert (code, "does not exist; check the name of the bucket" in said) == (0, True), said
    assert not misspelt.exists()
    code, _, complained = Commands(world).run("status", "scripted")
    assert (code, complained) == (0, "")


def test_a_report_is_not_made_in_place_of_a_file(tmp_path: Path) -> None:
    world = World(tmp_path)
    file = tmp_path / "notes"
    file.write_text("mine")
    code, _, complained = Commands(world).run("coverage", "scripted", "--html", str(file))
    assert (code, "is a file; name a folder for the report" in complained) == (2, True)
    assert file.read_text() == "mine"


def test_an_empty_solver_file_is_called_empty(tmp_path: Path) -> None:
    fuzz = Commands(World(tmp_path))
    (tmp_path / "empty.yaml").write_text("# nothing yet\n")
    code, _, complained = fuzz.run("init", "empty")
    assert (code, "empty.yaml is empty" in complained) == (2, True), complained


def test_one_thing_is_not_called_several(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("one", solver_sh="#!/bin/sh\nkill -ABRT $$\n", **{"tests/a.txt": "x"})
    run(world.build_and_schedule(commit))
    fuzz = Commands(world)
    _, _, progress = fuzz.run("fuzzer", "scripted", "--budget", "1m", "--until-bug")
    assert "1 test (" in progress
    assert "1 tests" not in progress


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("issues: {projet: a/b}", "issues: unknown key projet; did you mean project?"),
        ("issues: {project: b}", "expected issues.project to be OWNER/NAME, got b"),
        ("coverage: {arvg: [x]}", "coverage: unknown key arvg; did you mean argv?"),
        ("coverage: {timeout: soon}", "coverage.timeout"),
    ],
)
def test_options_that_a_run_needs_only_at_its_end_are_checked_before_it(
    tmp_path: Path, more: str, said: str
) -> None:
    """A misspelt option ended a run of six hours when it wanted to file its findings."""
    world = World(tmp_path, more=more)
    world.commit("good")
    fuzz = Commands(world)
    for words in (("init", "scripted"), ("check", "scripted"), ("fuzzer", "scripted", "--dry-run")):
        code, _, complained = fuzz.run(*words)
        assert (code, said in complained) == (2, True), complained
