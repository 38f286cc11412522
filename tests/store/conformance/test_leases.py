"""`Leases`: the attempts in force, from the grant to the end."""

import msgspec
import pytest

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import (
    ASSIGNED,
    CANCELING,
    RUNNING,
    TIMED_OUT,
    grant,
    new_job,
    ticket,
    worker,
)
from windlass.domain.rows.records import Lease, Ticket
from windlass.domain.values.ids import (
    PER_EPOCH,
    AttemptNo,
    JobId,
    LeaseNo,
    ShapeId,
    WorkerId,
    WorkflowId,
    shown_attempt,
)
from windlass.messages.sync import Assignment
from windlass.store.sql.leases import Marked
from windlass.store.sql.transaction import WriteTx

NOW = 50_000


def lease_jobs(
    store: Driver, *jobs: int, worker: int = 1, incarnation: int = 1, state: int = RUNNING
) -> list[Assignment]:
    """Submit these jobs and give them all to one worker; they may run for 8,000 ms."""

    async def work(tx: WriteTx) -> list[Assignment]:
        await tx.jobs.insert([new_job(job) for job in jobs])
        await tx.places.add_ready([ticket(job) for job in jobs])
        grants = [grant(ticket(job), worker, incarnation) for job in jobs]
        return await tx.leases.grant(grants, state, NOW, 100)

    return store.transact(work)


def deadlines(store: Driver) -> dict[int, int | None]:
    return {lease.job: lease.deadline_at for lease in store.snapshot().leases}


def test_a_granted_job_leaves_ready_for_a_lease(store: Driver) -> None:
    row = new_job(1, timeout_ms=8_000, idle_ms=6_000)
    place = Ticket(
        shape=ShapeId(1),
        rank=9,
        job=JobId(1),
        attempt=AttemptNo(3),
        workflow=WorkflowId(4),
        limit=5,
        excluded=None,
    )
    store.transact(lambda tx: tx.jobs.insert([row]))
    store.transact(lambda tx: tx.places.add_ready([place, ticket(2)]))
    grants = [grant(place, worker=6, incarnation=7, number=4)]
    told = store.transact(lambda tx: tx.leases.grant(grants, RUNNING, NOW, 100))
    assert told == [Assignment(1, 4, 1, "running", 8_000, 6_000, msgspec.Raw(row.spec))]
    assert store.snapshot().ready == (ticket(2),)
    assert store.snapshot().leases == (
        Lease(
            job=JobId(1),
            attempt=AttemptNo(4),
            lease=LeaseNo(1),
            worker=WorkerId(6),
            incarnation=7,
            state=RUNNING,
            assigned_at=NOW,
            started_at=NOW,
            activity_at=None,
            deadline_at=NOW + 6_000 + 100,
            timeout_ms=8_000,
            idle_ms=6_000,
            limit=5,
            reason=None,
        ),
    )
    assert store.transact(lambda tx: tx.places.count_ready(5, 1)) == 0


def test_an_assigned_job_has_not_started(store: Driver) -> None:
    lease_jobs(store, 1, state=ASSIGNED)
    (lease,) = store.snapshot().leases
    assert (lease.state, lease.assigned_at, lease.started_at) == (ASSIGNED, NOW, None)
    assert lease.deadline_at == NOW + 100


@pytest.mark.parametrize(
    ("timeout_ms", "idle_ms", "deadline_at"),
    [
        (8_000, None, NOW + 8_100),
        (None, 9_000, NOW + 9_100),
        (8_000, 9_000, NOW + 8_100),
        (8_000, 7_000, NOW + 7_100),
        (None, None, None),
    ],
)
def test_the_smaller_timeout_sets_the_first_deadline(
    store: Driver, timeout_ms: int | None, idle_ms: int | None, deadline_at: int | None
) -> None:
    row = new_job(1, timeout_ms=timeout_ms, idle_ms=idle_ms)
    store.transact(lambda tx: tx.jobs.insert([row]))
    store.transact(lambda tx: tx.places.add_ready([ticket(1)]))
    store.transact(lambda tx: tx.leases.grant([grant(ticket(1))], RUNNING, NOW, 100))
    assert deadlines(store) == {1: deadline_at}


def test_leases_are_numbered_in_the_order_of_the_grants(store: Driver) -> None:
    told = lease_jobs(store, 3, 1, 2)
    assert [(row.job, row.lease) for row in told] == [(3, 1), (1, 2), (2, 3)]
    assert [row.lease for row in lease_jobs(store, 9)] == [4]


def test_a_number_is_not_given_again_after_its_lease_ended(store: Driver) -> None:
    lease_jobs(store, 1, 2)
    store.transact(lambda tx: tx.leases.drop([1, 2]))
    assert [row.lease for row in lease_jobs(store, 3)] == [3]


def test_grants_of_one_call_may_go_to_several_workers(store: Driver) -> None:
    specs = {job: b'{"n":%d}' % job for job in (1, 2)}
    rows = [new_job(job, spec=spec, timeout_ms=job * 10) for job, spec in specs.items()]
    store.transact(lambda tx: tx.jobs.insert(rows))
    store.transact(lambda tx: tx.places.add_ready([ticket(1), ticket(2)]))
    grants = [grant(ticket(2), 8, 3, 5), grant(ticket(1), 9, 2, 6)]
    told = store.transact(lambda tx: tx.leases.grant(grants, RUNNING, NOW, 0))
    assert told == [
        Assignment(2, 5, 1, "running", 20, None, msgspec.Raw(specs[2])),
        Assignment(1, 6, 2, "running", 10, None, msgspec.Raw(specs[1])),
    ]
    held = {lease.job: (lease.worker, lease.incarnation) for lease in store.snapshot().leases}
    assert held == {2: (8, 3), 1: (9, 2)}


def test_attempts_go_on_counting_in_the_numbers_of_the_epoch(store: Driver) -> None:
    store.transact(lambda tx: tx.jobs.insert([new_job(1), new_job(2)]))
    store.transact(lambda tx: tx.places.add_ready([ticket(1), ticket(2)]))
    first = PER_EPOCH + 1
    grants = [grant(ticket(1), number=3), grant(ticket(2), number=first + 4)]
    told = store.transact(lambda tx: tx.leases.grant(grants, RUNNING, NOW, 0, first))
    numbers = [first + 2, first + 4]
    assert [row.attempt for row in told] == numbers
    assert [shown_attempt(number) for number in numbers] == [3, 5]
    leases = {lease.job: lease.attempt for lease in store.snapshot().leases}
    assert leases == dict(zip((1, 2), numbers, strict=True))


def test_locked_leases_are_told_ascending_and_absent_ones_left_out(store: Driver) -> None:
    lease_jobs(store, 3, 1, 2)
    told = store.transact(lambda tx: tx.leases.lock([3, 8, 1]))
    assert [(job, lease.job, lease.lease) for job, lease in told.items()] == [(1, 1, 2), (3, 3, 1)]


def test_the_leases_of_workers_ascend_by_number(store: Driver) -> None:
    lease_jobs(store, 5, worker=2)
    lease_jobs(store, 4, worker=1)
    lease_jobs(store, 3, worker=3)
    lease_jobs(store, 2, 1, worker=2, incarnation=2)
    told = store.transact(lambda tx: tx.leases.of_workers([1, 2, 9]))
    assert [lease.job for lease in told] == [5, 4, 2, 1]


def test_newer_leases_are_those_with_higher_numbers(store: Driver) -> None:
    for job, holder in ((1, 7), (2, 5), (3, 7), (4, 5), (5, 6)):
        lease_jobs(store, job, worker=holder)
    first = store.transact(lambda tx: tx.leases.of_workers([7]))[0].lease
    told = store.transact(lambda tx: tx.leases.newer({7: first, 5: 0, 9: 0}))
    assert [lease.job for lease in told] == [2, 3, 4]


def test_leases_are_counted_by_worker(store: Driver) -> None:
    lease_jobs(store, 1, 2, worker=7)
    lease_jobs(store, 3, worker=7, incarnation=2, state=ASSIGNED)
    lease_jobs(store, 4, worker=5)
    lease_jobs(store, 5, worker=6)
    store.transact(lambda tx: tx.leases.mark([1], CANCELING, "by hand"))
    assert store.transact(lambda tx: tx.leases.count([7, 6, 9])) == {7: 3, 6: 1}


def test_starting_makes_assigned_leases_run(store: Driver) -> None:
    lease_jobs(store, 1, 2, state=ASSIGNED)
    before = store.snapshot().leases
    store.transact(lambda tx: tx.leases.start([(2, NOW + 5, NOW + 900)]))
    started = before[1]._replace(state=RUNNING, started_at=NOW + 5, deadline_at=NOW + 900)
    assert store.snapshot().leases == (before[0], started)


def test_starting_passes_over_what_is_not_assigned(store: Driver) -> None:
    lease_jobs(store, 1, state=RUNNING)
    lease_jobs(store, 2, state=ASSIGNED)
    store.transact(lambda tx: tx.leases.mark([2], CANCELING, "by hand"))
    before = store.snapshot().leases
    store.transact(lambda tx: tx.leases.start([(1, 1, 2), (2, 3, 4), (9, 5, 6)]))
    assert store.snapshot().leases == before


def test_marked_leases_are_told_to_their_workers_only(store: Driver) -> None:
    lease_jobs(store, 1, 2, 3, worker=4, incarnation=5)
    lease_jobs(store, 6, worker=7)
    before = store.snapshot().leases
    store.transact(lambda tx: tx.leases.mark([1, 6, 9], CANCELING, "by hand"))
    store.transact(lambda tx: tx.leases.mark([3], TIMED_OUT, "too slow"))
    told = store.transact(lambda tx: tx.leases.marked([4, 8]))
    assert sorted(told) == [
        Marked(4, 5, 1, 1, CANCELING, "by hand", 0),
        Marked(4, 5, 3, 1, TIMED_OUT, "too slow", 0),
    ]
    assert store.snapshot().leases == (
        before[0]._replace(state=CANCELING, reason="by hand"),
        before[1],
        before[2]._replace(state=TIMED_OUT, reason="too slow"),
        before[3]._replace(state=CANCELING, reason="by hand"),
    )


def test_leases_of_suspects_are_marked_without_a_reason(store: Driver) -> None:
    lease_jobs(store, 1, 2, worker=4, incarnation=5)
    before = store.snapshot().leases
    store.transact(lambda tx: tx.leases.suspect([2, 9], 1))
    assert store.transact(lambda tx: tx.leases.marked([4])) == [
        Marked(4, 5, 2, 1, RUNNING, None, 1)
    ]
    assert store.snapshot().leases == (before[0], before[1]._replace(suspicion=1))


def test_a_touch_writes_activity_and_deadline(store: Driver) -> None:
    lease_jobs(store, 1, 2, 3)
    before = store.snapshot().leases
    rows = [(3, NOW + 30, NOW + 300), (9, 1, 1), (1, NOW + 10, NOW + 100)]
    store.transact(lambda tx: tx.leases.touch(rows))
    assert store.snapshot().leases == (
        before[0]._replace(activity_at=NOW + 10, deadline_at=NOW + 100),
        before[1],
        before[2]._replace(activity_at=NOW + 30, deadline_at=NOW + 300),
    )


def test_another_timeout_comes_with_its_deadline(store: Driver) -> None:
    lease_jobs(store, 1, 2, 3)
    before = store.snapshot().leases
    rows = [(3, 30_000, NOW + 300), (9, 1, 1), (1, 10_000, NOW + 100)]
    store.transact(lambda tx: tx.leases.allow(rows))
    assert store.snapshot().leases == (
        before[0]._replace(timeout_ms=10_000, deadline_at=NOW + 100),
        before[1],
        before[2]._replace(timeout_ms=30_000, deadline_at=NOW + 300),
    )


def test_dropped_leases_are_gone(store: Driver) -> None:
    lease_jobs(store, 1, 2, 3)
    store.transact(lambda tx: tx.leases.drop([3, 9, 1]))
    assert list(deadlines(store)) == [2]
    assert store.transact(lambda tx: tx.leases.lock([1, 3])) == {}
    assert [row.job for row in store.transact(lambda tx: tx.leases.of_workers([1]))] == [2]


def test_overdue_leases_come_with_the_earliest_deadline_first(store: Driver) -> None:
    lease_jobs(store, 1, 2, 3, 4)
    lease_jobs(store, 5, state=ASSIGNED)
    moments = [(1, 0, 700), (2, 0, 500), (3, 0, 801), (4, 0, 500), (5, 0, 600)]
    store.transact(lambda tx: tx.leases.touch(moments))

    def overdue(now: int, count: int) -> list[int]:
        rows = store.transact(lambda tx: tx.leases.overdue(now, count))
        return [row.job for row in rows]

    assert overdue(499, 9) == []
    assert overdue(500, 9) == [2, 4]
    assert overdue(800, 9) == [2, 4, 5, 1]
    assert overdue(800, 3) == [2, 4, 5]


def test_leases_told_to_stop_or_without_a_deadline_are_never_overdue(store: Driver) -> None:
    lease_jobs(store, 1, 2, 3)
    store.transact(lambda tx: tx.leases.mark([1], CANCELING, "by hand"))
    store.transact(lambda tx: tx.leases.mark([2], TIMED_OUT, "too slow"))
    store.transact(lambda tx: tx.leases.touch([(3, NOW, None)]))
    assert store.transact(lambda tx: tx.leases.overdue(NOW * 2, 9)) == []


def test_orphans_belong_to_workers_that_are_gone_or_came_back(store: Driver) -> None:
    async def enrol(tx: WriteTx) -> list[int]:
        names = ("gone", "back", "here")
        return [await tx.workers.insert(worker(name, incarnation=4)) for name in names]

    gone, back, here = store.transact(enrol)
    lease_jobs(store, 9, worker=gone, incarnation=4)
    lease_jobs(store, 3, worker=back, incarnation=3)
    lease_jobs(store, 4, worker=back, incarnation=4)
    lease_jobs(store, 2, worker=here, incarnation=4)
    lease_jobs(store, 1, worker=77)
    store.transact(lambda tx: tx.workers.remove(gone))

    def orphans(count: int) -> list[int]:
        return [row.job for row in store.transact(lambda tx: tx.leases.orphans(count))]

    assert orphans(10) == [1, 3, 9]
    assert orphans(2) == [1, 3]


def test_a_marked_lease_may_be_an_orphan_too(store: Driver) -> None:
    lease_jobs(store, 1, worker=77)
    store.transact(lambda tx: tx.leases.mark([1], CANCELING, "by hand"))
    assert [row.job for row in store.transact(lambda tx: tx.leases.orphans(5))] == [1]
