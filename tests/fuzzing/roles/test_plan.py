"""`--dry-run` shows everything that would happen, and writes nothing."""

from pathlib import Path

import pytest

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import BROKEN, World
from tests.support.running import run
from tests.support.s3 import S3Server
from windlass_fuzz.buckets.bucket import Bucket
from windlass_fuzz.buckets.layout import build_key
from windlass_fuzz.roles.build_steps import BuildSteps
from windlass_fuzz.roles.fuzz_steps import FuzzSteps
from windlass_fuzz.roles.plan import Planner
from windlass_fuzz.state import rules
from windlass_fuzz.state.documents import Entry, Schedule
from windlass_fuzz.state.pipeline import Pipeline

HOUR_MS = 3_600_000


def files_of(folder: Path) -> dict[str, bytes | None]:
    """Returns every file and folder with its content."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


async def objects_of(bucket: Bucket) -> dict[str, bytes]:
    """Returns every object below `solvers` with its content."""
    found = {}
    async for item in bucket.list("solvers"):
        stored = await bucket.get(item.key)
        found[item.key] = b"" if stored is None else stored.body
    return found


def planner(world: World) -> Planner:
    return Planner(world.solver, world.pipeline, world.work("foresight"))


def someone(world: World) -> Pipeline:
    """Returns another machine's view of the same bucket."""
    return Pipeline(world.bucket, "scripted", world.pipeline.runtime, "somebody else")


async def set_schedule(world: World, *counts: tuple[str, int]) -> None:
    entries: Schedule = tuple(Entry(commit, count) for commit, count in counts)
    await world.pipeline.schedule.update(lambda _: entries)


def test_no_role_and_no_step_writes_a_byte(tmp_path: Path) -> None:
    world = World(tmp_path, more="commits: {extensions: [.sh], window: all, fresh: 9}")
    one, two, three = (world.commit(name) for name in ("one", "two", "three"))
    run(world.build_and_schedule(one, two))
    run(world.bucket.delete([build_key("scripted", "production", two)]))
    run(world.enqueue(three))
    run(world.pipeline.queue.update(lambda q: q._replace(failed=(world.commit("bad", b_sh="x"),))))
    fuzz = Commands(world)
    before = files_of(world.folder / "bucket")
    for words, said in (
        (("manager",), "would: drop, binaries are gone"),
        (("builder",), f"would build {three}"),
        (("builder", "--commit", one), f"would build {one}"),
        (("builder", "next"), three),
        (("builder", "mark-failed", three), "would be done"),
        (("fuzzer",), f"would fuzz {one}"),
        (("fuzzer", "--commit", one), f"would fuzz {one}"),
        (("fuzzer", "select"), one),
        (("fuzzer", "increment", one), "would be done: fuzz_count is 1"),
        (("coverage",), f"would map {two}"),
        (("queue", "add", two), "would be done"),
        (("queue", "remove", three), "would be done"),
    ):
        role, *rest = words
        step = rest[:1] if rest and not rest[0].startswith("-") else []
        code, printed, complained = fuzz.run(
            role, *step, "scripted", *rest[len(step) :], "--dry-run"
        )
        assert (code, said in printed) == (0, True), (words, printed, complained)
        assert files_of(world.folder / "bucket") == before, words


def test_a_bucket_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("one")
    fuzz = Commands(world, WINDLASS_FUZZ_BUCKET=str(tmp_path / "nowhere"))
    for words in (("builder", "scripted", "--dry-run"), ("status", "scripted")):
        assert fuzz.run(*words)[0] == 0
    assert not (tmp_path / "nowhere").exists()


def test_an_s3_server_is_not_written_to(tmp_path: Path, s3_server: S3Server) -> None:
    from windlass_fuzz.buckets.s3 import S3Bucket

    world = World(tmp_path)
    bucket = S3Bucket(s3_server.make_bucket("dry-runs"), **s3_server.options())
    world.pipeline = Pipeline(bucket, "scripted", world.pipeline.runtime, "test")
    variables = {"WINDLASS_FUZZ_BUCKET": "s3://dry-runs"} | s3_server.environment()
    fuzz = Commands(world, **variables)
    first, second = world.commit("one"), world.commit("two")

    run(world.build_and_schedule(first))
    run(world.enqueue(second))
    before = run(objects_of(bucket))
    assert len(before) > 4
    for words in (("builder", "scripted"), ("fuzzer", "scripted")):
        code, printed, complained = fuzz.run(*words, "--dry-run")
        assert (code, "nothing was written" in printed) == (0, True), complained
    assert run(objects_of(bucket)) == before


def test_what_the_builder_would_do_is_what_it_does(tmp_path: Path) -> None:
    world = World(tmp_path)
    held, crashed, next_one = (world.commit(name) for name in ("held", "crashed", "next"))
    run(world.enqueue(held, crashed, next_one))
    for _ in range(3):  # three builders of it died
        assert run(BuildSteps(someone(world)).take(1, crashed)).held
        world.clock.ahead_ms += HOUR_MS
    run(BuildSteps(someone(world)).take(HOUR_MS, held))
    plan = run(planner(world).build())
    assert (plan.outcome, plan.commit) == ("would build", next_one)
    assert plan.why == "the first of 3 in the queue that is free"
    assert [(p.commit, p.holder) for p in plan.passed_over] == [(held, "somebody else")]
    assert (plan.given_up, plan.attempt, plan.attempts) == ([crashed], 1, 3)
    assert plan.in_bucket == {"production": False, "coverage": False}
    before = run(objects_of(world.bucket))
    report = run(world.build())
    assert (report.commit, report.given_up) == (plan.commit, plan.given_up)
    after = run(objects_of(world.bucket))
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert changed == set(plan.writes)


def test_why_nothing_would_be_built(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert run(planner(world).build()).why == "the queue is empty"
    commit = world.commit("one")
    run(world.enqueue(commit))
    run(BuildSteps(someone(world)).take(HOUR_MS))
    plan = run(planner(world).build())
    assert (plan.outcome, plan.commit) == ("nothing", None)
    assert plan.why == "every commit in the queue is being built"
    assert plan.writes == []


def test_what_the_fuzzer_would_do_is_what_it_does(tmp_path: Path) -> None:
    world = World(tmp_path)
    gone, held, chosen = (world.commit(name) for name in ("gone", "held", "chosen"))
    run(world.build_and_schedule(gone, held, chosen))
    run(world.bucket.delete([build_key("scripted", "production", gone)]))
    run(FuzzSteps(someone(world)).select(HOUR_MS, held))
    plan = run(planner(world).fuzz(budget_ms=2_000))
    assert (plan.outcome, plan.commit, plan.removed) == ("would fuzz", chosen, [gone])
    assert "the least fuzzed that is free (never so far)" in plan.why
    assert [p.commit for p in plan.passed_over] == [held]
    assert (plan.tests, plan.first_tests) == (1, ["tests/a.txt"])
    assert plan.chosen_by == "all, as there is no coverage map"
    assert (plan.budget_ms, plan.reserved_ms, plan.cores) == (2_000, 5_000, 2)
    before = run(objects_of(world.bucket))
    report = run(world.fuzz(budget_ms=2_000))
    assert (report.commit, report.removed, report.fuzz_count) == (chosen, [gone], 1)
    assert (report.tests, plan.fuzz_count_after) == (plan.tests, report.fuzz_count)
    after = run(objects_of(world.bucket))
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert {key for key in changed if not key.startswith(tuple(plan.writes))} == set()
    assert {key for key in plan.writes if key.endswith(".json")} <= changed


@pytest.mark.parametrize(
    ("counts", "after", "rule"),
    [
        ((0, 1, 1, 1), 1, "the schedule has 4 commits, which is not more than 4"),
        (
            (0, 1, 1, 1, 1),
            None,
            "5 commits, more than 4, and none was fuzzed twice",
        ),
        ((0, 1, 1, 2, 1), 1, "was fuzzed twice"),
    ],
)
def test_the_plan_explains_the_removal_rule(
    tmp_path: Path, counts: tuple[int, ...], after: int | None, rule: str
) -> None:
    world = World(tmp_path)
    commit = world.commit("one")
    run(world.build_and_schedule(commit))
    others = [f"other{n}" for n in range(1, len(counts))]
    run(set_schedule(world, *zip((commit, *others), counts, strict=True)))
    plan = run(planner(world).fuzz())
    assert (plan.commit, plan.fuzz_count, plan.fuzz_count_after) == (commit, 0, after)
    assert rule in plan.rule
    schedule = run(world.pipeline.schedule.read())
    counted = {entry.hash: entry.fuzz_count for entry in rules.count_fuzzing(schedule, commit)}
    assert counted.get(commit) == after


def test_why_nothing_would_be_fuzzed(tmp_path: Path) -> None:
    world = World(tmp_path)
    assert "the schedule is empty" in run(planner(world).fuzz()).why
    commit = world.commit("one", solver_sh=BROKEN)
    run(world.build_and_schedule(commit))
    run(FuzzSteps(someone(world)).select(HOUR_MS))
    plan = run(planner(world).fuzz())
    assert (plan.outcome, plan.why) == ("nothing", "every commit in the schedule is being fuzzed")
