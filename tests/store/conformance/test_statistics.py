"""`Statistics` and `Deadlines`, and what workers once reported."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import COMPLETED, FAILED, RUNNING, event, job_end, new_job, worker
from windlass.domain.matching.workers import KEPT_METADATA, PastMetadata
from windlass.domain.rows.statistics import StatisticsRow, Usage, WorkKind
from windlass.domain.values.ids import JobId
from windlass.store.sql.statistics import CompletedOn, Completions, Looked, Taken
from windlass.store.sql.transaction import WriteTx

SPEC = new_job(1).spec


def kind(number: int) -> WorkKind:
    return WorkKind(f"space-{number}", "default", f"run {number}")


def row(number: int, measure: int = 1, total: float = 30.5, at: int = 7) -> StatisticsRow:
    return StatisticsRow(*kind(number), measure, 2, 1.25, total, 10, 20, at, '{"26":1.0,"34":0.25}')


async def end_jobs(tx: WriteTx) -> None:
    await tx.jobs.insert([new_job(job, shape=job) for job in (1, 2, 3)])
    ends = ((1, COMPLETED), (2, FAILED), (3, COMPLETED))
    await tx.jobs.end([job_end(j, state=s, started_at=100, finished_at=150 + j) for j, s in ends])
    moves = [event(j, source=RUNNING, to=s, at=1_000 + j, attempt=4) for j, s in ends]
    await tx.log.append(moves)


def test_completed_jobs_are_told_in_the_order_of_events(store: Driver) -> None:
    store.transact(end_jobs)
    told = store.transact(lambda tx: tx.statistics.completed(0, 5_000, 100))
    assert told == Looked(3, [Taken(1, 51, 0, SPEC), Taken(3, 53, 0, SPEC)])
    assert store.transact(lambda tx: tx.statistics.completed(1, 5_000, 1)) == Looked(2, [])
    assert store.transact(lambda tx: tx.statistics.completed(3, 5_000, 1)) == Looked(3, [])


def test_events_that_are_too_new_are_left_for_later(store: Driver) -> None:
    store.transact(end_jobs)
    told = store.transact(lambda tx: tx.statistics.completed(0, 1_002, 100))
    assert told == Looked(2, [Taken(1, 51, 0, SPEC)])


def test_what_an_attempt_used_is_told_with_it(store: Driver) -> None:
    store.transact(end_jobs)
    store.transact(lambda tx: tx.statistics.put_usage(Usage(1, 3, 7)))
    store.transact(lambda tx: tx.statistics.put_usage(Usage(1, 4, 2**40)))
    store.transact(lambda tx: tx.statistics.put_usage(Usage(3, 9, 5)))  # of another attempt
    told = store.transact(lambda tx: tx.statistics.completed(0, 5_000, 100))
    assert told.taken == [Taken(1, 51, 2**40, SPEC), Taken(3, 53, 0, SPEC)]
    found = store.transact(lambda tx: tx.statistics.usage([3, 1, 2]))
    assert found == {1: Usage(1, 4, 2**40), 3: Usage(3, 9, 5)}
    assert store.snapshot().usage == tuple(found.values())


def test_usage_goes_with_its_job(store: Driver) -> None:
    store.transact(end_jobs)
    store.transact(lambda tx: tx.statistics.put_usage(Usage(1, 4, 7)))
    store.transact(lambda tx: tx.retention.remove_jobs([1]))
    assert store.snapshot().usage == ()


def test_completions_are_counted_by_worker_shape_and_minute(store: Driver) -> None:
    store.transact(end_jobs)
    ends = [
        (1, 59_000, COMPLETED, 11), (3, 59_999, COMPLETED, 11), (3, 60_000, COMPLETED, 11),
        (3, 61_000, COMPLETED, 7), (3, 62_000, FAILED, 7), (99, 63_000, COMPLETED, 7),
    ]  # fmt: skip
    later = [event(job, at=at, source=RUNNING, to=to, worker=who) for job, at, to, who in ends]
    store.transact(lambda tx: tx.log.append(later))
    told = store.transact(lambda tx: tx.series.completed_on(3, 0))
    shape = {job.facts.id: job.facts.shape for job in store.snapshot().jobs}
    assert shape[JobId(1)] != shape[JobId(3)]
    assert told == Completions(
        59_000,
        [
            CompletedOn(7, shape[JobId(3)], 61_000, 1),
            CompletedOn(11, shape[JobId(1)], 59_000, 1),
            CompletedOn(11, shape[JobId(3)], 59_999, 1),
            CompletedOn(11, shape[JobId(3)], 60_000, 1),
        ],
    )
    newer = store.transact(lambda tx: tx.series.completed_on(3, 60_500))
    assert newer == Completions(59_000, [CompletedOn(7, shape[JobId(3)], 61_000, 1)])
    assert store.transact(lambda tx: tx.series.completed_on(99, 0)) == Completions(0, [])


def test_only_who_knows_how_far_it_was_moves_on(store: Driver) -> None:
    assert store.transact(lambda tx: tx.statistics.position()) == 0
    assert store.transact(lambda tx: tx.statistics.move_on(0, 5)) is True
    assert store.transact(lambda tx: tx.statistics.move_on(0, 6)) is False
    assert store.transact(lambda tx: tx.statistics.position()) == 5
    assert store.transact(lambda tx: tx.statistics.move_on(5, 9)) is True
    assert store.transact(lambda tx: tx.statistics.position()) == 9


def test_statistics_are_put_and_replaced_by_kind_and_measure(store: Driver) -> None:
    store.transact(lambda tx: tx.statistics.put([row(2), row(1, 2), row(1)]))
    store.transact(lambda tx: tx.statistics.put([row(1, total=2.0**50)]))
    told = store.transact(lambda tx: tx.statistics.of_kinds([kind(2), kind(1), kind(7), kind(2)]))
    assert told == [row(1, total=2.0**50), row(1, 2), row(2)]
    other = WorkKind("space-2", "batch", "run 2")
    assert store.transact(lambda tx: tx.statistics.of_kinds([other])) == []
    assert store.snapshot().statistics == tuple(told)


def test_statistics_not_seen_for_long_are_forgotten_and_the_oldest_beyond_a_number(
    store: Driver,
) -> None:
    rows = [row(1, at=5), row(2, at=9), row(3, at=8), row(4, at=8)]
    store.transact(lambda tx: tx.statistics.put(rows))
    assert store.transact(lambda tx: tx.statistics.forget(6, 100)) == 1
    assert store.snapshot().statistics == tuple(rows[1:])
    assert store.transact(lambda tx: tx.statistics.forget(6, 2)) == 1
    assert store.snapshot().statistics == (rows[1], rows[2])


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
