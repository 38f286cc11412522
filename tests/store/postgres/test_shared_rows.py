"""Events that share a row of the log: fewer rows are written, and each event is still found."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TypeVar

from tests.store.postgres.conftest import OpenStore
from tests.store.postgres.test_held_snapshot import Agent, warm_agent
from tests.support.running import run
from windlass.domain.lifecycle.states import NEW_CODE, State
from windlass.domain.rows.events import Event, Moves
from windlass.store.postgres.store import PostgresStore
from windlass.store.sql.statistics import Moved
from windlass.store.sql.transaction import ReadTx

T = TypeVar("T")
STATES = (State.QUEUED, State.ASSIGNED, State.RUNNING, State.COMPLETED)
QUEUED, ASSIGNED, RUNNING, COMPLETED = (state.code for state in STATES)
CLAIM = ((QUEUED, ASSIGNED), (ASSIGNED, RUNNING))
PATH = list(pairwise([NEW_CODE, QUEUED, ASSIGNED, RUNNING, COMPLETED]))
WIDE = 450  # more than fit into two rows
MAX_IN_ROW = 400


def moves(jobs: Sequence[int], *steps: tuple[int, int], attempts: Sequence[int] = ()) -> Moves:
    return Moves(1_000, 7, 1, steps, jobs, attempts or [1] * len(jobs))


async def some_moves(tx: ReadTx, after: int) -> Moved:
    return await tx.series.moves(after, 5_000, 100)


async def number_of_rows(store: PostgresStore) -> int:
    async with store.connection() as connection:
        found: int = await connection.fetchval("SELECT count(*) FROM events WHERE kind = 1")
        return found


async def events_of(store: PostgresStore) -> list[Event]:
    return await store.read(lambda tx: tx.log.read(0, 10_000))


def on_store(open_store: OpenStore, check: Callable[[PostgresStore], Awaitable[T]]) -> T:
    async def opened() -> T:
        async with open_store() as store:
            return await check(store)

    return run(opened())


def test_a_batch_of_plain_jobs_writes_three_rows(open_store: OpenStore) -> None:
    """One each for submit, claim and completion."""

    async def check() -> int:
        async with warm_agent(open_store) as agent:
            before = await number_of_rows(agent.store)
            for _ in range(4):
                await agent.sync()
            return await number_of_rows(agent.store) - before

    assert run(check()) == 4 * 3


def test_a_loop_reads_hardly_more_events_at_once_than_it_asks_for(open_store: OpenStore) -> None:
    """A row counts as often as it has events; one that begins within the count is read whole."""

    async def check(store: PostgresStore) -> list[list[int]]:
        for _ in range(3):
            await store.transact(lambda tx: tx.flow.log(moves(range(1, WIDE + 1), *CLAIM)))
        after = 0
        read: list[list[int]] = []
        while True:
            looked = await store.read(partial(some_moves, after=after))
            if looked.upto == after:
                return read
            read.append([move.seq for move in looked.moves])
            after = looked.upto

    read = on_store(open_store, check)
    assert [seq for chunk in read for seq in chunk] == list(range(1, 6 * WIDE + 1))
    assert max(map(len, read)) <= 100 + MAX_IN_ROW


def test_events_that_share_a_row_are_told_one_by_one(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> list[Event]:
        await store.transact(lambda tx: tx.flow.log(moves(range(1, WIDE + 1), *CLAIM)))
        assert await number_of_rows(store) == 3
        first = await store.read(lambda tx: tx.log.read(150, 300))
        assert [event.seq for event in first] == list(range(151, 451))
        return await events_of(store)

    told = on_store(open_store, check)
    assert [event.seq for event in told] == list(range(1, 2 * WIDE + 1))
    for job in (1, 200, 201, WIDE):
        its = [event for event in told if event.job == job]
        assert [(it.source, it.to, it.attempt, it.worker, it.at) for it in its] == [
            (*step, 1, 7, 1_000) for step in CLAIM
        ]


def test_jobs_on_different_attempts_share_a_row(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> list[tuple[int, int]]:
        done = moves([4, 5, 9], (RUNNING, COMPLETED), attempts=[2, 1, 7])
        await store.transact(lambda tx: tx.flow.log(done))
        assert await number_of_rows(store) == 1
        return [(event.job, event.attempt) for event in await events_of(store)]

    assert on_store(open_store, check) == [(4, 2), (5, 1), (9, 7)]


def test_numbers_that_another_transaction_drew_between_are_not_taken(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> list[tuple[int, int, int, int]]:
        async with store.connection() as connection:  # as if others drew each second one
            await connection.execute("ALTER SEQUENCE event_numbers INCREMENT BY 2")
        await store.transact(lambda tx: tx.flow.log(moves([8, 9], *CLAIM)))
        return [(it.seq, it.job, it.source, it.to) for it in await events_of(store)]

    assert on_store(open_store, check) == [
        (1, 8, *CLAIM[0]), (3, 9, *CLAIM[0]), (5, 8, *CLAIM[1]), (7, 9, *CLAIM[1]),
    ]  # fmt: skip


def test_events_whose_times_no_row_knows_keep_rows_of_their_own(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> int:
        freed = moves(range(1, 6), (State.BLOCKED.code, QUEUED))
        await store.transact(lambda tx: tx.flow.log(freed))
        assert [event.job for event in await store.read(lambda tx: tx.log.of_job(3))] == [3]
        return await number_of_rows(store)

    assert on_store(open_store, check) == 5


def test_what_is_removed_may_end_within_a_row(open_store: OpenStore) -> None:
    async def check(store: PostgresStore) -> list[Event]:
        await store.transact(lambda tx: tx.flow.log(moves(range(1, 101), *CLAIM)))
        before = await events_of(store)
        assert await store.transact(lambda tx: tx.retention.trim_events(130)) == 130
        assert await events_of(store) == before[130:]
        assert await store.transact(lambda tx: tx.retention.trim_events(150)) == 20
        assert await events_of(store) == before[150:]
        assert await store.read(lambda tx: tx.log.times([140, 151])) == {151: 1_000}
        assert await store.transact(lambda tx: tx.retention.trim_events(10_000)) == 49
        return await events_of(store)

    (newest,) = on_store(open_store, check)
    assert newest.seq == 200


async def history_of_the_first_job(agent: Agent) -> tuple[list[tuple[int, int]], int]:
    """Also returns how many statements found it, beside BEGIN, the time and COMMIT."""
    before = agent.store.statements
    found = await agent.store.transact(lambda tx: tx.log.of_job(1))
    return [(it.source, it.to) for it in found], agent.store.statements - before - 3


def test_the_history_of_a_job_is_found_without_reading_the_log(open_store: OpenStore) -> None:
    """By where the job stands and its times alone."""

    async def check() -> tuple[list[tuple[int, int]], int]:
        async with warm_agent(open_store) as agent:
            return await history_of_the_first_job(agent)

    assert run(check()) == (PATH, 2)


def test_the_history_of_a_job_whose_events_came_late_is_found(open_store: OpenStore) -> None:
    """Later than any transaction takes: it looks twice around the times, then everywhere."""

    async def check() -> tuple[list[tuple[int, int]], int]:
        async with warm_agent(open_store) as agent:
            async with agent.store.connection() as connection:
                await connection.execute("UPDATE events SET at = at + 3600000")
            return await history_of_the_first_job(agent)

    assert run(check()) == (PATH, 4)
