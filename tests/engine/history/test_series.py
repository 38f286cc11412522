"""Figures over time: each event counts once, and depths are those of the minute's end."""

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.support.filing import Desk
from tests.engine.support.moves import Move, moves
from tests.engine.support.player import Player
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from tests.engine.support.rigs import Rigs
from tests.support.forms import by_form
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.series import (
    STEPS,
    TEN_MINUTES,
    Figures,
    SeriesKind,
    SeriesRow,
    read_counts,
    read_figures,
    slot_of,
)
from windlass.domain.rows.views import JobFilter
from windlass.engine.history.series import SETTLED_MS
from windlass.engine.loops.retention import RetentionLoop
from windlass.engine.loops.statistics import SeriesLoop
from windlass.store.sql.transaction import ReadTx

QUEUED, RUNNING, BLOCKED = State.QUEUED.code, State.RUNNING.code, State.BLOCKED.code
Depths = dict[tuple[str, str], dict[int, int]]


async def gather(rig: Rig) -> int:
    await rig.advance(SETTLED_MS + MINUTE)
    return (await SeriesLoop(rig.engine).run_once(rig.now)).events


async def rows_of(rig: Rig, kind: SeriesKind, step: int = MINUTE) -> list[SeriesRow]:
    return await rig.store.read(lambda tx: tx.series.between([kind], step, 0, 2**62))


async def added_up(rig: Rig, step: int = MINUTE, queue: str | None = None) -> Figures:
    found = Figures()
    for row in await rows_of(rig, SeriesKind.WORK, step):
        if queue in (None, row.name):
            found.merge(read_figures(row))
    return found


async def depths(rig: Rig) -> Depths:
    """Returns jobs by state, as the loop has added them up."""
    rows = await rows_of(rig, SeriesKind.TOTAL, 0)
    found = {(row.namespace, row.name): read_counts(row) for row in rows}
    return {pair: counts for pair, counts in found.items() if counts}


async def open_jobs(rig: Rig) -> Depths:
    """Returns jobs by state, as their rows tell."""
    found: Depths = {}

    async def read(tx: ReadTx) -> None:
        page = await tx.views.jobs(JobFilter(), 0, 10_000)
        await rig.engine.catalog.know(tx, {row.facts.shape for row in page.jobs})
        for row in page.jobs:
            shape = rig.engine.catalog.shapes[row.facts.shape]
            if row.facts.state is None:
                counts = found.setdefault((shape.namespace, shape.queue), {})
                counts[row.state] = counts.get(row.state, 0) + 1

    await rig.store.read(read)
    return found


async def test_figures_say_what_happened_in_each_slot(rig: Rig) -> None:
    await rig.advance(-rig.now % HOUR)
    start = rig.now
    agent = await rig.agent("a")
    done = await rig.submit()
    await rig.advance(10 * SECOND)
    taken = await agent.take_one()
    await rig.advance(20 * SECOND)
    await agent.finish(taken)
    await rig.advance(2 * MINUTE)
    await rig.submit(queue="batch", retries=1)
    for _ in range(2):
        failing = await agent.take_one()
        await agent.fail(failing, FailureClass.NETWORK, "no route")
        await rig.advance(HOUR)
        await rig.cleanup()
    await rig.submit(after=[done], queue="batch", unblock="manual")
    assert await gather(rig)
    for step in STEPS:
        usual, batch = await added_up(rig, step, "default"), await added_up(rig, step, "batch")
        assert (usual.submitted, usual.started, usual.completed, usual.failed) == (1, 1, 1, 0)
        assert (usual.wait.count, usual.wait.total, usual.run.total) == (1, 10_000, 20_000)
        assert (batch.submitted, batch.started, batch.completed) == (2, 2, 0)
        assert (batch.failed, batch.retried) == (1, 1)
        assert batch.failures == {FailureClass.NETWORK.code: 1}
    first = (await rows_of(rig, SeriesKind.WORK))[0]
    assert (first.at, first.name) == (slot_of(start, MINUTE), "default")
    assert await depths(rig) == await open_jobs(rig) == {("default", "batch"): {BLOCKED: 1}}


async def test_depth_is_that_of_the_end_of_each_minute(rig: Rig) -> None:
    await rig.advance(-rig.now % HOUR)
    start = rig.now
    agent = await rig.agent("a")
    first = await rig.submit()
    await rig.advance(3 * MINUTE)
    await agent.take_one()
    await rig.advance(2 * MINUTE)
    await rig.engine.jobs.cancel([first], "x", "me")
    await agent.sync()
    await rig.submit(queue="other")
    await rig.advance(10 * MINUTE)
    await gather(rig)
    rows = await rows_of(rig, SeriesKind.WORK)
    seen = {((row.at - start) // MINUTE, row.name): read_figures(row).depth for row in rows}
    queued, running = {QUEUED: 1}, {RUNNING: 1}
    assert [seen[minute, "default"] for minute in range(3)] == [queued] * 3
    assert [seen[minute, "default"] for minute in (3, 4)] == [running] * 2
    assert (7, "default") not in seen or seen[7, "default"] in ({}, {State.CANCELING.code: 1})
    assert [seen[minute, "other"] for minute in range(5, 15)] == [queued] * 10
    ten = {
        (row.at - start, row.name): read_figures(row)
        for row in await rows_of(rig, SeriesKind.WORK, TEN_MINUTES)
    }
    assert ten[0, "default"].high == 1
    assert ten[0, "other"].depth == queued


async def test_minutes_in_which_nothing_happens_have_depths_too(rig: Rig) -> None:
    await rig.advance(-rig.now % MINUTE)
    start = rig.now
    await rig.submit()
    for _ in range(3):
        await rig.advance(5 * MINUTE)
        await SeriesLoop(rig.engine).run_once(rig.now)
    rows = await rows_of(rig, SeriesKind.WORK)
    assert [row.at for row in rows] == list(range(start, rig.now - MINUTE, MINUTE))
    assert all(read_figures(row).depth == {QUEUED: 1} for row in rows)
    workers = await rows_of(rig, SeriesKind.WORKERS)
    assert {row.name for row in workers} >= {"online", "offline", "draining"}


async def test_several_servers_and_restarts_count_each_event_once(rig: Rig) -> None:
    await rig.restart(Config(chunk_rows=3))
    for n in range(7):
        await rig.submit(queue=f"q{n % 2}")
        await rig.advance(20 * SECOND)
    await rig.advance(SETTLED_MS + MINUTE)
    loops = [SeriesLoop(rig.engine)]
    if rig.kind != "sqlite":
        loops.append(SeriesLoop(await rig.another_engine()))
    await asyncio.gather(*(loop.run_once(rig.now) for loop in loops))
    await rig.restart()
    await SeriesLoop(rig.engine).run_once(rig.now)
    for step in STEPS:
        assert (await added_up(rig, step)).submitted == 7
    assert await depths(rig) == await open_jobs(rig)


async def test_a_job_that_is_deleted_before_it_is_counted_leaves_no_trace(rig: Rig) -> None:
    job = await rig.submit()
    await gather(rig)
    await rig.engine.jobs.cancel([job], "x", "me")
    await rig.engine.jobs.delete([job], "me")
    await gather(rig)
    assert await depths(rig) == {}
    assert (await added_up(rig)).stopped == 1


async def test_minutes_go_before_hours(rig: Rig) -> None:
    await rig.restart(Config(series_detail_ms=HOUR, series_retention_ms=100 * HOUR))
    await rig.submit()
    await gather(rig)

    async def left() -> list[int]:
        await RetentionLoop(rig.engine, Desk(rig).blobs).run_once(rig.now)
        return [len(await rows_of(rig, SeriesKind.WORK, step)) for step in STEPS]

    assert await left() == [1, 1, 1]
    await rig.advance(3 * HOUR)
    assert await left() == [0, 1, 1]
    await rig.advance(10 * HOUR)
    assert await left() == [0, 0, 1]
    await rig.advance(100 * HOUR)
    assert await left() == [0, 0, 0]
    assert await depths(rig) == await open_jobs(rig)


@settings(max_examples=by_form(15, 200), suppress_health_check=list(HealthCheck))
@given(script=st.lists(moves, min_size=20, max_size=60), pace=st.integers(1, 9))
def test_after_any_history_depths_are_those_of_the_jobs(
    rigs: Rigs, script: list[Move], pace: int
) -> None:
    with rigs.open("memory") as rig:
        player = Player(rig)
        for number, move in enumerate(script):
            rig.run(player.play(move))
            if number % pace == 0:
                rig.run(SeriesLoop(rig.engine).run_once(rig.now))
        rig.run(rig.advance(SETTLED_MS + MINUTE))
        rig.run(SeriesLoop(rig.engine).run_once(rig.now))
        assert rig.run(depths(rig)) == rig.run(open_jobs(rig))
        submitted = len(rig.run(rig.snapshot()).jobs)
        assert all(rig.run(added_up(rig, step)).submitted == submitted for step in STEPS)
