"""Prove that two SQLite files hold the same rows in every table."""

from collections import Counter
from pathlib import Path
from typing import Any

import apsw


def expect_equal(one: Path, other: Path) -> None:
    """Raise, naming the first differences, unless all tables of both files are equal."""
    mine, its = _contents(one), _contents(other)
    for table in sorted(mine.keys() | its.keys()):
        missing = mine.get(table, Counter()) - its.get(table, Counter())
        extra = its.get(table, Counter()) - mine.get(table, Counter())
        if missing or extra:
            raise RuntimeError(
                f"{table}: {one.name} and {other.name} differ: "
                f"{list(missing)[:3]} against {list(extra)[:3]}"
            )


def _contents(path: Path) -> dict[str, "Counter[tuple[Any, ...]]"]:
    """All rows, without the numbers of events: their order between jobs is free."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall()
    contents: dict[str, Counter[tuple[Any, ...]]] = {}
    for (table,) in tables:
        skip = 1 if table == "events" else 0
        rows = connection.execute(f'SELECT * FROM "{table}"')
        contents[str(table)] = Counter(tuple(row[skip:]) for row in rows)
    connection.close()
    return contents
