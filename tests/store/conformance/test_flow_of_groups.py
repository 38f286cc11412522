"""`Flow`: jobs of workflows in bulk, as the other roles would write them one by one."""

from functools import partial

from tests.store.conformance.driver import Driver, refused
from tests.store.conformance.rows import (
    CANCELING,
    COMPLETED,
    QUEUED,
    RUNNING,
    completion,
    due,
    event,
    grant,
    new_job,
    ticket,
    wait,
)
from tests.store.conformance.test_flow import NOW
from windlass.domain.job.validation import DEPENDENCY_LIMIT
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import Moves
from windlass.domain.rows.records import (
    KEPT_WHILE_RUNNING,
    Completed,
    NewJob,
    Ticket,
    Wait,
    Waited,
    Worker,
)
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId, WorkflowId
from windlass.messages.sync import Finished
from windlass.store.sql.transaction import WriteTx

BLOCKED = State.BLOCKED.code
CANCELED = State.CANCELED.code


def fill(store: Driver) -> None:
    """1, 2 blocked; 3 keeps a wait; 4 to 6 ready; 7 planned; 8 running; 9 ended before."""

    async def work(tx: WriteTx) -> None:
        await tx.jobs.insert([new_job(job, limit=None) for job in range(1, 10)])
        kept = wait(3, manual=KEPT_WHILE_RUNNING)
        await tx.places.add_waits([wait(1), wait(2, manual=1), kept])
        await tx.places.add_ready([ticket(4), ticket(5), ticket(6), ticket(8)])
        await tx.places.add_due([due(7, at=99)])
        await tx.leases.grant([grant(ticket(8))], RUNNING, 5, 5)

    store.transact(work)


def waits_of(row: NewJob, unmet: int) -> Wait:
    place = Ticket(row.shape, row.rank, row.id, AttemptNo(0), row.workflow, row.limit, None)
    return Wait(row.id, unmet, 0, None, row.age_from, place)


def test_blocked_jobs_wait_with_every_column(store: Driver) -> None:
    rows = [
        new_job(1, shape=9, rank=-8, workflow=None, limit=None),
        new_job(2),
        new_job(4, age_from=3, limit=6),
    ]
    most = 2 * DEPENDENCY_LIMIT  # by `after` and by `after_any`
    store.transact(lambda tx: tx.jobs.insert([*rows, new_job(3), new_job(5)]))
    store.transact(lambda tx: tx.flow.block(rows, [1, 10, most]))
    expected = zip(rows, (1, 10, most), strict=True)
    assert store.snapshot().waits == tuple(waits_of(row, unmet) for row, unmet in expected)


def test_a_job_is_blocked_once(store: Driver) -> None:
    row = new_job(1)
    store.transact(lambda tx: tx.jobs.insert([row]))
    store.transact(lambda tx: tx.flow.block([row], [1]))
    with refused():
        store.transact(lambda tx: tx.flow.block([row], [2]))
    assert store.snapshot().waits == (waits_of(row, 1),)


def test_what_is_freed_becomes_ready_unless_something_else_keeps_it(store: Driver) -> None:
    place = ticket(1, shape=4, rank=-9, attempt=6, workflow=7, excluded="[[8,9]]")
    first = wait(1, unmet=3, ticket=place)
    due_by_now = wait(8, not_before=NOW)
    others = [
        wait(3, ticket=ticket(3, limit=5)),
        wait(4, unmet=2, manual=KEPT_WHILE_RUNNING),
        wait(5, not_before=NOW + 1),
        wait(6, age_from=69),
    ]
    store.transact(
        lambda tx: tx.places.add_waits([first, wait(2, unmet=3), due_by_now, wait(9), *others])
    )
    met = {8: 1, 7: 1, 6: 1, 5: 1, 4: 2, 3: 1, 2: 2, 1: 3}
    freed = store.transact(lambda tx: tx.flow.free(met, NOW, young_from=70))
    assert freed.ready == [place, due_by_now.ticket]
    assert [row._replace(unmet=0) for row in freed.others] == [
        row._replace(unmet=0) for row in others
    ]
    shown = store.snapshot()
    assert shown.waits == (wait(2, unmet=1), wait(9))
    assert sorted(shown.ready) == sorted(freed.ready)


def test_conditions_met_twice_free_once(store: Driver) -> None:
    store.transact(lambda tx: tx.places.add_waits([wait(1, unmet=2), wait(2)]))
    told = [store.transact(lambda tx: tx.flow.free({1: 1, 2: 1}, NOW, 0)) for _ in range(3)]
    assert [freed.ready for freed in told] == [[ticket(2)], [ticket(1)], []]
    assert [freed.others for freed in told] == [[], [], []]


def test_what_waits_ends_and_the_others_are_left_alone(store: Driver) -> None:
    fill(store)
    before = store.snapshot()
    ended = store.transact(
        lambda tx: tx.flow.end_waiting([8, 7, 5, 4, 3, 2, 1], CANCELED, NOW, "stop", queued=True)
    )
    assert ended == [
        Waited(
            JobId(job),
            state,
            shape=ShapeId(1),
            workflow=WorkflowId(2),
            limit=None,
            flags=3,
            attempt=AttemptNo(0),
        )
        for job, state in ((1, BLOCKED), (2, BLOCKED), (4, QUEUED), (5, QUEUED))
    ]
    shown = store.snapshot()
    assert [row.job for row in shown.waits] == [3]
    assert [row.job for row in shown.ready] == [6]
    assert (shown.due, shown.leases) == (before.due, before.leases)
    for record in shown.jobs:
        ours = record.facts.id in (1, 2, 4, 5)
        assert record.facts.state == (CANCELED if ours else None)
        assert (record.finished_at, record.reason) == ((NOW, "stop") if ours else (None, None))


def test_ready_jobs_stay_where_only_blocked_ones_are_meant(store: Driver) -> None:
    fill(store)
    ended = store.transact(
        lambda tx: tx.flow.end_waiting([1, 4], CANCELED, NOW, "stop", queued=False)
    )
    assert [row.job for row in ended] == [1]
    assert [row.job for row in store.snapshot().ready] == [4, 5, 6]


def test_many_jobs_of_several_shapes_and_ranks_end_at_once(store: Driver) -> None:
    jobs = [new_job(job, shape=job % 3 + 1, rank=job % 2, limit=None) for job in range(1, 401)]

    async def work(tx: WriteTx) -> None:
        await tx.jobs.insert(jobs)
        await tx.places.add_ready([ticket(r.id, shape=r.shape, rank=r.rank) for r in jobs])

    store.transact(work)
    wanted = [*range(1, 401, 2), 2]
    ended = store.transact(
        lambda tx: tx.flow.end_waiting(wanted, CANCELED, NOW, "stop", queued=True)
    )
    assert [row.job for row in ended] == sorted(wanted)
    assert {row.job for row in store.snapshot().ready} == set(range(4, 401, 2))


def lease(store: Driver, state: int = RUNNING, limit: int | None = None) -> None:
    """Jobs 1 to 3 are given to worker 3 in its incarnation 4, as attempt 5."""

    async def work(tx: WriteTx) -> None:
        rows = [new_job(job, limit=limit) for job in (1, 2, 3)]
        await tx.jobs.insert(rows)
        places = [ticket(row.id, workflow=2, limit=limit) for row in rows]
        await tx.places.add_ready(places)
        await tx.leases.grant([grant(place, 3, 4, 5) for place in places], state, NOW - 9, 1)

    store.transact(work)


def test_tied_jobs_complete_and_tell_what_counts_them(store: Driver) -> None:
    lease(store)
    store.transact(lambda tx: tx.jobs.start_dependents({1: [4]}))
    done = [completion(3, exit_code=0), completion(1, result=b"1")]
    ended = store.transact(lambda tx: tx.flow.complete_tied(NOW, done))
    assert ended == [
        Completed(JobId(1), shape=ShapeId(1), workflow=WorkflowId(2)),
        Completed(JobId(3), shape=ShapeId(1), workflow=WorkflowId(2)),
    ]
    shown = store.snapshot()
    assert [row.job for row in shown.leases] == [2]
    first, second, third = shown.jobs
    assert (first.facts.state, second.facts.state, third.facts.state) == (
        COMPLETED,
        None,
        COMPLETED,
    )
    assert (first.result, first.finished_at, third.exit_code) == (b"1", NOW, 0)
    assert (first.facts.worker, first.facts.incarnation, first.facts.attempt) == (3, 4, 5)


async def _complete(tx: WriteTx, done: list[tuple[Worker, Finished]]) -> list[Completed]:
    return await tx.flow.complete_tied(NOW, done)


def test_all_complete_or_none(store: Driver) -> None:
    lease(store)
    before = store.snapshot()
    for wrong in (completion(2, attempt=4), completion(2, worker=9), completion(9)):
        assert store.transact(partial(_complete, done=[completion(1), wrong])) == []
    assert store.snapshot() == before
    store.transact(lambda tx: tx.leases.mark([2], CANCELING, "stop"))
    done = [completion(1), completion(2)]
    assert store.transact(lambda tx: tx.flow.complete_tied(NOW, done)) == []
    store.transact(lambda tx: tx.places.add_waits([wait(3, manual=KEPT_WHILE_RUNNING)]))
    done = [completion(1), completion(3)]
    assert store.transact(lambda tx: tx.flow.complete_tied(NOW, done)) == []


def test_a_job_under_a_limit_needs_more_than_that(store: Driver) -> None:
    lease(store, limit=7)
    assert store.transact(lambda tx: tx.flow.complete_tied(NOW, [completion(1)])) == []


def test_equal_moves_keep_reason_actor_and_data(store: Driver) -> None:
    moves = Moves(
        NOW, 0, 0, ((BLOCKED, CANCELED),), (1, 2), (0, 0), "why", "ann", '{"base":3}'
    )  # fmt: skip
    mixed = moves._replace(attempts=(1, 2), reason=None)
    store.transact(lambda tx: tx.flow.log(moves))
    store.transact(lambda tx: tx.flow.log(mixed))
    told = store.transact(lambda tx: tx.log.read(0, 10))
    same = event(1, at=NOW, source=BLOCKED, to=CANCELED, actor="ann", data='{"base":3}')
    assert [row._replace(seq=0) for row in told] == [
        same._replace(reason="why"),
        same._replace(job=2, reason="why"),
        same._replace(attempt=1),
        same._replace(job=2, attempt=2),
    ]
