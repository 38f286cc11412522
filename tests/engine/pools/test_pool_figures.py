"""What a pool had and wanted is kept by the minute, on every store."""

from typing import Any

from tests.engine.support.calls import call_of
from tests.engine.support.cloud import Sky
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from windlass.domain.access.rights import Identity, Role
from windlass.domain.rows.series import MINUTE as BY_MINUTE
from windlass.domain.rows.series import STEPS, SeriesKind, read_plan
from windlass.engine.history.retention import trim_series
from windlass.operations.history import pool_history

ADMIN = Identity(0, "tests", Role.ADMIN)


async def _plans(rig: Rig, step: int = BY_MINUTE) -> list[Any]:
    rows = await rig.store.read(lambda tx: tx.series.between([SeriesKind.PLAN], step, 0, 2**60))
    return [(row.name, read_plan(row)) for row in rows]


async def test_a_minute_keeps_the_most_that_was_wanted_and_the_newest_of_the_rest(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply(max_workers=3, max_seconds_per_month=3600)
    await rig.submit_all(*({} for _ in range(20)))
    await sky.round()
    ((_, first),) = await _plans(rig)
    assert (first.wanted, first.machines, first.ready, first.most) == (4, 3, 0, 3)
    assert (first.latency_ms, first.target_ms, first.budget_ms) == (-1, 5_000, 3_600_000)
    await sky.boot()
    await sky.apply(max_workers=2)
    await sky.round()
    ((name, last),) = await _plans(rig)
    assert (name, last.wanted, last.most, last.ready) == ("p", 4, 2, 3)
    assert last.latency_ms > 5_000
    assert [len(await _plans(rig, step)) for step in STEPS] == [1, 1, 1]


async def test_a_pool_shows_size_latency_cost_and_machines_that_came_and_went(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.online(2, hourly_price=0.5, max_seconds_per_month=7200)
    await rig.advance(10 * MINUTE)
    await sky.apply(hourly_price=0.5, max_seconds_per_month=7200, max_idle_seconds=0)
    for _ in range(4):
        await sky.round()
        await rig.advance(SECOND)
    shown = await pool_history(call_of(rig, ADMIN), "p", "1h")
    figures = shown.figures
    assert figures.step == 60
    known = [n for n, machines in enumerate(figures.machines) if machines is not None]
    first, last = known[0], known[-1]
    assert figures.machines[first] == 2
    assert figures.machines[last] == 0
    assert sum(n or 0 for n in figures.started) == figures.started[first] == 2
    assert sum(n or 0 for n in figures.ended) == figures.ended[last] == 2
    assert figures.target_seconds[last] == 5
    assert figures.budget_seconds[last] == 7200
    used = figures.used_seconds[last]
    assert used is not None
    assert 1_200 <= used <= 1_260
    assert figures.used_money[last] == round(used / 3600 * 0.5, 6)
    await rig.advance(MINUTE)
    await rig.submit()
    await sky.round()
    told = (await pool_history(call_of(rig, ADMIN), "p", "1h")).reasons
    assert [one.reason for one in told][1:] == [one.reason for one in shown.reasons]
    assert told[0].reason not in {one.reason for one in told[1:]}
    assert told[0].at > told[1].at


async def test_a_pool_without_budget_or_past_says_nothing_of_them(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    await sky.apply(name="other")
    before = (await pool_history(call_of(rig, ADMIN), "p", "400d")).figures
    assert len(before.times) <= 1_001
    assert set(before.machines) == {None}
    await sky.round()
    after = (await pool_history(call_of(rig, ADMIN), "p", "1h")).figures
    assert after.machines[-1] == 0
    assert set(after.budget_seconds) == {None}


async def test_old_figures_of_pools_are_removed(rig: Rig) -> None:
    sky = Sky(rig)
    await sky.apply()
    await sky.round()
    await rig.advance(rig.engine.config.series_detail_ms + HOUR)
    await rig.engine.run(trim_series)
    assert await _plans(rig) == []
    assert len(await _plans(rig, STEPS[-1])) == 1
