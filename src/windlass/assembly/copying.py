"""Copies a whole store between SQLite and PostgreSQL: every table, with its ids, epochs and leases.

Rows travel in the form of PostgreSQL's tables; what SQLite keeps in another form is converted here.
Everything is written in one transaction, so an interrupted copy leaves the target empty. Then it is
read again: both sides must have the same rows. Nothing else may use either store meanwhile. At the
end the source is marked like a restored backup, so that no server continues with it beside the
target.
"""

import json
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import apsw
import msgspec

from windlass.assembly.stores import is_postgres, open_blobs, open_store, upgrade_store
from windlass.domain.lifecycle.states import State
from windlass.domain.values.errors import Conflict, InvalidInput, StoreUnavailable, needs
from windlass.ports.blobs import Blobs
from windlass.ports.loop_time import give_way
from windlass.store.sql.catalog import BACKUP
from windlass.store.sqlite.statements import pack, unpack

if TYPE_CHECKING:
    import asyncpg

CHUNK: Final = 2_000
COMPLETED: Final = State.COMPLETED.code
IDENTITY: Final = "identity"  # in `meta` of PostgreSQL, and not the same in two databases
# What only one database has: made from other tables, or about the database itself.
OWN: Final = frozenset({
    "bad_ends", "commits_even", "commits_odd", "injected_clock", "migrations", "outcomes",
    "sequences", "submitters", "timelines",
})  # fmt: skip
LISTS: Final = {"bigint[]", "integer[]", "text[]"}
EDGES: Final = ("dependents", "edges")
RENAMED: Final = {("events", "from"): "from_state", ("events", "to"): "to_state"}
# What lets events share a row on PostgreSQL; they are copied as rows of their own.
SHARED: Final = frozenset({("events", "via"), ("events", "jobs"), ("events", "attempts")})
# PostgreSQL has NULL where SQLite has 0.
ZEROS: Final = frozenset({("events", "worker"), ("events", "incarnation"), ("leases", "suspicion")})
# Of a job that has ended, SQLite keeps these in `outcomes`.
ENDED: Final = (
    "state", "flags", "attempt", "failed", "lost", "worker", "incarnation", "assigned_at",
    "started_at", "finished_at", "failure", "exit_code", "message", "reason", "result",
)  # fmt: skip
IN_BOTH: Final = ("flags", "attempt", "failed", "lost")

Row = Sequence[Any]


class Column(NamedTuple):
    """A column of PostgreSQL's table."""

    name: str
    kind: str


class TableCopied(NamedTuple):
    """A table that both sides have the same rows of."""

    name: str
    rows: int
    digest: str


class SqliteTables:
    """A file; an open store keeps other programs out of it."""

    def __init__(self, path: str) -> None:
        self._connection = apsw.Connection(path)
        self._connection.execute("BEGIN IMMEDIATE")

    async def used(self) -> bool:
        """Returns whether the store has anything that would be lost."""
        return any(
            self._connection.execute(f"SELECT EXISTS (SELECT 1 FROM {table})").get  # nosec B608
            for table in ("jobs", "events", "tokens")
        )

    async def read(self, table: str, columns: Sequence[Column]) -> AsyncIterator[list[Row]]:
        """Yields all rows of a table, in chunks."""
        names = ", ".join(_read_as(table, column.name) for column in columns)
        source = f"{table} AS t"
        if table == "jobs":
            source += " LEFT JOIN outcomes AS o ON o.job = t.id"
        cursor = self._connection.execute(f"SELECT {names} FROM {source}")  # nosec B608
        convert = [_from_sqlite(table, column) for column in columns]
        while chunk := list(islice(cursor, CHUNK)):
            yield [_converted(convert, row) for row in chunk]
            await give_way()

    async def write(self, table: str, columns: Sequence[Column], rows: list[Row]) -> None:
        if table == "counters":  # which name who counted
            columns, rows = [*columns, Column("server", "text")], [(*row, "s1") for row in rows]
        kept = [column for column in columns if _in_sqlite(table, column.name)]
        self._insert(table, table, kept, columns, rows)
        if table == "jobs":
            state = [column.name for column in columns].index("state")
            ended = [row for row in rows if row[state] is not None]
            both = [Column("job", ""), *(Column(name, "") for name in ENDED)]
            self._insert(table, "outcomes", both, columns, ended)

    def _insert(
        self, table: str, target: str, kept: Sequence[Column], columns: Sequence[Column],
        rows: Iterable[Row],
    ) -> None:  # fmt: skip
        """Writes these columns of rows of a table into a table of SQLite."""
        place = {column.name: number for number, column in enumerate(columns)}
        place["job"] = place.get("job", place.get("id", 0))
        chosen = [place[column.name] for column in kept]
        convert = [_to_sqlite(table, columns[number]) for number in chosen]
        names = ", ".join(RENAMED.get((table, column.name), column.name) for column in kept)
        marks = ", ".join("?" * len(kept))
        self._connection.executemany(
            f"INSERT INTO {target} ({names}) VALUES ({marks})",  # nosec B608
            (_converted(convert, [row[number] for number in chosen]) for row in rows),
        )

    async def clear(self, table: str) -> None:
        """Removes what an empty store has."""
        self._connection.execute(f"DELETE FROM {table}")  # nosec B608

    async def numbers(self) -> dict[str, int]:
        """Returns the last number of each sequence, by its name on PostgreSQL."""
        saved = dict(self._connection.execute("SELECT name, value FROM sequences"))
        others = saved.pop("", 0)
        found = {_sequence(name): value for name, value in saved.items()}
        for table, name in (("events", "event_numbers"), ("audit", "audit_ids")):
            column = "seq" if table == "events" else "id"
            newest = self._connection.execute(f"SELECT max({column}) FROM {table}").get  # nosec B608
            found[name] = max(found.get(name, 0), newest or 0)
        return found | {"": others}

    async def go_on_after(self, numbers: dict[str, int]) -> None:
        """Continues the sequences after these numbers."""
        rows = [(_name_of(name), value) for name, value in numbers.items() if value]
        self._connection.executemany("INSERT OR REPLACE INTO sequences VALUES (?, ?)", rows)

    async def retire(self) -> None:
        """Marks the store, so that no server continues with it."""
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, 1)", (BACKUP,))

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


class PostgresTables:
    """A database; the tables are locked against servers."""

    def __init__(self, connection: "asyncpg.Connection[Any]") -> None:
        self._connection = connection

    async def used(self) -> bool:
        found: bool = await self._connection.fetchval(
            "SELECT EXISTS (SELECT FROM jobs) OR EXISTS (SELECT FROM events)"
            " OR EXISTS (SELECT FROM tokens)"
        )
        return found

    async def columns(self) -> dict[str, list[Column]]:
        """Returns the columns of every table that both databases have."""
        rows = await self._connection.fetch(
            "SELECT c.relname, a.attname, format_type(a.atttypid, NULL) FROM pg_attribute a"
            " JOIN pg_class c ON c.oid = a.attrelid WHERE c.relkind = 'r' AND a.attnum > 0"
            " AND NOT a.attisdropped AND c.relnamespace = 'windlass'::regnamespace"
            " ORDER BY c.relname, a.attname"
        )
        found: dict[str, list[Column]] = {}
        for table, name, kind in rows:
            if table not in OWN and (table, name) not in SHARED:
                found.setdefault(table, []).append(Column(name, kind))
        return found

    async def read(self, table: str, columns: Sequence[Column]) -> AsyncIterator[list[Row]]:
        names = ", ".join(f'"{column.name}"' for column in columns)
        source = "each_event" if table == "events" else table
        cursor = await self._connection.cursor(f"SELECT {names} FROM {source}")  # nosec B608
        while chunk := await cursor.fetch(CHUNK):
            yield [tuple(row) for row in chunk]

    async def write(self, table: str, columns: Sequence[Column], rows: list[Row]) -> None:
        names = [column.name for column in columns]
        await self._connection.copy_records_to_table(
            table, records=rows, columns=names, schema_name="windlass"
        )
        if table == "jobs":
            state, job = names.index("state"), names.index("id")
            bad = [(row[job], row[state]) for row in rows if (row[state] or 0) > COMPLETED]
            await self._connection.copy_records_to_table(
                "bad_ends", records=bad, columns=["job", "state"], schema_name="windlass"
            )

    async def clear(self, table: str) -> None:
        await self._connection.execute(f"DELETE FROM {table}")  # nosec B608

    async def numbers(self) -> dict[str, int]:
        rows = await self._connection.fetch(
            "SELECT sequencename, coalesce(last_value, 0) FROM pg_sequences"
            " WHERE schemaname = 'windlass'"
        )
        return dict(map(tuple, rows))

    async def go_on_after(self, numbers: dict[str, int]) -> None:
        for name in await self.numbers():
            value = numbers.get(name, 0 if name == "shape_ids" else numbers.get("", 0))
            if value:
                await self._connection.execute("SELECT setval($1::text::regclass, $2)", name, value)

    async def retire(self) -> None:
        await self._connection.execute(
            "INSERT INTO meta (name, value) VALUES ($1, -1)"
            " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            IDENTITY,
        )


Side = SqliteTables | PostgresTables


def _in_sqlite(table: str, column: str) -> bool:
    """Returns whether SQLite's table of that name has the column."""
    return table != "jobs" or column not in ENDED or column in IN_BOTH


def _read_as(table: str, column: str) -> str:
    """Returns the expression that reads a column of PostgreSQL from SQLite."""
    if table == "jobs" and column in IN_BOTH:
        return f"ifnull(o.{column}, t.{column})"
    if table == "jobs" and column in ENDED:
        return f"nullif(o.{column}, 0)" if column == "failure" else f"o.{column}"
    if (table, column) in ZEROS:
        return f"nullif(t.{column}, 0)"
    return f"t.{RENAMED.get((table, column), column)}"


def _same(value: Any) -> Any:
    return value


def _from_sqlite(table: str, column: Column) -> Any:
    """Returns what makes PostgreSQL's value of SQLite's."""
    if (table, column.name) == EDGES:
        return lambda value: list(unpack(value))
    return json.loads if column.kind in LISTS else _same


def _to_sqlite(table: str, column: Column) -> Any:
    """Returns what makes SQLite's value of PostgreSQL's."""
    if (table, column.name) == EDGES:
        return pack
    if column.kind in LISTS:
        return lambda value: msgspec.json.encode(value).decode()
    if (table, column.name) in ZEROS or (table, column.name) == ("jobs", "failure"):
        return lambda value: value or 0
    return _same


def _converted(convert: Sequence[Any], row: Row) -> Row:
    return tuple(one(value) for one, value in zip(convert, row, strict=True))


def _summed(columns: Sequence[Column], rows: Iterable[Row]) -> list[Row]:
    """Returns each counter once, whoever counted."""
    place = [column.name for column in columns].index
    name, value = place("name"), place("value")
    sums: dict[str, int] = {}
    for row in rows:
        sums[row[name]] = sums.get(row[name], 0) + row[value]
    return [
        (its_name, total) if name < value else (total, its_name) for its_name, total in sums.items()
    ]


def _sequence(name: str) -> str:
    """Returns PostgreSQL's name for a sequence of SQLite."""
    return {"lease": "lease_numbers", "event": "event_numbers"}.get(name, f"{name}_ids")


def _name_of(sequence: str) -> str:
    return sequence.removesuffix("_ids").removesuffix("_numbers")


@asynccontextmanager
async def _opened(url: str) -> AsyncIterator[Side]:
    """Opens one side and keeps others out of it; commits unless an error ends it."""
    if not is_postgres(url):
        store = await open_store(url)
        tables = SqliteTables(urlsplit(url).path)
        try:
            yield tables
            tables.commit()
        finally:
            tables.close()
            await store.close()
        return
    with needs("postgres"):
        from windlass.store.postgres.connections import open_connection
    connection = await open_connection(url)
    try:
        async with connection.transaction(isolation="repeatable_read"):
            await _keep_others_out(connection)
            yield PostgresTables(connection)
    finally:
        await connection.close()


async def _keep_others_out(connection: "asyncpg.Connection[Any]") -> None:
    """Raises if servers use the database, and lets none write to it until the end."""
    listening = await connection.fetchval(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'windlass' AND query LIKE 'LISTEN %'"
    )
    if listening:
        raise Conflict("store_in_use", f"servers use the database: stop them first ({listening})")
    await connection.execute("LOCK TABLE meta, jobs, events, workers IN EXCLUSIVE MODE")


async def copy_store(source: str, target: str) -> list[TableCopied]:
    """Copies everything; raises `Conflict` if the target has jobs or either is in use."""
    if is_postgres(source) == is_postgres(target):
        expected = "an address of SQLite and one of PostgreSQL"
        raise InvalidInput("target", expected, f"{urlsplit(source).scheme} twice")
    await upgrade_store(target)
    async with _opened(source) as old:
        async with _opened(target) as new:
            copied = await _copy_tables(old, new)
        await old.retire()  # the target is committed
    return copied


async def _copy_tables(old: Side, new: Side) -> list[TableCopied]:
    """Copies all tables and reads them again."""
    if await new.used():
        message = "the target has jobs, events or tokens already: give an empty database"
        raise Conflict("target_used", message)
    either = new if isinstance(new, PostgresTables) else old
    assert isinstance(either, PostgresTables)
    columns = await either.columns()
    before = {table: await _copy_table(old, new, table, columns[table]) for table in columns}
    await new.go_on_after(await old.numbers())
    copied = [TableCopied(table, *await _sum_up(new, table, columns[table])) for table in columns]
    different = [one.name for one in copied if before[one.name] != one[1:]]
    if different:
        names = ", ".join(different)
        raise StoreUnavailable(f"the copy differs in {names}: nothing was copied", False)
    return copied


async def _copy_table(
    old: Side, new: Side, table: str, columns: Sequence[Column]
) -> tuple[int, str]:
    """Copies a table; returns how many rows it has, and their digest."""
    await new.clear(table)
    digest = _Digest()
    async for chunk in _belonging(old, table, columns):
        digest.add(chunk)
        await new.write(table, columns, chunk)
    return digest.result()


async def _sum_up(side: Side, table: str, columns: Sequence[Column]) -> tuple[int, str]:
    digest = _Digest()
    async for chunk in _belonging(side, table, columns):
        digest.add(chunk)
    return digest.result()


async def _belonging(side: Side, table: str, columns: Sequence[Column]) -> AsyncIterator[list[Row]]:
    """Yields the rows that are about the installation, and not about its database.

    Counters come added up: each database has other rows of one.
    """
    if table == "counters":
        yield _summed(columns, [row async for chunk in side.read(table, columns) for row in chunk])
        return
    name = [column.name for column in columns].index("name") if table == "meta" else None
    async for chunk in side.read(table, columns):
        yield [row for row in chunk if name is None or row[name] not in (IDENTITY, BACKUP)]


class _Digest:
    """A digest of rows in any order: the sum of the digests of each."""

    def __init__(self) -> None:
        self._rows = self._sum = 0

    def add(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self._rows += 1
            self._sum += int.from_bytes(sha256(msgspec.msgpack.encode(row)).digest(), "big")

    def result(self) -> tuple[int, str]:
        return self._rows, f"{self._sum % 2**256:064x}"


async def copy_blobs(source: Blobs, target: Blobs) -> tuple[int, int]:
    """Copies the blobs that the target lacks; returns how many, and their bytes."""
    there = {one.key: one.size async for one in target.list("")}
    count = size = 0
    async for one in source.list(""):
        if there.get(one.key) != one.size:
            count, size = count + 1, size + await target.put_stream(one.key, source.stream(one.key))
    return count, size


async def copy_all(
    source: str, target: str, blobs: tuple[str, str] | None
) -> tuple[list[TableCopied], tuple[int, int]]:
    """Copies the blobs, then the store: the target is complete when the source is given up."""
    files = (0, 0)
    if blobs is not None:
        old, new = map(open_blobs, blobs)
        try:
            files = await copy_blobs(old, new)
        finally:
            await old.close()
            await new.close()
    return await copy_store(source, target), files
