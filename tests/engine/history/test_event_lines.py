"""The server's log of events: every event once, in order, by level, and bounded in a burst."""

import asyncio
from collections.abc import Sequence

import pytest

from tests.engine.support.cloud import Sky
from tests.engine.support.rig import SECOND, Rig
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.events import Event, EventKind, Level
from windlass.engine.history import events
from windlass.engine.history.events import (
    CHUNK,
    MAX_LINES,
    EventFilter,
    EventLines,
    Line,
    WorkerNames,
    number_before,
    number_before_last,
    read_new,
)
from windlass.server.feed import CountedEvents, Feed
from windlass.server.metrics import Meters
from windlass.store.sql.transaction import WriteTx


async def log_of(rig: Rig, said: list[Line], level: Level = Level.DEBUG) -> Feed:
    """A server's loop that writes the lines of what comes from now on."""
    lines = EventLines(WorkerNames(rig.store), said.append, level)
    feed = Feed(rig.store, Meters(), CountedEvents(rig.engine), lines)
    await feed.begin()
    return feed


async def test_reading_goes_on_where_it_ended(rig: Rig) -> None:
    await rig.submit()
    first, after = await read_new(rig.store, 0)
    assert (len(first), after) == (1, first[-1].seq)
    assert await read_new(rig.store, after) == ([], after)
    await rig.submit()
    second, after = await read_new(rig.store, after)
    assert [event.job for event in (*first, *second)] == [1, 2]


async def test_each_line_is_given_once(rig: Rig) -> None:
    said: list[Line] = []
    feed = await log_of(rig, said)
    await rig.submit()
    assert (await feed.run_once(rig.now)).events == 1
    assert (await feed.run_once(rig.now)).events == 0
    agent = await rig.agent("late")
    await agent.take_one()
    assert (await feed.run_once(rig.now)).events == 3
    assert len(said) == 4
    assert said[-1].text == "[FSM] Job 1: ASSIGNED → RUNNING (reason: Started on worker late)"
    assert said[-1].worker == "late"


async def test_a_round_reads_all_there_is(rig: Rig) -> None:
    said: list[Line] = []
    feed = await log_of(rig, said)
    await rig.submit_all(*[{"args": n} for n in range(CHUNK + 5)])
    assert (await feed.run_once(rig.now)).events == CHUNK + 5
    assert len(said) == CHUNK + 5


async def test_a_removed_worker_keeps_its_name_in_lines_to_come(rig: Rig) -> None:
    said: list[Line] = []
    feed = await log_of(rig, said)
    await rig.submit()
    agent = await rig.agent("gone")
    await agent.take_one(prefetch=True)
    await feed.run_once(rig.now)
    given = (await rig.snapshot()).leases[0]
    assert given.worker == agent.id
    await rig.engine.workers.remove(agent.id, force=True)
    await feed.run_once(rig.now)
    assert said[-1].text.startswith("[Health] Worker gone removed")


async def test_a_worker_that_a_pool_requests_is_named_once_and_is_no_warning(rig: Rig) -> None:
    said: list[Line] = []
    feed = await log_of(rig, said)
    sky = Sky(rig)
    await sky.apply()
    await rig.submit()
    await sky.round()
    await feed.run_once(rig.now)
    (requested,) = (line for line in said if "requested" in line.text)
    (row,) = await sky.rows()
    name = f"{row.token} ({row.token})"
    assert requested.text == f"[Health] Worker {name} was requested by pool p (by pools)"
    assert requested.level == Level.INFO


async def test_an_event_that_becomes_visible_late_is_not_passed_by(rig: Rig) -> None:
    """A transaction that drew its numbers first commits last."""
    if rig.store.inline:
        return  # transactions follow one another
    said: list[Line] = []
    feed = await log_of(rig, said)
    drawn, go_on = asyncio.Event(), asyncio.Event()

    async def slow(tx: WriteTx) -> None:
        await tx.log.append([_event("slow")])
        drawn.set()
        await go_on.wait()

    late = asyncio.ensure_future(rig.store.transact(slow))
    await drawn.wait()
    await rig.store.transact(lambda tx: tx.log.append([_event("fast")]))
    await feed.run_once(rig.now)
    assert said == []
    go_on.set()
    await late
    await feed.run_once(rig.now)
    assert [line.text for line in said] == ["[Watchdog] slow", "[Watchdog] fast"]


async def test_a_burst_is_summed_up_but_warnings_are_not(memory_rig: Rig) -> None:
    rig = memory_rig
    said: list[Line] = []
    feed = await log_of(rig, said, Level.INFO)
    await rig.submit_all(*[{"args": n} for n in range(MAX_LINES + 50)])
    agent = await rig.agent()
    await agent.fail(await agent.take_one(), FailureClass.NETWORK, "broken pipe")
    await feed.run_once(rig.now)
    shown = [line for line in said if line.level == Level.INFO]
    assert len(shown) == MAX_LINES + 1
    assert shown[-1].text.startswith("[FSM] 53 more events: 50 × NEW → QUEUED, ")
    assert any("broken pipe" in line.text for line in said if line.level == Level.WARNING)
    await rig.submit()
    await feed.run_once(rig.now)
    assert said[-1].text.endswith("NEW → QUEUED (reason: Submitted)")


async def test_a_level_leaves_out_what_is_less_important(memory_rig: Rig) -> None:
    rig = memory_rig
    said: list[Line] = []
    feed = await log_of(rig, said, Level.WARNING)
    await rig.end_grace()
    agent = await rig.agent("w0", metadata={"system:hostname": "node"})
    stopped = await rig.agent("stopped")
    await rig.engine.workers.leave(stopped.id, stopped.incarnation)
    await rig.submit()
    await agent.fail(await agent.take_one(), FailureClass.NETWORK, "broken pipe")
    await rig.pass_time(100 * SECOND)
    await feed.run_once(rig.now)
    assert [line.text for line in said] == [
        "[FSM] Job 1: RUNNING → RETRYING (reason: broken pipe)",
        "[Retry] Job 1: attempt 2 in 5s (retry 1 of 3, reason: broken pipe)",
        "[Health] Worker w0 missed a heartbeat",
        "[Health] Worker w0 (node) dead - no heartbeat for 1m40s (threshold: 1m30s)",
    ]


async def test_the_log_is_found_by_time_and_from_its_end(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rig.submit_all(*[{"args": n} for n in range(CHUNK)])
    await rig.advance(SECOND)
    later = rig.now
    job = await rig.submit()
    await rig.submit_all(*[{"args": n} for n in range(CHUNK)])
    newest = await rig.store.read(lambda tx: tx.log.newest())
    middle = await number_before(rig.store, later)
    (first,), _ = await read_new(rig.store, middle, 1)
    assert first.job == job
    assert await number_before(rig.store, 0) == 0
    assert await number_before(rig.store, later + 1) == newest

    async def of_job(events: Sequence[Event]) -> Sequence[Event]:
        wanted = EventFilter(job=job, kinds=frozenset({EventKind.JOB}))
        return [event for event in events if wanted.takes(event)]

    assert await number_before_last(rig.store, of_job, 1, 0) == 0
    assert await number_before_last(rig.store, of_job, 0, 0) == first.seq
    assert await number_before_last(rig.store, of_job, 1, newest) == newest
    monkeypatch.setattr(events, "MAX_SEARCHED", CHUNK // 2)
    assert await number_before_last(rig.store, of_job, 1, 0) == newest - CHUNK // 2


def _event(reason: str) -> Event:
    return Event(0, 0, EventKind.WATCHDOG, 0, 0, 0, 0, 0, 0, reason, None, None)
