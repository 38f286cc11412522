"""The same transaction through each driver: an order, and the job that belongs to it."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import asyncpg
import psycopg
import sqlalchemy
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as async_sqlalchemy

import windlass
from tests.transactions.functions import add

INSERT = "INSERT INTO orders VALUES ('{}')"


class RolledBackError(Exception):
    """Raised inside a transaction to roll it back."""


Way = Callable[[str, str, bool], int]


def with_psycopg(dsn: str, name: str, commit: bool) -> int:
    with ended(), psycopg.connect(dsn, row_factory=psycopg.rows.dict_row) as connection:
        connection.execute(INSERT.format(name))
        job = add.submit_in(connection, 1, b=2)
        leave(commit, job.id)
    return job.id


def with_psycopg_async(dsn: str, name: str, commit: bool) -> int:
    async def go() -> int:
        async with await psycopg.AsyncConnection.connect(dsn) as connection:
            await connection.execute(INSERT.format(name))
            job = await add.submit_in_async(connection, 1, b=2)
            leave(commit, job.id)
        return job.id

    return finished(go)


def with_asyncpg(dsn: str, name: str, commit: bool) -> int:
    async def go() -> int:
        connection = await asyncpg.connect(dsn)
        try:
            async with connection.transaction():
                await connection.execute(INSERT.format(name))
                job = await add.submit_in_async(connection, 1, b=2)
                leave(commit, job.id)
        finally:
            await connection.close()
        return job.id

    return finished(go)


def with_asyncpg_pool(dsn: str, name: str, commit: bool) -> int:
    async def go() -> int:
        async with asyncpg.create_pool(dsn, min_size=1) as pool, pool.acquire() as connection:
            await connection.set_type_codec(
                "json", encoder=repr, decoder=str, schema="pg_catalog"
            )  # a user's own must not get in between
            async with connection.transaction():
                await connection.execute(INSERT.format(name))
                job = await add.submit_in_async(connection, 1, b=2)
                leave(commit, job.id)
        return job.id

    return finished(go)


def with_sqlalchemy_connection(dsn: str, name: str, commit: bool) -> int:
    with engine_for(dsn) as engine, ended(), engine.begin() as connection:
        connection.execute(sqlalchemy.text(INSERT.format(name)))
        job = windlass.submit_in(connection, add, 1, b=2)
        leave(commit, job.id)
    return job.id


def with_sqlalchemy_session(dsn: str, name: str, commit: bool) -> int:
    with engine_for(dsn) as engine, ended(), orm.Session(engine) as session, session.begin():
        session.execute(sqlalchemy.text(INSERT.format(name)))
        job = windlass.submit_in(session, add, 1, b=2)
        leave(commit, job.id)
    return job.id


def with_sqlalchemy_scoped_session(dsn: str, name: str, commit: bool) -> int:
    with engine_for(dsn) as engine:
        session = orm.scoped_session(orm.sessionmaker(engine))
        session.execute(sqlalchemy.text(INSERT.format(name)))
        job = windlass.submit_in(session, add, 1, b=2)
        if commit:
            session.commit()
        session.remove()
        return job.id


def with_sqlalchemy_async_session(dsn: str, name: str, commit: bool) -> int:
    async def go() -> int:
        engine = async_sqlalchemy.create_async_engine(driver(dsn, "asyncpg"))
        try:
            async with async_sqlalchemy.AsyncSession(engine) as session, session.begin():
                await session.execute(sqlalchemy.text(INSERT.format(name)))
                job = await windlass.submit_in_async(session, add, 1, b=2)
                leave(commit, job.id)
        finally:
            await engine.dispose()
        return job.id

    return finished(go)


def with_sqlalchemy_async_connection(dsn: str, name: str, commit: bool) -> int:
    async def go() -> int:
        engine = async_sqlalchemy.create_async_engine(driver(dsn, "psycopg"))
        try:
            async with engine.begin() as connection:
                await connection.execute(sqlalchemy.text(INSERT.format(name)))
                job = await windlass.submit_in_async(connection, add, 1, b=2)
                leave(commit, job.id)
        finally:
            await engine.dispose()
        return job.id

    return finished(go)


def with_django(dsn: str, name: str, commit: bool) -> int:
    from tests.transactions.django_connection import connection_to

    connection, atomic = connection_to(dsn)
    try:
        with ended(), atomic():
            with connection.cursor() as cursor:
                cursor.execute(INSERT.format(name))
            job = windlass.submit_in(connection, add, 1, b=2)
            leave(commit, job.id)
        return job.id
    finally:
        connection.close()


def with_sql(dsn: str, name: str, commit: bool) -> int:
    text = (
        '{"task": "python", "args": {"function": "tests.transactions.functions:add", '
        '"args": [1, 2], "kwargs": {}}}'
    )
    with ended(), psycopg.connect(dsn) as connection:
        connection.execute(INSERT.format(name))
        row = connection.execute("SELECT windlass.submit(%s)", [text]).fetchone()
        assert row is not None
        job: int = row[0]
        leave(commit, job)
    return job


WAYS: list[Way] = [
    with_psycopg,
    with_psycopg_async,
    with_asyncpg,
    with_asyncpg_pool,
    with_sqlalchemy_connection,
    with_sqlalchemy_session,
    with_sqlalchemy_scoped_session,
    with_sqlalchemy_async_session,
    with_sqlalchemy_async_connection,
    with_django,
    with_sql,
]


class _Last:
    """The job of the newest transaction that was rolled back."""

    job = 0


def leave(commit: bool, job: int) -> None:
    """Ends the block, with an error unless it is to commit."""
    if not commit:
        _Last.job = job
        raise RolledBackError


@contextmanager
def ended() -> Iterator[None]:
    """Lets a rolled back block end."""
    try:
        yield
    except RolledBackError:
        pass


def finished(go: Callable[[], Any]) -> int:
    """Runs an async block; returns its job, also if it was rolled back."""
    try:
        number: int = asyncio.run(go())
        return number
    except RolledBackError:
        return _Last.job


@contextmanager
def engine_for(dsn: str) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(driver(dsn, "psycopg"))
    try:
        yield engine
    finally:
        engine.dispose()


def driver(dsn: str, name: str) -> str:
    return dsn.replace("postgresql://", f"postgresql+{name}://")
