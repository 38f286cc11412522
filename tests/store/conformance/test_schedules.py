"""Templates, schedules and reactions: versions, slots that are taken once, intents."""

import asyncio

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import reaction, schedule, schedule_run, template
from windlass.domain.schedules import RunRow
from windlass.store.sql.transaction import WriteTx


def test_a_version_is_written_once(store: Driver) -> None:
    first, other = template("t"), template("t", body=b"[]")
    assert store.transact(lambda tx: tx.templates.insert(first)) is True
    assert store.transact(lambda tx: tx.templates.insert(other)) is False
    assert store.read(lambda tx: tx.templates.version("team", "t", 1)) == first
    assert store.read(lambda tx: tx.templates.version("team", "t", 2)) is None
    assert store.read(lambda tx: tx.templates.version("other", "t", 1)) is None


def test_the_newest_version_of_each_is_listed_until_it_is_removed(store: Driver) -> None:
    rows = [template("b"), template("a"), template("b", 2), template("b", 10)]
    elsewhere = template("a", namespace="other")

    async def fill(tx: WriteTx) -> None:
        for row in (*rows, elsewhere):
            assert await tx.templates.insert(row)

    store.transact(fill)
    assert store.read(lambda tx: tx.templates.newest("team", "b")) == rows[3]
    assert store.read(lambda tx: tx.templates.all("team")) == [rows[1], rows[3]]
    assert store.read(lambda tx: tx.templates.all(None)) == [elsewhere, rows[1], rows[3]]
    assert store.transact(lambda tx: tx.templates.remove("team", "b", 99)) is True
    assert store.transact(lambda tx: tx.templates.remove("team", "b", 100)) is False
    assert store.read(lambda tx: tx.templates.all("team")) == [rows[1]]
    gone = store.read(lambda tx: tx.templates.newest("team", "b"))
    assert gone == rows[3]._replace(removed_at=99)


def test_a_name_belongs_to_one_schedule(store: Driver) -> None:
    row = schedule("s", created_by=None)
    assert store.transact(lambda tx: tx.schedules.insert(row)) == 1
    assert store.transact(lambda tx: tx.schedules.insert(row)) == 0
    other = schedule("s", namespace="other")
    number = store.transact(lambda tx: tx.schedules.insert(other))
    assert store.transact(lambda tx: tx.schedules.lock(1)) == row._replace(id=1)
    assert store.read(lambda tx: tx.schedules.named("other", "s")) == other._replace(id=number)
    assert store.transact(lambda tx: tx.schedules.lock_name("team", "x")) is None
    assert [r.namespace for r in store.read(lambda tx: tx.schedules.all(None))] == ["other", "team"]
    assert [r.id for r in store.read(lambda tx: tx.schedules.all("team"))] == [1]


def test_every_column_but_the_name_can_change(store: Driver) -> None:
    store.transact(lambda tx: tx.schedules.insert(schedule("s")))
    changed = schedule(
        "s", id=1, cron=None, every_ms=90_000, zone="Z", overlap="o", catch_up="c",
        catch_up_limit=1, paused=1, next_at=2, last_slot=3, body=b"[]", created_at=4,
        created_by="x", updated_at=5,
    )  # fmt: skip
    store.transact(lambda tx: tx.schedules.update(changed._replace(name="other")))
    assert store.transact(lambda tx: tx.schedules.lock(1)) == changed


def test_due_are_those_whose_time_has_come_and_that_are_not_paused(store: Driver) -> None:
    async def fill(tx: WriteTx) -> None:
        for number, next_at in enumerate([30, 10, 20, None, 40]):
            await tx.schedules.insert(schedule(f"s{number}", next_at=next_at))
        await tx.schedules.insert(schedule("paused", next_at=5, paused=1))

    store.transact(fill)
    assert store.read(lambda tx: tx.schedules.due(30, 10)) == [2, 3, 1]
    assert store.read(lambda tx: tx.schedules.due(30, 2)) == [2, 3]
    assert store.read(lambda tx: tx.schedules.due(9, 2)) == []


def test_the_next_slot_is_the_earliest_of_those_that_are_not_paused(store: Driver) -> None:
    assert store.read(lambda tx: tx.schedules.next_due()) is None

    async def fill(tx: WriteTx) -> None:
        for number, next_at in enumerate([30, None, 20]):
            await tx.schedules.insert(schedule(f"s{number}", next_at=next_at))
        await tx.schedules.insert(schedule("paused", next_at=5, paused=1))

    store.transact(fill)
    assert store.read(lambda tx: tx.schedules.next_due()) == 20


def test_a_slot_has_one_run_and_runs_by_hand_have_none(store: Driver) -> None:
    rows = [schedule_run(1, 5), schedule_run(1, 5), schedule_run(2, 5), schedule_run(1, None)]
    added = store.transact(lambda tx: tx.schedules.add_runs(rows))
    assert [(run.schedule, run.slot) for run in added] == [(1, 5), (2, 5), (1, None)]
    again = store.transact(lambda tx: tx.schedules.add_runs([rows[0], rows[3]]))
    assert [(run.schedule, run.slot) for run in again] == [(1, None)]
    ids = [run.id for run in (*added, *again)]
    assert ids == sorted(set(ids))
    assert store.snapshot().schedule_runs == (*added, *again)


def test_of_many_servers_one_adds_the_run_of_a_slot(store: Driver) -> None:
    """S17 where it is decided."""
    other = store.companion("s2") or store.store
    handles = [store.store, other] * 4

    async def add_all() -> list[list[RunRow]]:
        adds = [h.transact(lambda tx: tx.schedules.add_runs([schedule_run(1, 5)])) for h in handles]
        return list(await asyncio.gather(*adds))

    added = store.run(add_all())
    assert sorted(map(len, added)) == [0] * 7 + [1]
    assert len(store.snapshot().schedule_runs) == 1


def test_runs_that_wait_come_first_and_ended_ones_are_history(store: Driver) -> None:
    rows = [schedule_run(1, slot, state=state) for slot, state in enumerate([2, 1, 3, 1, 4, 2], 1)]
    store.transact(lambda tx: tx.schedules.add_runs([*rows, schedule_run(7, 1)]))
    found = store.read(lambda tx: tx.schedules.open_runs(1, 10))
    assert [(run.state, run.slot) for run in found] == [(1, 2), (1, 4), (2, 1), (2, 6)]
    assert len(store.read(lambda tx: tx.schedules.open_runs(1, 3))) == 3
    assert store.read(lambda tx: tx.schedules.waiting(0, 10)) == [1, 7]
    assert store.read(lambda tx: tx.schedules.waiting(1, 10)) == [7]
    assert store.read(lambda tx: tx.schedules.waiting(0, 1)) == [1]
    newest = store.read(lambda tx: tx.schedules.runs(1, 0, 2))
    assert [run.slot for run in newest] == [6, 5]
    before = store.read(lambda tx: tx.schedules.runs(1, newest[-1].id, 2))
    assert [run.slot for run in before] == [4, 3]


def test_runs_that_never_started_are_found_among_the_newest_that_ended(store: Driver) -> None:
    rows = [schedule_run(1, n, state=2 + n, changed_at=n) for n in (1, 2, 3)]  # ended, skipped, …

    async def fill(tx: WriteTx) -> None:
        await tx.schedules.insert(schedule("s"))
        await tx.schedules.add_runs([*rows, schedule_run(1, 4, state=1, changed_at=9)])

    store.transact(fill)
    found = [run.slot for run in store.read(lambda tx: tx.schedules.unstarted(0, 10))]
    assert found == [3, 2]
    assert [run.slot for run in store.read(lambda tx: tx.schedules.unstarted(3, 10))] == [3]
    assert [run.slot for run in store.read(lambda tx: tx.schedules.unstarted(0, 1))] == [3]


def test_a_run_changes_and_goes_with_its_schedule(store: Driver) -> None:
    store.transact(lambda tx: tx.schedules.insert(schedule("s")))
    (run,) = store.transact(lambda tx: tx.schedules.add_runs([schedule_run(1, 5)]))
    changed = run._replace(state=2, workflow=7, changed_at=9, reason="why")
    store.transact(lambda tx: tx.schedules.update_runs([changed._replace(slot=99, actor="x")]))
    assert store.snapshot().schedule_runs == (changed,)
    store.transact(lambda tx: tx.schedules.remove(1))
    assert store.snapshot().schedule_runs == ()
    assert store.snapshot().schedules == ()


def test_old_runs_are_trimmed_but_none_that_is_open(store: Driver) -> None:
    times = [(1, 10), (2, 10), (3, 10), (4, 20), (5, 30)]
    rows = [schedule_run(1, n, state=n, changed_at=at) for n, at in times]
    store.transact(lambda tx: tx.schedules.add_runs(rows))
    assert store.transact(lambda tx: tx.schedules.trim_runs(30, 1)) == 1
    assert store.transact(lambda tx: tx.schedules.trim_runs(30, 10)) == 1
    assert [run.state for run in store.snapshot().schedule_runs] == [1, 2, 5]


def test_a_reaction_fires_once_for_each_end(store: Driver) -> None:
    rows = [reaction(1), reaction(1, message="again"), reaction(1, run=2), reaction(1, place=1)]
    store.transact(lambda tx: tx.reactions.add(rows))
    store.transact(lambda tx: tx.reactions.add([reaction(1, trigger=2), reaction(1)]))
    held = store.snapshot().reactions
    assert [row[1:] for row in held] == [
        row[1:] for row in (rows[0], rows[2], rows[3], reaction(1, trigger=2))
    ]
    assert store.read(lambda tx: tx.reactions.of_workflow(1)) == list(held)
    assert store.read(lambda tx: tx.reactions.of_workflow(2)) == []


def test_due_reactions_are_pending_and_of_the_kind_asked_for(store: Driver) -> None:
    rows = [
        reaction(1, place=0, next_at=20), reaction(1, place=1, next_at=10),
        reaction(1, place=2, next_at=30), reaction(1, place=3, next_at=5, state=2),
        reaction(1, place=4, next_at=15, kind=1), reaction(1, place=5, next_at=15, kind=3),
    ]  # fmt: skip
    store.transact(lambda tx: tx.reactions.add(rows))
    hooks = store.read(lambda tx: tx.reactions.due(20, True, 10))
    assert [row.place for row in hooks] == [1, 0]
    others = store.read(lambda tx: tx.reactions.due(20, False, 10))
    assert [row.place for row in others] == [4, 5]
    assert len(store.read(lambda tx: tx.reactions.due(20, True, 1))) == 1


def test_a_reaction_changes_and_old_ones_go(store: Driver) -> None:
    store.transact(lambda tx: tx.reactions.add([reaction(1), reaction(2), reaction(3)]))
    row = store.read(lambda tx: tx.reactions.read(1))
    assert row is not None
    done = row._replace(state=2, tries=9, next_at=8, finished_at=7, result=6, message=None)
    store.transact(lambda tx: tx.reactions.update(done._replace(workflow=99)))
    assert store.transact(lambda tx: tx.reactions.lock(1)) == done
    assert store.read(lambda tx: tx.reactions.read(99)) is None
    assert store.transact(lambda tx: tx.reactions.trim(7, 10)) == 0
    assert store.transact(lambda tx: tx.reactions.trim(8, 10)) == 1
    assert [row.workflow for row in store.snapshot().reactions] == [2, 3]
