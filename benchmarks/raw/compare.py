"""Prove that two stores hold the same rows: what *same rows* writes is what the engine writes."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import apsw
import asyncpg

Contents = Mapping[str, "Counter[tuple[Any, ...]]"]

# The order of events between jobs is free, so their numbers are left out. The rows of workers tell
# the last sync and lease as of their last heartbeat.
SKIPPED = {"seq", "row_seq", "last_lease"}
# Two runs on the real clock differ in their times.
TIMES = {"at", "assigned_at", "started_at", "finished_at", "deadline_at", "last_seen",
         "enrolled_at"}  # fmt: skip


def expect_equal(one: Path, other: Path) -> None:
    """Raise, naming the first differences, unless all tables of both files are equal."""
    _expect_equal(_sqlite(one), _sqlite(other))


async def expect_equal_databases(one: str, other: str) -> None:
    """The same for two databases, but for the times and how counters are split."""
    _expect_equal(await _postgres(one), await _postgres(other))


def _expect_equal(mine: Contents, its: Contents) -> None:
    for table in sorted(mine.keys() | its.keys()):
        missing = mine.get(table, Counter()) - its.get(table, Counter())
        extra = its.get(table, Counter()) - mine.get(table, Counter())
        if missing or extra:
            raise RuntimeError(
                f"{table} differs: {list(missing)[:3]} against {list(extra)[:3]} "
                f"({missing.total()} and {extra.total()} rows)"
            )


def _sqlite(path: Path) -> Contents:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    contents: dict[str, Counter[tuple[Any, ...]]] = {}
    for (table,) in tables:
        skip = 1 if table == "events" else 0
        rows = connection.execute(f'SELECT * FROM "{table}"')
        contents[str(table)] = Counter(tuple(row[skip:]) for row in rows)
    connection.close()
    return contents


async def _postgres(dsn: str) -> Contents:
    connection = await asyncpg.connect(dsn, server_settings={"search_path": "windlass"})
    queries = {
        "jobs": "SELECT * FROM jobs",
        "ready": "SELECT * FROM ready",
        "leases": "SELECT * FROM leases",
        "workers": "SELECT * FROM workers",
        "events": "SELECT * FROM each_event WHERE kind = 1",
        "counters": "SELECT name, sum(value)::bigint FROM counters GROUP BY name",
    }
    contents: dict[str, Counter[tuple[Any, ...]]] = {}
    for table, query in queries.items():
        rows = await connection.fetch(query)
        contents[table] = Counter(
            tuple(value for name, value in row.items() if name not in SKIPPED | TIMES)
            for row in rows
        )
    await connection.close()
    return contents
