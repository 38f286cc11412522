"""What completed jobs took, gathered per kind of work by the statistics loop."""

from typing import Any

import pytest

from tests.engine.support.filing import Desk, holder_of
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.rows.statistics import Summary
from windlass.engine.history.statistics import SETTLED_MS, Kinds
from windlass.engine.loops import statistics
from windlass.engine.loops.statistics import StatisticsLoop, StatisticsReport
from windlass.messages.sync import Outcome


async def run_one(rig: Rig, ms: int, outcome: Outcome = "completed", **fields: Any) -> int:
    """Submits one job, runs it for so long, and returns its id."""
    job = await rig.submit(**fields)
    agent = await rig.agent(f"worker-{job}")
    taken = await agent.take_one()
    await rig.advance(ms)
    await agent.finish(taken, outcome)
    return job


async def known(rig: Rig, job: int) -> Summary | None:
    """Returns what is known about the kind of a job."""
    record = await rig.record(job)
    catalog = rig.engine.catalog
    return await rig.engine.store.read(
        lambda tx: Kinds(tx, catalog).of_job(record.facts.shape, record.spec)
    )


async def gather(rig: Rig) -> StatisticsReport:
    await rig.advance(SETTLED_MS)
    return await StatisticsLoop(rig.engine).run_once(rig.now)


async def test_run_times_are_gathered_per_kind_and_queue(rig: Rig) -> None:
    short = [await run_one(rig, ms) for ms in (1_000, 1_000, 4_000)]
    other = await run_one(rig, MINUTE, queue="batch")
    await gather(rig)
    usual, batch = await known(rig, short[0]), await known(rig, other)
    assert usual is not None
    assert batch is not None
    assert (batch.count, batch.mean_ms, batch.peak_memory) == (1, MINUTE, None)
    assert (usual.count, usual.mean_ms) == (3, 2_000)
    assert 920 <= usual.p50_ms <= 1_090
    assert 3_650 <= usual.p90_ms <= 4_000


async def test_run_times_of_new_work_are_known_a_few_seconds_after_the_first_end(rig: Rig) -> None:
    job = await run_one(rig, 2 * SECOND)
    await rig.advance(5 * SECOND)
    await StatisticsLoop(rig.engine).run_once(rig.now)
    found = await known(rig, job)
    assert found is not None
    assert found.mean_ms == 2 * SECOND


async def test_programs_and_their_first_arguments_are_kinds_of_their_own(rig: Rig) -> None:
    for ms, argv in ((10, ["echo", "x"]), (2_000, ["sleep", "2"]), (9_000, ["sleep", "9"])):
        await run_one(rig, ms, task="shell", args={"argv": argv})
    await gather(rig)
    means = []
    for argv in (["echo", "x"], ["sleep", "2"], ["sleep", "9", "more"], ["sleep", "7"], ["ls"]):
        job = await rig.submit(task="shell", args={"argv": argv})
        found = await known(rig, job)
        means.append(None if found is None else (found.kind, found.mean_ms))
    assert means == [
        ("echo x", 10), ("sleep 2", 2_000), ("sleep 9", 9_000), ("sleep", 5_500), None,
    ]  # fmt: skip


async def test_a_job_may_name_its_kind(rig: Rig) -> None:
    await run_one(rig, SECOND, task="shell", args={"argv": ["make", "a"]}, kind="build")
    await gather(rig)
    alike = await rig.submit(task="shell", args={"argv": ["ninja"]}, kind="build")
    found = await known(rig, alike)
    assert found is not None
    assert (found.kind, found.mean_ms) == ("build", 1_000)
    other = await rig.submit(task="shell", args={"argv": ["make", "a"]})
    assert await known(rig, other) is None


async def test_work_that_has_changed_is_known_anew(rig: Rig) -> None:
    for _ in range(3):
        await run_one(rig, MINUTE)
    await gather(rig)
    await rig.advance(5 * 24 * HOUR)
    job = await run_one(rig, SECOND)
    await gather(rig)
    found = await known(rig, job)
    assert found is not None
    assert found.count == 4
    assert found.p50_ms < 1_100


async def test_a_job_counts_once_however_often_the_loop_runs(rig: Rig) -> None:
    job = await run_one(rig, SECOND)
    assert (await gather(rig)).events > 0
    assert (await gather(rig)).events == 0
    await run_one(rig, SECOND)
    await gather(rig)
    assert (found := await known(rig, job)) is not None
    assert found.count == 2


async def test_what_did_not_complete_does_not_count(rig: Rig) -> None:
    job = await run_one(rig, SECOND, "failed")
    await gather(rig)
    assert await known(rig, job) is None


async def test_two_engines_count_together_what_each_would_alone(rig: Rig) -> None:
    if rig.kind == "sqlite":
        return  # one server works on a file
    job = await run_one(rig, SECOND)
    other = await rig.another_engine()
    await gather(rig)
    await StatisticsLoop(other).run_once(rig.now)
    await run_one(rig, SECOND)
    await rig.advance(SETTLED_MS)
    await StatisticsLoop(other).run_once(rig.now)
    await gather(rig)
    assert (found := await known(rig, job)) is not None
    assert found.count == 2


async def test_of_very_many_events_the_newest_stand_for_all(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "MAX_EVENTS", 4)
    job = await run_one(rig, MINUTE)
    await run_one(rig, SECOND)
    report = await gather(rig)
    assert report.passed_over > 0
    assert (told := await known(rig, job)) is not None
    assert (told.count, told.mean_ms) == (1, SECOND)


async def test_peak_memory_comes_with_the_end_of_the_log(rig: Rig) -> None:
    desk = Desk(rig)
    job = await rig.submit()
    agent = await rig.agent()
    taken = await agent.take_one()
    await agent.finish(taken)
    await desk.files.end_log(holder_of(agent, taken), 0, "committed", 300 * 2**20)
    await gather(rig)
    assert (told := await known(rig, job)) is not None
    assert (told.count, told.peak_memory, told.peak_memory_p90) == (1, 300 * 2**20, 300 * 2**20)
