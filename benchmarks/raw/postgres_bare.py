"""PostgreSQL, *bare*: claim and complete alone, on one narrow table, in batches."""

from typing import Any

import asyncpg

TABLES = """
CREATE TABLE bare (id bigint PRIMARY KEY, state smallint NOT NULL, worker bigint, body text)
    WITH (fillfactor = 50);
CREATE INDEX bare_queued ON bare (id) WHERE state = 0;
"""
FILL = """
INSERT INTO bare SELECT n, 0, NULL, '{"task":"noop"}' FROM generate_series(1, $1::bigint) AS s (n)
"""
CLAIM = """
UPDATE bare SET state = 1, worker = 1 WHERE id = ANY (ARRAY(
    SELECT id FROM bare WHERE state = 0 ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED
)) RETURNING id, body
"""
COMPLETE = "UPDATE bare SET state = 2 WHERE id = ANY ($1::bigint[]) AND state = 1"


async def fill(dsn: str, jobs: int) -> None:
    """Make the table and put jobs into it."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(TABLES)
    await connection.execute(FILL, jobs)
    await connection.execute("VACUUM (ANALYZE) bare")
    await connection.close()


class BareWorker:
    """One connection that claims and completes, each in its own transaction."""

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection

    @classmethod
    async def connect(cls, dsn: str) -> "BareWorker":
        settings = {"enable_seqscan": "off", "jit": "off", "plan_cache_mode": "force_generic_plan"}
        return cls(await asyncpg.connect(dsn, server_settings=settings))

    async def close(self) -> None:
        await self._connection.close()

    async def drain(self, batch: int) -> int:
        """Claim and complete until nothing is left; how many jobs."""
        jobs = 0
        while rows := await self._connection.fetch(CLAIM, batch):
            await self._connection.execute(COMPLETE, [row[0] for row in rows])
            jobs += len(rows)
        return jobs
