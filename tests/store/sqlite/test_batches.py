"""However a batch is written, it reads as if its rows had been written one by one."""

import threading
from pathlib import Path

import pytest

from tests.store.conformance.rows import grant
from tests.store.sqlite.driving import START_MS, close, open_store, read, transact
from tests.support.running import run
from windlass.domain.rows.records import Lease, NewJob, Ticket
from windlass.domain.values.ids import AttemptNo, JobId, ShapeId, WorkerId
from windlass.ports.loop_time import SMALL
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.sqlite.statements import WIDTHS, BulkInsert


@pytest.mark.parametrize("count", [0, 1, WIDTHS[1], WIDTHS[0] - 1, WIDTHS[0], 137])
def test_rows_of_every_number_are_inserted_in_order(tmp_path: Path, count: int) -> None:
    store = open_store(tmp_path / "windlass.db")
    rows = [(f"name {number:03}", number) for number in range(count)]
    insert = BulkInsert("INSERT INTO meta (name, value) VALUES (?, ?)")
    insert.run(store.writer, rows)
    assert list(read(store, lambda tx: tx.catalog.meta()).items()) == rows
    close(store)


def test_a_statement_that_cannot_be_widened_is_refused() -> None:
    with pytest.raises(ValueError, match="expected a statement that ends in VALUES"):
        BulkInsert("INSERT INTO meta (name, value) SELECT 1, 2")


TIMEOUTS = [(None, None), (500, None), (None, 300), (500, 300), (300, 500)]


@pytest.mark.parametrize("state", [3, 4])
@pytest.mark.parametrize("limit", [None, 6])
def test_leases_do_not_depend_on_whom_else_the_batch_serves(
    tmp_path: Path, state: int, limit: int | None
) -> None:
    """Grants for one worker are written by one statement, others by rows."""
    alike, apart = tmp_path / "alike.db", tmp_path / "apart.db"
    assert granted(alike, [9] * 5, state, limit) == granted(apart, [9, 9, 9, 9, 8], state, limit)


def granted(path: Path, workers: list[int], state: int, limit: int | None) -> list[Lease]:
    """The leases of jobs with each pair of timeouts, as if all were worker 9's."""
    store = open_store(path)

    async def work(tx: WriteTx) -> list[Lease]:
        tickets = [
            Ticket(ShapeId(1), 100 - job, JobId(job), AttemptNo(0), None, limit, None)
            for job in range(1, 6)
        ]
        await tx.jobs.insert([new_job(ticket) for ticket in tickets])
        await tx.places.add_ready(tickets)
        pairs = zip(tickets, workers, strict=True)
        grants = [grant(ticket, worker, 2, 3) for ticket, worker in pairs]
        told = await tx.leases.grant(grants, state, tx.now, 1_000)
        assert [(row.job, row.lease) for row in told] == [(job, job) for job in range(1, 6)]
        assert await tx.places.heads() == []
        return [
            row._replace(worker=WorkerId(9)) for row in (await tx.leases.lock(range(1, 6))).values()
        ]

    leases = transact(store, work)
    close(store)
    return leases


def new_job(ticket: Ticket) -> NewJob:
    timeout_ms, idle_ms = TIMEOUTS[ticket.job - 1]
    times = (START_MS, START_MS, ticket.limit, timeout_ms, idle_ms)
    return NewJob(ticket.job, ShapeId(1), None, 0, ticket.rank, 0, 0, *times, None, b"{}")


def test_what_lies_between_granted_jobs_stays_ready(tmp_path: Path) -> None:
    store = open_store(tmp_path / "windlass.db")

    async def work(tx: WriteTx) -> list[int]:
        tickets = [
            Ticket(ShapeId(1), 7, JobId(job), AttemptNo(0), None, None, None) for job in range(1, 6)
        ]
        await tx.jobs.insert([new_job(ticket) for ticket in tickets])
        await tx.places.add_ready(tickets)
        grants = [grant(ticket) for ticket in (tickets[3], tickets[0])]
        await tx.leases.grant(grants, 4, tx.now, 0)
        with pytest.raises(LookupError, match="expected 1 ready jobs, got 0"):
            await tx.leases.grant(grants[:1], 4, tx.now, 0)
        facts = await tx.jobs.read(range(1, 6))
        return [ticket.job for ticket in await tx.places.take_ready(list(facts.values()))]

    assert transact(store, work) == [2, 3, 5]
    close(store)


def test_a_read_of_many_rows_leaves_the_loop_to_others(tmp_path: Path) -> None:
    """It sees what was committed before, from a thread and a connection of its own."""
    store = open_store(tmp_path / "windlass.db")

    async def look(tx: ReadTx) -> tuple[bool, int, int]:
        ident = threading.get_ident()
        return ident == here, len(await tx.workflows.recount(1)), tx.now

    async def scenario() -> None:
        few, many = await store.read(look), await store.read(look, SMALL + 1)
        assert (few, many) == ((True, *few[1:]), (False, *few[1:]))

    here = threading.get_ident()
    run(scenario())
    close(store)
