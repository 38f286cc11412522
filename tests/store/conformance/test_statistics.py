"""`StatisticsWrite` and `DeadlinesWrite`, and what workers once reported."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import COMPLETED, FAILED, RUNNING, event, job_end, new_job, worker
from windlass.domain.matching.workers import KEPT_METADATA, PastMetadata
from windlass.domain.rows.statistics import StatisticsRow, Usage
from windlass.ports.store import WriteTx
from windlass.ports.store.records.statistics import Looked, Taken


def row(shape: int, measure: int = 1, total: int = 30) -> StatisticsRow:
    return StatisticsRow(shape, measure, 2, total, 10, 20, '{"26":1,"34":1}')


async def end_jobs(tx: WriteTx) -> None:
    await tx.jobs.insert([new_job(job, shape=job) for job in (1, 2, 3)])
    ends = ((1, COMPLETED), (2, FAILED), (3, COMPLETED))
    await tx.jobs.end([job_end(j, state=s, started_at=100, finished_at=150 + j) for j, s in ends])
    moves = [event(j, frm=RUNNING, to=s, at=1_000 + j, attempt=4) for j, s in ends]
    await tx.log.append(moves)


def test_completed_jobs_are_told_in_the_order_of_events(store: Driver) -> None:
    store.transact(end_jobs)
    told = store.transact(lambda tx: tx.statistics.completed(0, 5_000, 100))
    assert told == Looked(3, [Taken(1, 51, 0), Taken(3, 53, 0)])
    assert store.transact(lambda tx: tx.statistics.completed(1, 5_000, 1)) == Looked(2, [])
    assert store.transact(lambda tx: tx.statistics.completed(3, 5_000, 1)) == Looked(3, [])


def test_events_that_are_too_new_are_left_for_later(store: Driver) -> None:
    store.transact(end_jobs)
    told = store.transact(lambda tx: tx.statistics.completed(0, 1_002, 100))
    assert told == Looked(2, [Taken(1, 51, 0)])


def test_what_an_attempt_used_is_told_with_it(store: Driver) -> None:
    store.transact(end_jobs)
    store.transact(lambda tx: tx.statistics.put_usage(Usage(1, 3, 7)))
    store.transact(lambda tx: tx.statistics.put_usage(Usage(1, 4, 2**40)))
    store.transact(lambda tx: tx.statistics.put_usage(Usage(3, 9, 5)))  # of another attempt
    told = store.transact(lambda tx: tx.statistics.completed(0, 5_000, 100))
    assert told.taken == [Taken(1, 51, 2**40), Taken(3, 53, 0)]
    found = store.transact(lambda tx: tx.statistics.usage([3, 1, 2]))
    assert found == {1: Usage(1, 4, 2**40), 3: Usage(3, 9, 5)}
    assert store.snapshot().usage == tuple(found.values())


def test_usage_goes_with_its_job(store: Driver) -> None:
    store.transact(end_jobs)
    store.transact(lambda tx: tx.statistics.put_usage(Usage(1, 4, 7)))
    store.transact(lambda tx: tx.retention.remove_jobs([1]))
    assert store.snapshot().usage == ()


def test_only_who_knows_how_far_it_was_moves_on(store: Driver) -> None:
    assert store.transact(lambda tx: tx.statistics.position()) == 0
    assert store.transact(lambda tx: tx.statistics.move_on(0, 5)) is True
    assert store.transact(lambda tx: tx.statistics.move_on(0, 6)) is False
    assert store.transact(lambda tx: tx.statistics.position()) == 5
    assert store.transact(lambda tx: tx.statistics.move_on(5, 9)) is True
    assert store.transact(lambda tx: tx.statistics.position()) == 9


def test_statistics_are_put_and_replaced_by_shape_and_measure(store: Driver) -> None:
    store.transact(lambda tx: tx.statistics.put([row(2), row(1, 2), row(1)]))
    store.transact(lambda tx: tx.statistics.put([row(1, total=2**50)]))
    told = store.transact(lambda tx: tx.statistics.of_shapes([2, 1, 7]))
    assert told == [row(1, total=2**50), row(1, 2), row(2)]
    assert store.transact(lambda tx: tx.statistics.of_shapes([2])) == [row(2)]
    assert store.snapshot().statistics == tuple(told)


def test_deadlines_are_told_when_they_have_passed(store: Driver) -> None:
    rows = [(30, 1), (10, 2), (20, 1), (10, 1)]
    store.transact(lambda tx: tx.deadlines.add(rows))
    store.transact(lambda tx: tx.deadlines.add([(10, 2)]))
    passed = store.transact(lambda tx: tx.deadlines.passed(20, 10))
    assert passed == [(10, 1), (10, 2), (20, 1)]
    assert store.transact(lambda tx: tx.deadlines.passed(20, 2)) == passed[:2]
    store.transact(lambda tx: tx.deadlines.drop([(10, 2), (20, 1)]))
    assert store.snapshot().deadlines == ((10, 1), (30, 1))


def test_what_workers_reported_is_kept_for_a_while(store: Driver) -> None:
    async def note(tx: WriteTx) -> None:
        for until, digest in ((10, "a"), (20, "b"), (30, "a"), (40, "c")):
            await tx.workers.note_past(PastMetadata(1, digest, until, f'{{"at":{until}}}'), 25)
        await tx.workers.note_past(PastMetadata(2, "a", 40, "{}"), 25)

    store.transact(note)
    told = store.transact(lambda tx: tx.workers.past(31))
    assert told == [PastMetadata(1, "c", 40, '{"at":40}'), PastMetadata(2, "a", 40, "{}")]
    kept = store.snapshot().past_metadata
    assert [(r.worker, r.digest, r.until) for r in kept] == [
        (1, "a", 30),
        (1, "c", 40),
        (2, "a", 40),
    ]


def test_of_each_worker_the_newest_are_kept_until_it_is_removed(store: Driver) -> None:
    store.transact(lambda tx: tx.workers.insert(worker("w")))

    async def note(tx: WriteTx) -> None:
        for n in range(KEPT_METADATA + 5):
            await tx.workers.note_past(PastMetadata(1, f"{n:03}", n, "{}"), 0)

    store.transact(note)
    kept = store.snapshot().past_metadata
    assert [r.until for r in kept] == list(range(5, KEPT_METADATA + 5))
    store.transact(lambda tx: tx.workers.remove(1))
    assert store.snapshot().past_metadata == ()
