"""What commands cost on SQLite, in statements and rows, whatever the machine."""

import asyncio
from pathlib import Path
from typing import Any

import apsw
import pytest

from tests.counts.counting import Counted, Sent, counted_sqlite, specs
from tests.support.running import run
from windlass.client.service import fresh_key
from windlass.clock import RealChance, RealClock
from windlass.domain.config import Config
from windlass.engine.engine import Engine
from windlass.store.sqlite.store import SqliteStore

# Rows a statement binds at once (BulkInsert): the only thing that grows with a batch.
BULK = 25

SYNC_STATEMENTS = 24  # finish 100 and claim 100, 4 of them the outcomes in bulk
# Each transaction asks whether another process has written (docs/decisions/004).
SUBMIT_STATEMENTS = 11  # of 100 jobs, 4 of them the jobs in bulk
KEYED_STATEMENTS = 9  # of one job; the one with the key among them
KEYED_PAGES = 0.5  # a submission, 100 callers at once
IDLE_STATEMENTS = 5  # a heartbeat: BEGIN, the version, the worker, what it is to stop, COMMIT

SUBMIT_ROWS = 3  # job, ready, event
CLAIM_ROWS = 4  # ready removed, lease, two events
FINISH_ROWS = 3  # lease removed, outcome, event
OVERHEAD_ROWS = 6  # of a transaction: counters, sequences, the worker's beat


def cost_of_sync(path: Path, queued: int, jobs: int) -> Sent:
    async def go() -> Sent:
        async with counted_sqlite(path) as counted:
            await counted.fill(queued)
            await counted.sync(jobs)
            return await counted.sync(jobs)

    return run(go())


def cost_of_submit(path: Path, jobs: int) -> Sent:
    async def go() -> Sent:
        async with counted_sqlite(path) as counted:
            await counted.fill(100)
            return await counted.submit(jobs)

    return run(go())


def test_a_submission_with_a_key_does_not_read_the_key_back(tmp_path: Path) -> None:
    async def go() -> Sent:
        async with counted_sqlite(tmp_path / "a.db") as counted:
            await counted.fill(100)
            with counted.counting() as sent:
                await counted.engine.submit(specs(1), key=fresh_key())
        return sent[0]

    sent = run(go())
    assert len(sent.statements) <= KEYED_STATEMENTS, sent.statements


def test_keys_of_many_callers_share_pages(tmp_path: Path) -> None:
    """Random keys took a page a submission here, and more in a larger file."""

    async def go() -> float:
        store = SqliteStore.open(tmp_path / "a.db", RealClock())
        engine = Engine(store, Config(), RealChance())
        await engine.start()

        async def submit(callers: int) -> None:
            calls = (engine.submit(specs(1), key=fresh_key()) for _ in range(callers))
            await asyncio.gather(*calls)

        def written() -> int:
            return int(store.writer.status(apsw.SQLITE_DBSTATUS_CACHE_WRITE)[0])

        for _ in range(20):
            await submit(200)
        before = written()
        for _ in range(5):
            await submit(100)
        pages = written() - before
        await engine.close()
        await store.close()
        return pages / 500

    assert run(go()) <= KEYED_PAGES


def test_a_sync_of_100_needs_few_statements(tmp_path: Path) -> None:
    sent = cost_of_sync(tmp_path / "a.db", 1_000, 100)
    assert len(sent.statements) <= SYNC_STATEMENTS, sent.statements


def test_a_sync_does_not_feel_the_length_of_the_queue(tmp_path: Path) -> None:
    short = cost_of_sync(tmp_path / "short.db", 1_000, 100)
    long = cost_of_sync(tmp_path / "long.db", 10_000, 100)
    assert short == long


@pytest.mark.parametrize("jobs", [25, 100, 500])
def test_only_bulk_inserts_grow_with_a_sync(tmp_path: Path, jobs: int) -> None:
    sent = cost_of_sync(tmp_path / "a.db", 2_000, jobs)
    assert len(sent.statements) <= SYNC_STATEMENTS - 100 // BULK + jobs // BULK, sent.statements
    assert sent.count("INSERT INTO outcomes") == jobs // BULK


@pytest.mark.parametrize("jobs", [100, 500])
def test_a_submit_needs_few_statements(tmp_path: Path, jobs: int) -> None:
    sent = cost_of_submit(tmp_path / "a.db", jobs)
    assert len(sent.statements) <= SUBMIT_STATEMENTS - 100 // BULK + jobs // BULK, sent.statements


@pytest.mark.parametrize("jobs", [1, 100, 500])
def test_a_job_costs_ten_rows_and_a_transaction_a_few_more(tmp_path: Path, jobs: int) -> None:
    submitted = cost_of_submit(tmp_path / "submit.db", jobs).rows
    synced = cost_of_sync(tmp_path / "sync.db", 2_000, jobs).rows
    assert 0 <= submitted - jobs * SUBMIT_ROWS <= OVERHEAD_ROWS
    assert 0 <= synced - jobs * (CLAIM_ROWS + FINISH_ROWS) <= OVERHEAD_ROWS


def test_a_heartbeat_writes_nothing_soon_after_another(tmp_path: Path) -> None:
    async def go() -> Sent:
        async with counted_sqlite(tmp_path / "a.db") as counted:
            await counted.sync(0)
            return await counted.sync(0)

    sent = run(go())
    assert sent.rows == 0
    assert len(sent.statements) <= IDLE_STATEMENTS, sent.statements


def test_every_command_is_one_transaction(tmp_path: Path) -> None:
    submit = cost_of_submit(tmp_path / "submit.db", 100)
    sync = cost_of_sync(tmp_path / "sync.db", 1_000, 100)
    assert [sent.count("COMMIT") for sent in (submit, sync)] == [1, 1]


def test_one_caller_starts_no_task(tmp_path: Path) -> None:
    async def go() -> int:
        started = 0

        def start(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
            nonlocal started
            started += 1
            return asyncio.Task(work, loop=loop, **options)

        async with counted_sqlite(tmp_path / "a.db") as counted:
            await counted.fill(10)
            asyncio.get_running_loop().set_task_factory(start)
            await counted.submit(1)
            asyncio.get_running_loop().set_task_factory(None)
        return started

    assert run(go()) == 0


def test_64_callers_share_a_transaction(tmp_path: Path) -> None:
    async def submit(counted: Counted) -> Sent:
        with counted.counting() as sent:
            await asyncio.gather(*(counted.engine.submit(specs(1)) for _ in range(64)))
        return sent[0]

    async def go() -> Sent:
        async with counted_sqlite(tmp_path / "a.db") as counted:
            await counted.fill(10)
            return await submit(counted)

    sent = run(go())
    assert sent.count("COMMIT") == 1
    assert sent.count("INSERT INTO jobs") <= 64 // BULK + 64 % BULK // 5 + 64 % 5
