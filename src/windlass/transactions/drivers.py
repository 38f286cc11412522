"""Recognizes a user's connection and sends statements through its driver.

Drivers are recognized by the modules of their classes and never imported here unless the user has.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from windlass.domain.values.errors import InvalidInput
from windlass.transactions.statements import Rows, Statement

_PARAMETER: Final = re.compile(r":([a-z]+)")
POSTGRESQL: Final = "postgresql"
SQLITE: Final = "sqlite"
SUPPORTED: Final = (
    "a connection of psycopg 3, asyncpg, sqlite3, aiosqlite or apsw, a connection or session of "
    "SQLAlchemy, or a connection of Django"
)


class Driver(NamedTuple):
    """How to send statements over one connection; `run_async` is set for async drivers."""

    database: str
    run: Callable[[Statement], Rows] | None = None
    run_async: Callable[[Statement], Awaitable[Rows]] | None = None
    own_library: bool = False  # the SQLite library that the engine uses


def find_driver(connection: Any) -> Driver:
    """Returns the driver of a connection; raises `InvalidInput` for anything else."""
    for kind in type(connection).__mro__:
        make = _MAKERS.get(kind.__module__.partition(".")[0])
        found = make(connection, kind) if make is not None else None
        if found is not None:
            return found
    raise InvalidInput("connection", SUPPORTED, repr(type(connection)))


def _psycopg(connection: Any, kind: type) -> Driver | None:
    from psycopg.rows import tuple_row

    def run(statement: Statement) -> Rows:
        with connection.cursor(row_factory=tuple_row) as cursor:
            cursor.execute(_pyformat(statement.text), statement.values)
            rows: Rows = cursor.fetchall()
            return rows

    async def run_async(statement: Statement) -> Rows:
        async with connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(_pyformat(statement.text), statement.values)
            rows: Rows = await cursor.fetchall()
            return rows

    if kind.__name__ == "AsyncConnection":
        return Driver(POSTGRESQL, run_async=run_async)
    return Driver(POSTGRESQL, run) if kind.__name__ == "Connection" else None


def _asyncpg(connection: Any, kind: type) -> Driver | None:
    async def run_async(statement: Statement) -> Rows:
        names = _PARAMETER.findall(statement.text)
        numbers = iter(range(1, len(names) + 1))
        text = _PARAMETER.sub(lambda _: f"${next(numbers)}", statement.text)
        rows: Rows = await connection.fetch(text, *(statement.values[name] for name in names))
        return rows

    known = kind.__name__ in ("Connection", "PoolConnectionProxy")
    return Driver(POSTGRESQL, run_async=run_async) if known else None


def _sqlalchemy(connection: Any, kind: type) -> Driver | None:
    from sqlalchemy import text

    def run(statement: Statement) -> Rows:
        result = connection.execute(text(statement.text), dict(statement.values))
        return [tuple(row) for row in result] if result.returns_rows else []

    async def run_async(statement: Statement) -> Rows:
        result = await connection.execute(text(statement.text), dict(statement.values))
        return [tuple(row) for row in result] if result.returns_rows else []

    name = kind.__name__
    if name not in _SQLALCHEMY:
        return None
    bound = connection if name.endswith("Connection") else connection.get_bind()
    database: str = bound.dialect.name
    if database not in (POSTGRESQL, SQLITE):
        raise InvalidInput("connection", "a connection to PostgreSQL or SQLite", database)
    if name.lower().startswith("async"):
        return Driver(database, run_async=run_async)
    return Driver(database, run)


_SQLALCHEMY: Final = frozenset(
    {"Connection", "Session", "scoped_session", "AsyncConnection", "AsyncSession",
     "async_scoped_session"}
)  # fmt: skip


def _django(connection: Any, _kind: type) -> Driver | None:
    def run(statement: Statement) -> Rows:
        with connection.cursor() as cursor:
            cursor.execute(_pyformat(statement.text), statement.values)
            rows: Rows = cursor.fetchall() if cursor.description else []
            return rows

    database = getattr(connection, "vendor", None)
    if database is None:
        return None
    if database not in (POSTGRESQL, SQLITE):
        raise InvalidInput("connection", "a connection to PostgreSQL or SQLite", database)
    return Driver(database, run)


def _sqlite3(connection: Any, kind: type) -> Driver | None:
    def run(statement: Statement) -> Rows:
        cursor = connection.cursor()
        cursor.row_factory = None
        rows: Rows = cursor.execute(statement.text, statement.values).fetchall()
        cursor.close()
        return rows

    return Driver(SQLITE, run) if kind.__name__ == "Connection" else None


def _aiosqlite(connection: Any, kind: type) -> Driver | None:
    async def run_async(statement: Statement) -> Rows:
        async with connection.execute(statement.text, statement.values) as cursor:
            return [tuple(row) for row in await cursor.fetchall()]

    return Driver(SQLITE, run_async=run_async) if kind.__name__ == "Connection" else None


def _apsw(connection: Any, kind: type) -> Driver | None:
    def run(statement: Statement) -> Rows:
        rows: Rows = connection.execute(statement.text, statement.values).fetchall()
        return rows

    return Driver(SQLITE, run, own_library=True) if kind.__name__ == "Connection" else None


def _pyformat(text: str) -> str:
    return _PARAMETER.sub(r"%(\1)s", text)


_MAKERS: Final[dict[str, Callable[[Any, type], Driver | None]]] = {
    "aiosqlite": _aiosqlite,
    "apsw": _apsw,
    "asyncpg": _asyncpg,
    "django": _django,
    "psycopg": _psycopg,
    "sqlalchemy": _sqlalchemy,
    "sqlite3": _sqlite3,
}
