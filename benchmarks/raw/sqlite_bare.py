"""SQLite, *bare*: claim and complete alone, on one narrow table, in batches."""

from pathlib import Path
from typing import Any

import apsw

from benchmarks.measure import Lap, Watch
from windlass.store.sqlite.connection import open_writer

TABLES = """
CREATE TABLE jobs (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, worker INTEGER, body TEXT);
CREATE INDEX queued ON jobs (id) WHERE state = 0;
"""
FILL = """
WITH RECURSIVE n (id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM n WHERE id < ?)
INSERT INTO jobs (id, state, body) SELECT id, 0, '{"task":"noop"}' FROM n
"""
CLAIM = """
UPDATE jobs SET state = 1, worker = 1
WHERE id IN (SELECT id FROM jobs WHERE state = 0 ORDER BY id LIMIT ?) RETURNING id, body
"""
COMPLETE = "UPDATE jobs SET state = 2 WHERE id BETWEEN ? AND ? AND state = 1"


def run(path: Path, jobs: int, batch: int) -> Lap:
    """Jobs stand in the table; the time is that of claiming and completing them all."""
    connection = open_writer(path)
    connection.wal_autocheckpoint(1_000)
    connection.execute(TABLES)
    connection.execute(FILL, (jobs,))
    watch = Watch()
    while ids := _claim(connection, batch):
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(COMPLETE, (ids[0], ids[-1]))
        connection.execute("COMMIT")
    lap = watch.lap(jobs)
    left = connection.execute("SELECT count(*) FROM jobs WHERE state <> 2").fetchall()
    connection.close()
    if left != [(0,)]:
        raise RuntimeError(f"expected all {jobs} jobs complete, {left} are left")
    return lap


def _claim(connection: apsw.Connection, batch: int) -> list[int]:
    connection.execute("BEGIN IMMEDIATE")
    rows: list[Any] = connection.execute(CLAIM, (batch,)).fetchall()
    connection.execute("COMMIT")
    return [row[0] for row in rows]
