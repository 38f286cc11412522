"""`Retention`: removal of old jobs, and of events behind a baseline."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.everything import FILL
from tests.store.conformance.rows import event, job_end, new_job, workflow
from windlass.domain.rows.events import BaselineKind, BaselineRow
from windlass.store.sql.retention import Ended
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import WriteTx


def test_a_walk_over_old_jobs_finds_those_that_ended(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(job, workflow=None) for job in range(1, 8)])
        await tx.jobs.end([job_end(job, finished_at=900 + job) for job in (2, 3, 6)])

    store.transact(work)
    two, three, six = Ended(2, 1, None, 902), Ended(3, 1, None, 903), Ended(6, 1, None, 906)
    assert store.read(lambda tx: tx.retention.ended(0, 10_000, 3)) == ([two, three], 3)
    assert store.read(lambda tx: tx.retention.ended(3, 10_000, 3)) == ([six], 6)
    assert store.read(lambda tx: tx.retention.ended(6, 10_000, 3)) == ([], 0)
    assert store.read(lambda tx: tx.retention.ended(0, 503, 9)) == ([two], 0)


def test_a_removed_job_leaves_nothing_behind_but_events(store: Driver) -> None:
    async def fill(tx: WriteTx) -> None:
        for step in FILL:
            await step(tx)
        await tx.places.take_ready([])
        await tx.leases.drop([1, 2])
        await tx.jobs.end([job_end(1), job_end(2)])
        await tx.retention.put_baseline([BaselineRow(BaselineKind.JOB, 1, "{}")])

    store.transact(fill)
    store.transact(lambda tx: tx.retention.remove_jobs([1, 2]))
    shown = store.snapshot()
    assert [row.facts.id for row in shown.jobs] == list(range(3, 21))
    assert _speaking_of_jobs(shown) == {
        "attempts": [], "dependents": [], "keys": [], "logs": [], "artifacts": [],
        "progress": [], "dynamic": [],
    }  # fmt: skip
    assert [row.id for row in shown.baseline] == [0, 1, 2]
    assert [row.job for row in store.read(lambda tx: tx.log.read(0, 10))] == [1, 2]
    assert store.read(lambda tx: tx.views.job(1)) is None


def _speaking_of_jobs(shown: Snapshot) -> dict[str, list[object]]:
    tables = ("attempts", "dependents", "keys", "logs", "artifacts", "progress", "dynamic")
    return {name: list(getattr(shown, name)) for name in tables}


def test_a_removed_job_s_key_may_be_used_anew(store: Driver) -> None:
    from windlass.domain.rows.records import KeyRow

    store.transact(lambda tx: tx.jobs.claim_keys([KeyRow("team", "k", 1, "d")]))
    store.transact(lambda tx: tx.retention.remove_jobs([1]))
    told = store.transact(lambda tx: tx.jobs.claim_keys([KeyRow("team", "k", 5, "d")]))
    assert told["team", "k"].job == 5


def test_one_transaction_at_a_time_removes_things(store: Driver) -> None:
    other = store.companion("s2")

    async def work(tx: WriteTx) -> tuple[bool, bool]:
        mine = await tx.retention.try_lock()
        if other is None or other.inline:
            return mine, False
        return mine, await other.transact(lambda tx: tx.retention.try_lock())

    assert store.transact(work) == (True, False)
    assert store.transact(lambda tx: tx.retention.try_lock()) is True


def test_only_a_workflow_without_jobs_is_removed(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        await tx.workflows.insert([workflow(1), workflow(2)])
        await tx.jobs.insert([new_job(1, workflow=2)])
        rows = [BaselineRow(BaselineKind.WORKFLOW, number, "{}") for number in (1, 2)]
        await tx.retention.put_baseline(rows)
        await tx.retention.remove_workflows([1, 2, 3])

    store.transact(work)
    assert [row.id for row in store.snapshot().workflows] == [2]
    assert [row.id for row in store.snapshot().baseline] == [2]


def test_whole_rows_of_jobs_are_read_in_order(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(job) for job in (3, 1, 2)])
        await tx.jobs.end([job_end(2)])

    store.transact(work)
    told = store.read(lambda tx: tx.retention.records([3, 2, 9, 3]))
    assert told == [row for row in store.snapshot().jobs if row.facts.id in (2, 3)]


def test_the_baseline_is_written_read_and_dropped_by_kind(store: Driver) -> None:
    rows = [BaselineRow(kind, number, f"[{kind},{number}]") for kind in (1, 2) for number in (5, 7)]
    store.transact(lambda tx: tx.retention.put_baseline(rows[::-1]))
    store.transact(lambda tx: tx.retention.put_baseline([BaselineRow(2, 5, "new")]))
    store.transact(lambda tx: tx.retention.drop_baseline(1, [5, 6]))
    assert store.read(lambda tx: tx.retention.baseline(1, [5, 7])) == [rows[1]]
    told = store.read(lambda tx: tx.retention.baseline(2, [7, 5, 5]))
    assert told == [BaselineRow(2, 5, "new"), rows[3]]
    assert store.snapshot().baseline == (rows[1], BaselineRow(2, 5, "new"), rows[3])


def test_old_events_go_and_the_newest_stays(store: Driver) -> None:
    store.transact(lambda tx: tx.log.append([event(job) for job in range(1, 6)]))
    assert store.transact(lambda tx: tx.retention.trim_events(0)) == 0
    assert store.transact(lambda tx: tx.retention.trim_events(2)) == 2
    assert [row.seq for row in store.read(lambda tx: tx.log.read(0, 10))] == [3, 4, 5]
    assert store.transact(lambda tx: tx.retention.trim_events(100)) == 2
    store.transact(lambda tx: tx.log.append([event(9)]))
    assert [row.seq for row in store.read(lambda tx: tx.log.read(0, 10))] == [5, 6]


def test_a_history_whose_beginning_was_removed_is_still_read(store: Driver) -> None:
    async def work(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(1, created_at=10), new_job(2, created_at=11)])
        await tx.jobs.end([job_end(1, state=8, assigned_at=12, started_at=12, finished_at=13)])
        moves = [(1, 0, 2, 10), (2, 0, 2, 11), (1, 2, 3, 12), (1, 3, 4, 12), (1, 4, 8, 13)]
        await tx.log.append(
            [event(job, source=source, to=to, at=at) for job, source, to, at in moves]
        )

    store.transact(work)
    store.transact(lambda tx: tx.retention.trim_events(3))
    assert [row.seq for row in store.read(lambda tx: tx.log.of_job(1))] == [4, 5]
    assert store.read(lambda tx: tx.log.of_job(2)) == []
