"""What completed jobs took, gathered per shape by the statistics loop."""

from typing import Any

import pytest

from tests.engine.support.filing import Desk, holder_of
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.engine.history.statistics import SETTLED_MS
from windlass.engine.loops import statistics
from windlass.engine.loops.statistics import StatisticsLoop, StatisticsReport
from windlass.wire.sync import Outcome


async def run_one(rig: Rig, ms: int, outcome: Outcome = "completed", **fields: Any) -> int:
    """Submit one job, run it for so long; its shape."""
    job = await rig.submit(**fields)
    agent = await rig.agent(f"worker-{job}")
    taken = await agent.take_one()
    await rig.advance(ms)
    await agent.finish(taken, outcome)
    return (await rig.record(job)).facts.shape


async def gather(rig: Rig) -> StatisticsReport:
    await rig.advance(SETTLED_MS)
    return await StatisticsLoop(rig.engine).run_once(rig.now)


async def test_run_times_are_gathered_per_shape(rig: Rig) -> None:
    short = [await run_one(rig, ms) for ms in (1_000, 1_000, 4_000)]
    other = await run_one(rig, MINUTE, queue="batch")
    await gather(rig)
    told = await rig.engine.jobs.statistics([*short, other, 99])
    assert set(told) == {short[0], other}
    assert (told[other].count, told[other].mean_ms) == (1, MINUTE)
    assert (told[short[0]].count, told[short[0]].mean_ms) == (3, 2_000)
    assert 920 <= told[short[0]].p50_ms <= 1_090
    assert 3_650 <= told[short[0]].p90_ms <= 4_000
    assert told[other].peak_memory is None


async def test_a_job_counts_once_however_often_the_loop_runs(rig: Rig) -> None:
    shape = await run_one(rig, SECOND)
    assert (await gather(rig)).events > 0
    assert (await gather(rig)).events == 0
    await run_one(rig, SECOND)
    await gather(rig)
    assert (await rig.engine.jobs.statistics([shape]))[shape].count == 2


async def test_what_did_not_complete_does_not_count(rig: Rig) -> None:
    shape = await run_one(rig, SECOND, "failed")
    await gather(rig)
    assert await rig.engine.jobs.statistics([shape]) == {}


async def test_two_engines_count_together_what_each_would_alone(rig: Rig) -> None:
    if rig.kind == "sqlite":
        return  # one server works on a file
    shape = await run_one(rig, SECOND)
    other = await rig.another_engine()
    await gather(rig)
    await StatisticsLoop(other).run_once(rig.now)
    await run_one(rig, SECOND)
    await rig.advance(SETTLED_MS)
    await StatisticsLoop(other).run_once(rig.now)
    await gather(rig)
    assert (await rig.engine.jobs.statistics([shape]))[shape].count == 2


async def test_of_very_many_events_the_newest_stand_for_all(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "MOST", 4)
    shape = await run_one(rig, MINUTE)
    await run_one(rig, SECOND)
    report = await gather(rig)
    assert report.passed_over > 0
    told = (await rig.engine.jobs.statistics([shape]))[shape]
    assert (told.count, told.mean_ms) == (1, SECOND)


async def test_peak_memory_comes_with_the_end_of_the_log(rig: Rig) -> None:
    desk = Desk(rig)
    job = await rig.submit()
    agent = await rig.agent()
    taken = await agent.take_one()
    await agent.finish(taken)
    await desk.files.end_log(holder_of(agent, taken), 0, "committed", 300 * 2**20)
    shape = (await rig.record(job)).facts.shape
    await gather(rig)
    told = (await rig.engine.jobs.statistics([shape]))[shape]
    assert (told.count, told.peak_memory, told.peak_memory_p90) == (1, 300 * 2**20, 300 * 2**20)
