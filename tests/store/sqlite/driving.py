"""What the tests of the SQLite store share: a clock, a store in a folder, and many rows."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import apsw

from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.sqlite.store import SqliteStore

T = TypeVar("T")

START_MS = 1_700_000_000_000


class StandingClock:
    """Says what it was told."""

    def __init__(self, ms: int = START_MS) -> None:
        self.ms = ms

    def now_ms(self) -> int:
        return self.ms

    async def sleep_ms(self, duration_ms: int) -> None:
        self.ms += duration_ms


def open_store(
    path: Path, ms: int = START_MS, exclusive: bool = True, restored: bool = False
) -> SqliteStore:
    return SqliteStore.open(path, StandingClock(ms), exclusive=exclusive, restored=restored)


def transact(store: SqliteStore, work: Callable[[WriteTx], Awaitable[T]], rows: int = 0) -> T:
    return asyncio.run(store.transact(work, rows))


def read(store: SqliteStore, work: Callable[[ReadTx], Awaitable[T]]) -> T:
    return asyncio.run(store.read(work))


def close(store: SqliteStore) -> None:
    asyncio.run(store.close())


class Steps:
    """Counts the steps of SQLite's virtual machine, which do not depend on the hardware."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.count = 0
        connection.set_progress_handler(self._step, 1)

    def _step(self) -> bool:
        self.count += 1
        return False


def fill(path: Path, jobs: int) -> None:
    """Ready jobs of ten shapes, a tenth of them leased as well, and four events for each."""
    connection = apsw.Connection(str(path))
    rows = f"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {jobs})"
    with connection:
        connection.execute(
            f"{rows} INSERT INTO jobs (id, shape, workflow, flags, rank, base, adjustment,"
            " age_from, created_at, limit_id, timeout_ms, idle_ms, supersedes, spec)"
            " SELECT i, i % 10, NULL, 0, i, 0, 0, 0, 0, nullif(i % 3, 0), NULL, NULL, NULL, x'7b7d'"
            " FROM n"
        )
        connection.execute(
            "INSERT INTO ready SELECT shape, rank, id, 0, NULL, limit_id, NULL FROM jobs"
        )
        connection.execute(
            "INSERT INTO parked SELECT shape, rank, id, 0, NULL, id % 3, NULL FROM jobs"
        )
        connection.execute(
            "INSERT INTO leases (job, attempt, lease, worker, incarnation, state, assigned_at,"
            " started_at, deadline_at, timeout_ms, idle_ms, limit_id)"
            " SELECT id, 1, id, id % 20, 1, 4, 0, 0, id, NULL, NULL, NULL FROM jobs"
            " WHERE id % 10 = 0"
        )
        connection.execute(
            "INSERT INTO events (at, kind, job, attempt, worker, incarnation, from_state, to_state)"
            " SELECT id, 2, id, 0, 0, 0, 0, 0 FROM jobs, (VALUES (1), (2), (3), (4))"
        )
    connection.close()
