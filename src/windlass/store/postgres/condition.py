"""Examines a PostgreSQL database for `windlass doctor`: what may lose commits, and what makes it
slow.
"""

import asyncio
import statistics
from collections.abc import AsyncIterator
from typing import Any, Final, Literal, NamedTuple

import asyncpg

from windlass.domain.values.addresses import without_password
from windlass.domain.values.quantities import counted, readable_duration, readable_size
from windlass.store.postgres.connections import addresses, is_pooled, open_connection
from windlass.store.postgres.failures import raise_as_unavailable
from windlass.store.postgres.migrate import OLDEST
from windlass.store.postgres.session import QUERIES

State = Literal["ok", "note", "problem"]
Found = tuple[str, State, str]

LONG_S: Final = 300  # a transaction
TOO_LONG_S: Final = 3_600
SLOW_MS: Final = 5.0  # a round trip
MAX_LAG: Final = 64 * 1024**2  # bytes of WAL
MAX_DEAD: Final = 1_000_000  # dead rows; only counts if there are more dead than live ones
ROUND_TRIPS: Final = 5


class _Condition(NamedTuple):
    """A row of `condition`."""

    version: str
    standby: bool
    fsync: bool
    full_page_writes: bool
    waits_for_disk: bool
    autovacuum: bool
    waits_for_standby: bool
    places: int
    sees_all: bool


async def examine(dsn: str, pool_open: int) -> list[Found]:
    """Returns findings; `pool_open` is how many connections each server may have in use.

    Raises `StoreUnavailable`.
    """
    try:
        connection = await open_connection(dsn)
        try:
            return [found async for found in _examine(connection, dsn, pool_open)]
        finally:
            await connection.close()
    except Exception as error:
        raise_as_unavailable(error)


async def _examine(
    connection: "asyncpg.Connection[Any]", dsn: str, pool_open: int
) -> AsyncIterator[Found]:
    condition = _Condition(*(await connection.fetch(QUERIES["condition"]))[0])
    yield _version(condition, dsn)
    yield await _pooler(connection, dsn)
    yield _durability(condition)
    clients = (await connection.fetch(QUERIES["clients"]))[0]
    yield judge_connections(*clients, places=condition.places, pool_open=pool_open)
    dead = await connection.fetch(QUERIES["dead_rows"])
    yield judge_autovacuum(condition.autovacuum, [tuple(row) for row in dead])
    if not condition.standby:
        standbys = await connection.fetch(QUERIES["standbys"])
        yield judge_replication([tuple(row) for row in standbys], condition.waits_for_standby)
    yield await _transactions(connection)
    yield await _round_trip(connection)
    if not condition.sees_all:
        remedy = "`GRANT pg_read_all_stats TO` this role shows it transactions and standbys of all"
        yield "postgresql rights", "note", remedy


def _version(condition: _Condition, dsn: str) -> Found:
    where = without_password(dsn)
    major = int(condition.version.partition(".")[0])
    if major < OLDEST:
        return "postgresql", "problem", f"{where} is version {major}; expected {OLDEST} or newer"
    if condition.standby:
        return "postgresql", "problem", f"{where} is a standby: servers need the primary"
    return "postgresql", "ok", f"{condition.version} at {where}"


async def _pooler(connection: "asyncpg.Connection[Any]", dsn: str) -> Found:
    """Reports whether a pooler answers, and whether servers can bypass it."""
    name = "postgresql pooler"
    if not is_pooled(connection):
        return name, "ok", "none: servers connect directly"
    address, direct = addresses(dsn)
    if direct == address:
        advice = "add ?direct=HOST:PORT, or servers hear of each other once a second only"
        return name, "note", f"a pooler answers: {advice}"
    shown = without_password(direct)
    try:
        past = await open_connection(direct)
    except (OSError, asyncpg.PostgresError) as error:
        return name, "problem", f"cannot connect to {shown}: {error}"
    try:
        if is_pooled(past):
            return name, "note", f"the way past the pooler, {shown}, leads to a pooler"
        same = await past.fetchval(QUERIES["identity"]) == await connection.fetchval(
            QUERIES["identity"]
        )
    finally:
        await past.close()
    if not same:
        return name, "problem", f"{shown} is another database than the pooler's"
    return name, "ok", f"a pooler answers; servers hear of each other at {shown}"


def _durability(condition: _Condition) -> Found:
    """Reports whether a crash can lose acknowledged commits, or damage the database."""
    off = [
        setting
        for setting, on in (
            ("fsync", condition.fsync),
            ("full_page_writes", condition.full_page_writes),
            ("synchronous_commit", condition.waits_for_disk),
        )
        if not on
    ]
    if off:
        detail = f"{', '.join(off)}: off, so a crash loses acknowledged jobs; switch it on"
        return "postgresql commits", "problem", detail
    return "postgresql commits", "ok", "are on disk when they are acknowledged"


def judge_connections(
    clients: int, ours: int, listening: int, *, places: int, pool_open: int
) -> Found:
    """Compares the connections that all servers may use with those that PostgreSQL offers to roles
    without privileges.
    """
    each = pool_open + 1
    others = clients - ours
    needed = listening * each + others
    use = f"{clients} of {places} used, {ours} by Windlass"
    if not listening:
        fit = max(0, places - others) // each
        return "postgresql connections", "ok", f"{use}; {counted(fit, 'server')} of {each} fit in"
    detail = f"{use}; {counted(listening, 'server')} may take {each} each"
    if needed > places:
        remedy = f"raise max_connections by {needed - places}, or lower pool_open"
        return "postgresql connections", "problem", f"{detail}: {remedy}"
    return "postgresql connections", "ok", detail


def judge_autovacuum(on: bool, worst: list[tuple[str, int, int, bool]]) -> Found:
    """Reports whether dead rows are removed; `worst` is the table with the most of them, if any."""
    if not on:
        detail = "is off: tables only grow, and every claim gets slower; switch it on"
        return "postgresql autovacuum", "problem", detail
    if not worst:
        return "postgresql autovacuum", "ok", "is on; the schema windlass is not there yet"
    table, dead, live, never = worst[0]
    if dead > max(MAX_DEAD, live):
        since = "it was never vacuumed" if never else "vacuum does not keep up"
        detail = f"table {table} has {dead:,} dead rows beside {live:,}: {since}"
        return "postgresql autovacuum", "note", detail
    return "postgresql autovacuum", "ok", f"is on; at most {dead:,} dead rows, in table {table}"


def judge_replication(standbys: list[tuple[str, str, int]], waits: bool) -> Found:
    """Reports whether a failover can lose commits; each standby has a name, a mode and a lag."""
    name = "postgresql replication"
    if not standbys:
        if waits:
            detail = "synchronous_standby_names is set and no standby follows: commits wait"
            return name, "problem", detail
        return name, "note", "no standby follows: what the disk loses only a backup has"
    told = ", ".join(f"{who} ({mode}, {readable_size(lag)} behind)" for who, mode, lag in standbys)
    if any(lag > MAX_LAG for _, _, lag in standbys):
        return name, "note", f"a standby lags: {told}"
    if not any(mode in ("sync", "quorum") for _, mode, _ in standbys):
        return name, "note", f"asynchronous, so a failover may lose commits: {told}"
    return name, "ok", told


async def _transactions(connection: "asyncpg.Connection[Any]") -> Found:
    """Reports transactions that keep deleted rows from being removed."""
    name = "postgresql transactions"
    prepared = await connection.fetchval(QUERIES["prepared_transactions"])
    if prepared:
        left = f"{counted(prepared, 'prepared transaction')} may hold locks: see pg_prepared_xacts"
        return name, "note", left
    rows = await connection.fetch(QUERIES["oldest_transaction"])
    if not rows or rows[0][3] < LONG_S:
        return name, "ok", f"none is older than {readable_duration(LONG_S * 1000)}"
    process, user, program, seconds = rows[0]
    age = readable_duration(round(seconds * 1000))
    whose = f"process {process} of {user}" + (f" ({program})" if program else "")
    detail = f"one of {whose} is {age} old: until it ends, nothing deleted since is removed"
    return name, "problem" if seconds >= TOO_LONG_S else "note", detail


async def _round_trip(connection: "asyncpg.Connection[Any]") -> Found:
    """Measures a round trip; every transaction needs several."""
    now = asyncio.get_running_loop().time
    took: list[float] = []
    async with connection.transaction():
        for _ in range(ROUND_TRIPS):
            began = now()
            await connection.execute("SELECT")
            took.append(1000 * (now() - began))
    median = statistics.median(took)
    detail = f"{median:.1f} ms from this machine"
    if median > SLOW_MS:
        return "postgresql round trip", "note", f"{detail}: put servers close to their database"
    return "postgresql round trip", "ok", detail
