"""What a sync reads and writes while a snapshot held open elsewhere keeps every dead row."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from tests.store.postgres.conftest import OpenStore
from tests.support.running import run
from windlass.clock import RealChance
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.messages.sync import Finished, SyncRequest
from windlass.store.fast_path import FastPathRules, PlainSync, PlainSynced
from windlass.store.postgres.connections import open_connection
from windlass.store.postgres.fast_path import PostgresFastPath, _sync_args
from windlass.store.postgres.session import QUERIES
from windlass.store.postgres.store import PostgresStore

JOBS = 10  # that a sync ends, and gets
DEAD = 20_000
ENDED = f"""
    INSERT INTO leases (job, lease, worker, incarnation, assigned_at, attempt, state)
    SELECT 1000000 + n, nextval('lease_numbers'), min(w.id), 1, 0, 1, 1
    FROM workers w, generate_series(1, {DEAD}) n GROUP BY n
"""
UPDATED = "SELECT relname, n_tup_upd FROM pg_stat_user_tables WHERE n_tup_upd > 0"


class Agent:
    """A worker that ends with each sync what the one before gave it."""

    def __init__(self, store: PostgresStore) -> None:
        self.store = store
        self.engine = Engine(store, Config(), RealChance())
        self._seq = 0
        self._received = 0
        self._done: Sequence[Finished] = ()

    async def enrol(self) -> None:
        await self.engine.start()
        enrolled = await self.engine.workers.enrol(Enrolment(name="w", slots=JOBS))
        self._worker, self._incarnation = enrolled.worker, enrolled.incarnation

    async def sync(self) -> None:
        """Submits jobs, ends those of the last sync and claims the new ones."""
        await self.engine.submit([JobSpec(task="t")] * JOBS)
        self._seq += 1
        request = SyncRequest(
            incarnation=self._incarnation,
            seq=self._seq,
            received=self._received,
            finished=tuple(self._done),
            want=JOBS,
        )
        reply = await self.engine.sync(self._worker, request)
        assert len(reply.jobs) == JOBS
        self._received = reply.jobs[-1].lease
        self._done = [Finished(job.job, job.attempt) for job in reply.jobs]


@asynccontextmanager
async def warm_agent(open_store: OpenStore) -> AsyncIterator[Agent]:
    """An agent whose syncs take the fast path, on a store with one connection."""
    async with open_store("s1", pool_open=1) as store:
        agent = Agent(store)
        await agent.enrol()
        for _ in range(3):
            await agent.sync()
        yield agent
        await agent.engine.close()


async def pages_of_a_sync(agent: Agent, dsn: str) -> int:
    """Returns how many pages the next sync reads, from a rehearsal that is rolled back."""
    found: list[int] = []
    hot = agent.store.fast_path
    assert isinstance(hot, PostgresFastPath)
    run_sync = hot.sync

    async def sync(asked: PlainSync, rules: FastPathRules) -> PlainSynced | None:
        found.append(await _rehearse(dsn, (0, *_sync_args(asked, rules))))
        return await run_sync(asked, rules)

    setattr(hot, "sync", sync)  # noqa: B010
    await agent.sync()
    setattr(hot, "sync", run_sync)  # noqa: B010
    (pages,) = found
    return pages


async def _rehearse(dsn: str, args: Sequence[object]) -> int:
    connection: asyncpg.Connection[Any] = await open_connection(dsn)
    query = f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {QUERIES['sync_plain']}"
    try:
        for _ in range(2):  # the first also reads the catalogue
            await connection.execute("BEGIN; SELECT nextval('event_numbers')")  # for `currval`
            found: dict[str, Any] = json.loads(await connection.fetchval(query, *args))[0]["Plan"]
            await connection.execute("ROLLBACK")
    finally:
        await connection.close()
    pages: int = found["Shared Hit Blocks"] + found["Shared Read Blocks"]
    return pages


def test_a_sync_does_not_pass_the_dead_entries_of_ended_leases(
    open_store: OpenStore, postgres_dsn: str
) -> None:
    async def check() -> tuple[int, int]:
        async with warm_agent(open_store) as agent:
            holder = await open_connection(postgres_dsn)
            await holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM meta")
            before = await pages_of_a_sync(agent, postgres_dsn)
            async with agent.store.connection() as connection:
                await connection.execute(ENDED)
                await connection.execute("DELETE FROM leases WHERE job > 1000000")
            await agent.sync()
            after = await pages_of_a_sync(agent, postgres_dsn)
            await holder.close()
        return before, after

    before, after = run(check())
    assert after < before + 100, (before, after)  # some trees are a level deeper now


def test_a_sync_updates_only_the_rows_of_its_jobs(open_store: OpenStore) -> None:
    """A row that each sync updates would leave a chain of dead versions for the next to walk."""

    async def check() -> dict[str, int]:
        async with warm_agent(open_store) as agent:
            before = await _updates(agent.store)
            for _ in range(3):
                await agent.sync()
            after = await _updates(agent.store)
        grown = {table: after[table] - before.get(table, 0) for table in after}
        return {table: count for table, count in grown.items() if count}

    assert run(check()) == {"jobs": 3 * JOBS}


async def _updates(store: PostgresStore) -> dict[str, int]:
    async with store.connection() as connection:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        return {row[0]: row[1] for row in await connection.fetch(UPDATED)}
