"""A simulated day: jobs are done, the budget holds, nothing leaks, nobody is killed at work."""

import pytest

from tests.engine.support.pool_day import DAY_STEPS, STEP_MS, Day
from tests.engine.support.rig import HOUR, MINUTE, Rig
from windlass.domain.config import Config
from windlass.domain.lifecycle.states import State
from windlass.domain.values.quantities import month_of

pytestmark = pytest.mark.slow

# Steps of half a minute are no outage, and the pace of the loop.
CONFIG = Config(heard_gap_ms=60_000, pools_interval_ms=STEP_MS)


async def test_a_day_of_varying_load_with_failures(memory_rig: Rig) -> None:
    await memory_rig.restart(CONFIG)
    day = Day(memory_rig, 2)
    budget = 200 * HOUR
    await day.sky.apply(
        target_latency_seconds=600, max_idle_seconds=300, max_workers=15, expected_seconds=180,
        start_timeout_seconds=300, failure_cooldown_seconds=30, hourly_price=1,
        max_seconds_per_month=budget // 1000,
    )  # fmt: skip
    for number in range(DAY_STEPS):
        await day.step(number)
        assert len(day.cloud.machines) <= 15
    day.cloud.faults = False
    number = 0
    while day.cloud.machines or not await _all_done(memory_rig):
        await day.step(number, load=False)
        number += 1
        assert number < DAY_STEPS / 4, "the rest is not done in six hours"
    assert day.submitted > 1_000
    assert 10 <= day.most <= 15
    assert day.kills >= 1
    assert day.cloud.killed_busy == []
    assert set(day.cloud.machines) == set()
    assert await day.sky.states() == []
    charged = sum(cost.ms for cost in await day.sky.pools.costs(month_of(memory_rig.now)))
    assert charged <= budget
    assert charged >= day.machine_ms * 0.95, "what there was is charged"


async def test_a_budget_too_small_for_the_day_holds(memory_rig: Rig) -> None:
    await memory_rig.restart(CONFIG)
    day = Day(memory_rig, 3)
    await _spend(day, 4 * HOUR)


async def test_a_budget_holds_though_jobs_take_longer_than_expected(memory_rig: Rig) -> None:
    """Half an hour each, or two, where three minutes were expected and nothing is known yet."""
    await memory_rig.restart(CONFIG)
    day = Day(memory_rig, 4, (30 * MINUTE, 120 * MINUTE))
    await _spend(day, 8 * HOUR)
    assert day.stopped, "they were told to stop, and did"
    states = {job.facts.state for job in (await memory_rig.snapshot()).jobs}
    assert State.FAILED.code not in states


async def _spend(day: Day, budget: int) -> None:
    """Eight hours with more to do than the budget allows: it is used, and it holds."""
    await day.sky.apply(
        target_latency_seconds=300, max_idle_seconds=300, max_workers=20, expected_seconds=180,
        start_timeout_seconds=300, max_seconds_per_month=budget // 1000,
    )  # fmt: skip
    for number in range(DAY_STEPS // 3):
        await day.step(number)
    charged = sum(cost.ms for cost in await day.sky.pools.costs(month_of(day.rig.now)))
    assert budget * 0.7 < charged <= budget
    assert day.machine_ms <= budget
    assert day.cloud.killed_busy == []
    assert day.cloud.machines == {}


async def _all_done(rig: Rig) -> bool:
    counts = (await rig.engine.metrics()).queue_depth
    if any(counts.values()):
        return False
    snapshot = await rig.snapshot()
    return all(row.facts.state == State.COMPLETED.code for row in snapshot.jobs)
