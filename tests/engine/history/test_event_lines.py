"""The tailer: every event once, in order, with gaps waited for."""

import asyncio

from tests.engine.support.rig import Rig
from windlass.domain.rows.events import Event, EventKind
from windlass.engine.history.event_lines import CHUNK, EventTailer, read_new
from windlass.ports.store import WriteTx


async def test_reading_goes_on_where_it_ended(rig: Rig) -> None:
    await rig.submit()
    first, after = await read_new(rig.store, 0)
    assert (len(first), after) == (1, first[-1].seq)
    assert await read_new(rig.store, after) == ([], after)
    await rig.submit()
    second, after = await read_new(rig.store, after)
    assert [event.job for event in (*first, *second)] == [1, 2]


async def test_each_line_is_given_once(rig: Rig) -> None:
    said: list[str] = []
    tail = EventTailer(rig.store, said.append)
    await rig.submit()
    assert (await tail.run_once(rig.now)).lines == 1
    assert (await tail.run_once(rig.now)).lines == 0
    agent = await rig.agent("late")
    await agent.take_one()
    report = await tail.run_once(rig.now)
    assert (report.events, report.lines) == (3, 3)
    assert said[-1] == "[FSM] Job 1: ASSIGNED → RUNNING (reason: Started on worker late)"


async def test_a_round_reads_all_there_is(rig: Rig) -> None:
    await rig.submit_all(*[{"args": n} for n in range(CHUNK + 5)])
    said: list[str] = []
    assert (await EventTailer(rig.store, said.append).run_once(rig.now)).events == CHUNK + 5
    assert len(said) == CHUNK + 5


async def test_a_removed_worker_keeps_its_name_in_lines_to_come(rig: Rig) -> None:
    said: list[str] = []
    tail = EventTailer(rig.store, said.append)
    await rig.submit()
    agent = await rig.agent("gone")
    await agent.take_one(prefetch=True)
    await tail.run_once(rig.now)
    given = (await rig.snapshot()).leases[0]
    assert given.worker == agent.id
    await rig.engine.workers.remove(agent.id, force=True)
    await tail.run_once(rig.now)
    assert said[-1].startswith("[Health] Worker gone removed")


async def test_an_event_that_becomes_visible_late_is_not_passed_by(rig: Rig) -> None:
    """A transaction that drew its numbers first commits last."""
    if rig.store.inline:
        return  # transactions follow one another
    drawn, go_on = asyncio.Event(), asyncio.Event()

    async def slow(tx: WriteTx) -> None:
        await tx.log.append([_event("slow")])
        drawn.set()
        await go_on.wait()

    late = asyncio.ensure_future(rig.store.transact(slow))
    await drawn.wait()
    await rig.store.transact(lambda tx: tx.log.append([_event("fast")]))
    said: list[str] = []
    tail = EventTailer(rig.store, said.append)
    await tail.run_once(rig.now)
    assert said == []
    go_on.set()
    await late
    await tail.run_once(rig.now)
    assert said == ["[Watchdog] slow", "[Watchdog] fast"]


def _event(reason: str) -> Event:
    return Event(0, 0, EventKind.WATCHDOG, 0, 0, 0, 0, 0, 0, reason, None, None)
