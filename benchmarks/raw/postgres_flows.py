"""Workflows on PostgreSQL in bare SQL: the same tables, the rows that matter, and no rules.

What a program would write that trusts its input: jobs, places, packed edges and events, in
one transaction, with columns as arrays.
"""

from collections.abc import Sequence
from typing import Any

import asyncpg

from benchmarks.measure import Lap, Watch

JOBS = """
INSERT INTO jobs (id, workflow, shape, flags, rank, base, adjustment, age_from, created_at, spec)
SELECT u.id, $3::bigint, 1, 0, 1, 0, 0, 1, 1, u.spec
FROM unnest($1::bigint[], $2::bytea[]) AS u (id, spec)
"""
READY = """
INSERT INTO ready (shape, rank, job, attempt, workflow)
SELECT 1, 1, u.id, 0, $2::bigint FROM unnest($1::bigint[]) AS u (id)
"""
WAITS = """
INSERT INTO waits (job, unmet, manual, age_from, shape, rank, attempt, workflow)
SELECT u.id, u.unmet, 0, 1, 1, 1, 0, $3::bigint
FROM unnest($1::bigint[], $2::integer[]) AS u (id, unmet)
"""
EVENTS = """
INSERT INTO events (at, kind, job, attempt, "from", "to")
SELECT 1, 1, u.id, 0, 0, u.state FROM unnest($1::bigint[], $2::smallint[]) AS u (id, state)
"""
EDGES = "INSERT INTO dependents (job, chunk, edges) VALUES ($1, 0, $2)"
END_PLACES = ("DELETE FROM ready WHERE workflow = $1", "DELETE FROM waits WHERE workflow = $1")
END_JOBS = """
WITH ended AS (
    UPDATE jobs SET state = 10, finished_at = 1, reason = 'stop'
    WHERE workflow = $1 AND state IS NULL
    RETURNING id, state
), listed AS (
    INSERT INTO bad_ends (job, state) SELECT id, state FROM ended
)
INSERT INTO events (at, kind, job, attempt, "from", "to", reason)
SELECT 1, 1, id, 0, 2, state, 'stop' FROM ended
"""
WORKFLOW = 1_000_000  # one that the engine has not made


async def submit(dsn: str, bodies: Sequence[bytes], needs: Sequence[Sequence[int]]) -> Lap:
    """Write jobs that wait for these others, given by their places."""
    connection = await _connect(dsn)
    watch = Watch()
    await _write(connection, bodies, needs)
    lap = watch.lap(len(bodies))
    await connection.close()
    return lap


async def cancel(dsn: str, bodies: Sequence[bytes]) -> Lap:
    """End independent jobs of one workflow; their submit is not timed."""
    connection = await _connect(dsn)
    await _write(connection, bodies, [()] * len(bodies))
    watch = Watch()
    async with connection.transaction():
        for statement in END_PLACES:
            await connection.execute(statement, WORKFLOW)
        await connection.execute(END_JOBS, WORKFLOW)
    lap = watch.lap(len(bodies))
    await connection.close()
    return lap


async def _write(
    connection: "asyncpg.Connection[Any]", bodies: Sequence[bytes], needs: Sequence[Sequence[int]]
) -> None:
    first = WORKFLOW
    ids = range(first, first + len(bodies))
    dependents: dict[int, list[int]] = {}
    for number, wanted in zip(ids, needs, strict=True):
        for other in wanted:
            dependents.setdefault(first + other, []).append(number * 2)
    blocked = [(n, len(wanted)) for n, wanted in zip(ids, needs, strict=True) if wanted]
    ready = [n for n, wanted in zip(ids, needs, strict=True) if not wanted]
    async with connection.transaction():
        await connection.execute(JOBS, list(ids), list(bodies), WORKFLOW)
        await connection.execute(READY, ready, WORKFLOW)
        if blocked:
            waiting, unmet = zip(*blocked, strict=True)
            await connection.execute(WAITS, waiting, unmet, WORKFLOW)
        if dependents:
            await connection.executemany(EDGES, dependents.items())
        states = [1 if wanted else 2 for wanted in needs]
        await connection.execute(EVENTS, list(ids), states)


async def _connect(dsn: str) -> "asyncpg.Connection[Any]":
    return await asyncpg.connect(dsn, server_settings={"jit": "off"})
