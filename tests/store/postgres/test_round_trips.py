"""Round trips for each command, however many jobs it moves; and what a read may not do."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar, cast

import pytest

import windlass.store
from tests.store.conformance.rows import completion, grant, new_job
from tests.store.postgres.conftest import OpenStore
from tests.support.running import run
from windlass.domain.rows.events import Moves
from windlass.domain.rows.records import QueueRow
from windlass.domain.values.errors import StoreUnavailable
from windlass.messages.sync import Assignment
from windlass.store.postgres.session import QUERIES
from windlass.store.postgres.store import PostgresStore
from windlass.store.sql.places import Probe
from windlass.store.sql.transaction import ReadTx, WriteTx

T = TypeVar("T")


async def submit(tx: WriteTx) -> None:
    ids = await tx.jobs.allocate(300)
    await tx.flow.enter([new_job(job, workflow=None, limit=None) for job in ids])
    await tx.flow.log(Moves(tx.now, 0, 0, ((0, 2),), ids, [0] * 300))


async def claim(tx: WriteTx) -> list[Assignment]:
    tickets = await tx.places.peek([Probe(1, 0, 0, 300)])
    grants = [grant(row) for row in tickets]
    granted = await tx.leases.grant(grants, 4, tx.now, 1_000)
    jobs = [row.job for row in granted]
    await tx.flow.log(Moves(tx.now, 1, 1, ((2, 3), (3, 4)), jobs, [1] * len(jobs)))
    return granted


async def counted(store: PostgresStore, work: Callable[[WriteTx], Awaitable[T]]) -> tuple[int, T]:
    before = store.statements
    result = await store.transact(work)
    return store.statements - before, result


def test_each_command_takes_six_round_trips(open_store: OpenStore) -> None:
    async def check() -> None:
        async with open_store() as store:
            trips, _ = await counted(store, submit)
            assert trips == 6  # BEGIN, now, allocate, enter, log, COMMIT
            trips, granted = await counted(store, claim)
            assert (trips, len(granted)) == (6, 300)  # BEGIN, now, peek, grant, log, COMMIT

            async def finish(tx: WriteTx) -> list[int]:
                done = [completion(row.job, 1, 1, 1, 0, b"{}") for row in granted]
                ids = await tx.flow.complete(tx.now, done)
                await tx.flow.log(Moves(tx.now, 1, 1, ((4, 8),), ids, [1] * len(ids)))
                return ids

            trips, ids = await counted(store, finish)
            assert (trips, len(ids)) == (6, 300)  # BEGIN, now, lock, complete, log, COMMIT
            events = await store.read(lambda tx: tx.log.read(0, 2_000))
            assert [event.seq for event in events] == list(range(1, 1_201))

    run(check())


def test_a_read_can_neither_write_nor_lock(open_store: OpenStore) -> None:
    async def write(tx: ReadTx) -> None:
        await cast(WriteTx, tx).catalog.put_queue(QueueRow("live", 100, 0))

    async def lock(tx: ReadTx) -> None:
        await cast(WriteTx, tx).workers.lock([1])

    async def check() -> None:
        async with open_store() as store:
            for forbidden in (write, lock):
                with pytest.raises(StoreUnavailable, match="read-only transaction"):
                    await store.read(forbidden)
            assert (await store.snapshot()).queues == ()

    run(check())


def test_every_statement_is_used() -> None:
    folder = Path(windlass.store.__file__).parent
    paths = list(folder.rglob("*.py"))
    code = "\n".join(path.read_text() for path in paths)
    assert [name for name in QUERIES if f'"{name}"' not in code] == []
