"""Workflows in bare SQL: the same tables, the rows that matter, and no rules.

What a program would write that trusts its input: jobs, places, packed edges and events, in
one transaction, with statements prepared once.
"""

from array import array
from collections.abc import Sequence
from pathlib import Path

import apsw

from benchmarks.measure import Lap, Watch
from windlass.store.sqlite.connection import create, open_writer

JOB = """
INSERT INTO jobs (id, shape, workflow, flags, rank, base, adjustment, age_from, created_at,
                  limit_id, timeout_ms, idle_ms, supersedes, spec)
VALUES (?, 1, ?, 0, 1, 0, 0, 1, 1, NULL, NULL, NULL, NULL, ?)
"""
READY = """
INSERT INTO ready (shape, rank, job, attempt, workflow, limit_id) VALUES (1, 1, ?, 0, ?, NULL)
"""
WAIT = """
INSERT INTO waits (job, unmet, manual, age_from, shape, rank, attempt, workflow,
                   limit_id)
VALUES (?, ?, 0, 1, 1, 1, 0, ?, NULL)
"""
EDGES = "INSERT INTO dependents (job, chunk, edges) VALUES (?, 0, ?)"
EVENT = """
INSERT INTO events (at, kind, job, attempt, worker, incarnation, from_state, to_state)
VALUES (1, 1, ?, 0, 0, 0, 0, ?)
"""
END_READY = "DELETE FROM ready WHERE workflow = ?1"
OUTCOMES = """
INSERT INTO outcomes (job, state, flags, attempt, failed, lost, worker, incarnation,
                      assigned_at, started_at, finished_at, failure, reason)
SELECT id, 10, 0, 0, 0, 0, NULL, NULL, NULL, NULL, 1, 0, 'stop' FROM jobs WHERE workflow = ?1
"""
ENDS = """
INSERT INTO events (at, kind, job, attempt, worker, incarnation, from_state, to_state, reason)
SELECT 1, 1, id, 0, 0, 0, 2, 10, 'stop' FROM jobs WHERE workflow = ?1
"""


def submit(path: Path, bodies: Sequence[bytes], needs: Sequence[Sequence[int]]) -> Lap:
    """Write jobs that wait for these others, given by their places."""
    connection = _open(path)
    watch = Watch()
    _write(connection, bodies, needs)
    lap = watch.lap(len(bodies))
    connection.close()
    return lap


def cancel(path: Path, bodies: Sequence[bytes]) -> Lap:
    """Cancel independent jobs of one workflow; their submit is not timed."""
    connection = _open(path)
    _write(connection, bodies, [()] * len(bodies))
    watch = Watch()
    connection.execute("BEGIN IMMEDIATE")
    for statement in (END_READY, OUTCOMES, ENDS):
        connection.execute(statement, (1,))
    connection.execute("COMMIT")
    lap = watch.lap(len(bodies))
    connection.close()
    return lap


def _write(
    connection: apsw.Connection, bodies: Sequence[bytes], needs: Sequence[Sequence[int]]
) -> None:
    dependents: list[list[int]] = [[] for _ in bodies]
    for number, wanted in enumerate(needs, 1):
        for other in wanted:
            dependents[other].append(number * 2)
    numbered = list(enumerate(bodies, 1))
    blocked = [(n, len(wanted), 1) for n, wanted in enumerate(needs, 1) if wanted]
    ready = [(n, 1) for n, wanted in enumerate(needs, 1) if not wanted]
    edges = [(n, array("q", its).tobytes()) for n, its in enumerate(dependents, 1) if its]
    connection.execute("BEGIN IMMEDIATE")
    connection.executemany(JOB, ((n, 1, body) for n, body in numbered))
    connection.executemany(READY, ready)
    connection.executemany(WAIT, blocked)
    connection.executemany(EDGES, edges)
    connection.executemany(EVENT, ((n, 1 if wanted else 2) for n, wanted in enumerate(needs, 1)))
    connection.execute("COMMIT")


def _open(path: Path) -> apsw.Connection:
    connection = open_writer(path)
    create(connection)
    return connection
