"""The events of one job are found among many, and all of them, whatever their times are."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.store.conformance.rows import grant
from tests.store.sqlite.driving import START_MS, close, open_store, transact
from windlass.domain.rows.events import Event
from windlass.domain.rows.records import Attempt, JobEnd, NewJob, Ticket
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId, WorkerId
from windlass.store.sql.log import is_whole
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.statements import QUERIES
from windlass.store.sqlite.store import SqliteStore

JOB = 77
QUEUED, ASSIGNED, RUNNING, RETRYING, COMPLETED = 2, 3, 4, 7, 8


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = open_store(tmp_path / "windlass.db")
    yield store
    close(store)


def move(at: int, source: int, to: int, job: int = JOB) -> Event:
    return Event(0, START_MS + at, 1, job, 0, 0, 0, source, to, None, None, None)


def noise(at: int, count: int = 2_000) -> list[Event]:
    """What other jobs do in the same moment."""
    return [move(at, 0, QUEUED, job=1_000 + number) for number in range(count)]


async def submit(tx: WriteTx) -> None:
    ticket = Ticket(ShapeId(1), 1, JobId(JOB), AttemptNo(0), None, None, None)
    times = (START_MS, START_MS, None, None, None)
    await tx.jobs.insert([NewJob(JobId(JOB), ShapeId(1), None, 0, 1, 0, 0, *times, None, b"{}")])
    await tx.places.add_ready([ticket])
    await tx.log.append([*noise(0), move(0, 0, QUEUED), *noise(0), *noise(5)])


async def lose_one_attempt(tx: WriteTx) -> None:
    times = (START_MS + 10, START_MS + 12, START_MS + 20)
    await tx.jobs.record_attempts(
        [Attempt(JobId(JOB), AttemptNo(1), WorkerId(5), 1, RETRYING, 2, None, None, *times)]
    )
    await tx.log.append([*noise(10), move(10, QUEUED, ASSIGNED), *noise(11)])
    await tx.log.append([move(12, ASSIGNED, RUNNING), *noise(12), move(20, RUNNING, RETRYING)])
    await tx.log.append([*noise(25), move(25, RETRYING, QUEUED), *noise(25)])


async def start(tx: WriteTx) -> None:
    await tx.leases.grant(
        [grant(Ticket(ShapeId(1), 1, JobId(JOB), AttemptNo(1), None, None, None), 5, 1, 2)],
        4,
        START_MS + 30,
        0,
    )
    both = [move(30, QUEUED, ASSIGNED), move(30, ASSIGNED, RUNNING)]
    await tx.log.append([*noise(30), *both, *noise(30), *noise(31)])


async def complete(tx: WriteTx) -> None:
    times = (START_MS + 30, START_MS + 30, START_MS + 40)
    end = JobEnd(
        JobId(JOB), COMPLETED, 0, AttemptNo(2), 0, 1, WorkerId(5), 1, *times, 0, 0, None, None, None
    )
    await tx.leases.drop([JOB])
    await tx.jobs.end([end])
    await tx.log.append([*noise(40), move(40, RUNNING, COMPLETED), *noise(41)])


LIFE = [submit, lose_one_attempt, start, complete]


async def all_of_it(tx: WriteTx) -> list[Event]:
    return [event for event in await tx.log.read(0, 1_000_000) if event.job == JOB]


@pytest.mark.parametrize("steps", range(1, len(LIFE) + 1))
def test_each_stage_of_a_life_is_told_whole_without_reading_the_log(
    store: SqliteStore, steps: int
) -> None:
    for step in LIFE[:steps]:
        transact(store, step)
    expected = transact(store, all_of_it)
    executed: list[str] = []

    def trace(_cursor: apsw.Cursor, statement: str, _bindings: object) -> bool:
        executed.append(statement)
        return True

    store.writer.exec_trace = trace
    assert transact(store, lambda tx: tx.log.of_job(JOB)) == expected
    assert QUERIES["events_of_job_between"] in executed
    assert QUERIES["events_of_job"] not in executed
    if steps == len(LIFE):
        assert [event.to for event in expected] == [2, 3, 4, 7, 2, 3, 4, 8]


@pytest.mark.parametrize(
    "events",
    [
        [move(0, 0, QUEUED), move(3, QUEUED, ASSIGNED)],
        [move(3, 0, QUEUED)],
        [move(0, QUEUED, ASSIGNED), move(0, ASSIGNED, RUNNING)],
        [move(50, 0, QUEUED), *noise(1), move(0, QUEUED, ASSIGNED)],
        [],
    ],
)
def test_events_at_times_nobody_knows_are_found_all_the_same(
    store: SqliteStore, events: list[Event]
) -> None:
    transact(store, lambda tx: tx.log.append([*noise(0), *events, *noise(60)]))
    assert transact(store, lambda tx: tx.log.of_job(JOB)) == transact(store, all_of_it)
    transact(store, submit)
    assert transact(store, lambda tx: tx.log.of_job(JOB)) == transact(store, all_of_it)


def test_every_missing_transition_is_noticed() -> None:
    whole = [
        move(at, *pair)
        for at, pair in enumerate([(0, 2), (2, 3), (3, 4), (4, 7), (7, 2), (2, 3), (3, 4), (4, 8)])
    ]
    standing = frozenset({COMPLETED})
    assert is_whole(whole, standing)
    assert not is_whole([], standing)
    for missing in range(len(whole)):
        assert not is_whole(whole[:missing] + whole[missing + 1 :], standing)


def test_older_events_that_retention_removed_do_no_harm(store: SqliteStore) -> None:
    transact(store, lambda tx: tx.log.append(noise(-10)))
    for step in LIFE:
        transact(store, step)
    store.writer.execute("DELETE FROM events WHERE seq <= 1500 OR seq BETWEEN 9000 AND 9500")
    assert transact(store, lambda tx: tx.log.of_job(JOB)) == transact(store, all_of_it)
