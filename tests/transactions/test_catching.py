"""In tests, submissions in transactions are caught on every driver, and undone by rollbacks."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiosqlite
import apsw
import asyncpg
import psycopg
import pytest
import sqlalchemy
from sqlalchemy import orm
from sqlalchemy.ext import asyncio as async_sqlalchemy

import windlass
from tests.support.postgres import PostgresServer
from tests.transactions.django_connection import connection_to
from tests.transactions.drivers import WAYS, Way, driver, engine_for, with_sql
from tests.transactions.functions import add
from windlass.testing import WindlassFixture, run_in_test

CAUGHT = [way for way in WAYS if way is not with_sql]


@pytest.fixture(scope="module")
def plain_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of a user, which has no schema of Windlass."""
    dsn = postgres_server.create_database()
    with psycopg.connect(dsn) as connection:
        connection.execute("CREATE TABLE orders (name text PRIMARY KEY)")
    yield dsn
    postgres_server.drop_database(dsn)


@pytest.fixture
def farm() -> Iterator[WindlassFixture]:
    with run_in_test() as made:
        yield made


def submitted(farm: WindlassFixture) -> list[list[int]]:
    """Returns the arguments of all jobs, oldest first."""
    return [job.args["args"] for job in reversed(farm.client.jobs())]


@pytest.mark.parametrize("way", CAUGHT, ids=lambda way: way.__name__)
def test_a_job_of_a_transaction_runs_in_the_test(
    plain_dsn: str, farm: WindlassFixture, way: Way
) -> None:
    job = way(plain_dsn, f"kept {way.__name__}", True)
    assert farm.client.job(job).result() == 3
    assert len(farm.client.jobs()) == 1


@pytest.mark.parametrize("way", CAUGHT, ids=lambda way: way.__name__)
def test_what_is_rolled_back_was_not_submitted(
    plain_dsn: str, farm: WindlassFixture, way: Way
) -> None:
    way(plain_dsn, f"undone {way.__name__}", False)
    assert farm.client.jobs() == []
    assert farm.drain() == 0


# Each submits add(1, 1), then add(2, 2) to a savepoint that is rolled back, then add(3, 3) to one
# that is released, and looks before the transaction ends.


def _psycopg(dsn: str, look: Callable[[], None]) -> None:
    with psycopg.connect(dsn) as connection:
        add.submit_in(connection, 1, 1)
        with connection.transaction() as one:
            add.submit_in(connection, 2, 2)
            raise psycopg.Rollback(one)
        with connection.transaction():
            add.submit_in(connection, 3, 3)
        look()


def _asyncpg(dsn: str, look: Callable[[], None]) -> None:
    async def go() -> None:
        connection = await asyncpg.connect(dsn)
        async with connection.transaction():
            await add.submit_in_async(connection, 1, 1)
            with suppress(KeyError):
                async with connection.transaction():
                    await add.submit_in_async(connection, 2, 2)
                    raise KeyError
            async with connection.transaction():
                await add.submit_in_async(connection, 3, 3)
            look()
        await connection.close()

    asyncio.run(go())


def _sqlalchemy(dsn: str, look: Callable[[], None]) -> None:
    with engine_for(dsn) as engine, orm.Session(engine) as session:
        windlass.submit_in(session, add, 1, 1)
        nested = session.begin_nested()
        windlass.submit_in(session, add, 2, 2)
        nested.rollback()
        with session.begin_nested():
            windlass.submit_in(session, add, 3, 3)
        look()


def _sqlalchemy_async(dsn: str, look: Callable[[], None]) -> None:
    async def go() -> None:
        engine = async_sqlalchemy.create_async_engine(driver(dsn, "asyncpg"))
        factory = async_sqlalchemy.async_sessionmaker(engine)
        session = async_sqlalchemy.async_scoped_session(factory, asyncio.current_task)
        await windlass.submit_in_async(session, add, 1, 1)
        nested = await session.begin_nested()
        await windlass.submit_in_async(session, add, 2, 2)
        await nested.rollback()
        async with session.begin_nested():
            await windlass.submit_in_async(session, add, 3, 3)
        look()
        await session.remove()
        await engine.dispose()

    asyncio.run(go())


def _django(dsn: str, look: Callable[[], None]) -> None:
    connection, atomic = connection_to(dsn)
    with atomic():
        windlass.submit_in(connection, add, 1, 1)
        with suppress(KeyError), atomic():
            windlass.submit_in(connection, add, 2, 2)
            raise KeyError
        with atomic():
            windlass.submit_in(connection, add, 3, 3)
        look()
    connection.close()


def _sqlite3(dsn: str, look: Callable[[], None]) -> None:
    connection = sqlite3.connect(dsn)
    add.submit_in(connection, 1, 1)
    connection.execute("SAVEPOINT one")
    add.submit_in(connection, 2, 2)
    connection.execute("ROLLBACK TO SAVEPOINT one")
    connection.execute("SAVEPOINT two")
    add.submit_in(connection, 3, 3)
    connection.execute("RELEASE two")
    look()
    connection.close()


def _aiosqlite(dsn: str, look: Callable[[], None]) -> None:
    async def go() -> None:
        async with aiosqlite.connect(dsn) as connection:
            await add.submit_in_async(connection, 1, 1)
            await connection.execute("SAVEPOINT one")
            await add.submit_in_async(connection, 2, 2)
            await connection.execute("ROLLBACK TO one")
            await add.submit_in_async(connection, 3, 3)
            look()

    asyncio.run(go())


def _apsw(dsn: str, look: Callable[[], None]) -> None:
    connection = apsw.Connection(dsn)
    with connection:
        add.submit_in(connection, 1, 1)
        with suppress(KeyError), connection:
            add.submit_in(connection, 2, 2)
            raise KeyError
        with connection:
            add.submit_in(connection, 3, 3)
        look()
    connection.close()


POSTGRES = [_psycopg, _asyncpg, _sqlalchemy, _sqlalchemy_async, _django]
SQLITE = [_sqlite3, _aiosqlite, _apsw]
Play = Callable[[str, Callable[[], None]], None]


def _name(play: Any) -> str:
    return str(play.__name__).strip("_")


@pytest.mark.parametrize("play", POSTGRES, ids=_name)
def test_a_rollback_to_a_savepoint_undoes_what_came_after_it(
    plain_dsn: str, farm: WindlassFixture, play: Play
) -> None:
    seen: list[list[list[int]]] = []
    play(plain_dsn, lambda: seen.append(submitted(farm)))
    assert seen == [[[1, 1], [3, 3]]]


@pytest.mark.parametrize("play", SQLITE, ids=_name)
def test_the_same_on_sqlite(tmp_path: Path, farm: WindlassFixture, play: Play) -> None:
    seen: list[list[list[int]]] = []
    play(str(tmp_path / "shop.db"), lambda: seen.append(submitted(farm)))
    assert seen == [[[1, 1], [3, 3]]]


def test_rollbacks_and_commits_on_sqlite(tmp_path: Path, farm: WindlassFixture) -> None:
    connection = sqlite3.connect(tmp_path / "shop.db")
    add.submit_in(connection, 1, 1)
    connection.rollback()
    add.submit_in(connection, 2, 2)
    connection.commit()
    add.submit_in(connection, 3, 3)
    connection.rollback()
    connection.close()
    assert submitted(farm) == [[2, 2]]


def test_a_pooled_connection_is_watched_in_each_of_its_transactions(
    plain_dsn: str, farm: WindlassFixture
) -> None:
    with engine_for(plain_dsn) as engine, orm.Session(engine) as session:
        for number in (1, 2, 3, 4):
            session.execute(sqlalchemy.text("SELECT 1"))
            windlass.submit_in(session, add, number, number)
            if number % 2:
                session.rollback()
            else:
                session.commit()
    assert submitted(farm) == [[2, 2], [4, 4]]


def test_a_caught_job_may_name_others_and_be_one_of_a_workflow(
    plain_dsn: str, farm: WindlassFixture
) -> None:
    with psycopg.connect(plain_dsn) as connection:
        first = add.submit_in(connection, 1, 2)
        last = add.submit_in(connection, first, 10)  # type: ignore[arg-type]
        windlass.submit_many_in(connection, [add.job(1, 1), add.job(2, 2)], workflow="two")
    assert farm.client.job(last.id).result() == 13
    (workflow,) = farm.client.workflows()
    assert (workflow.name, workflow.state) == ("two", "completed")


def test_what_no_server_would_take_is_refused_in_tests_too(
    plain_dsn: str, farm: WindlassFixture
) -> None:
    with psycopg.connect(plain_dsn) as connection, pytest.raises(windlass.InvalidInput):
        windlass.submit_in(connection, windlass.JobSpec(task="shell", args={}))
    assert farm.client.jobs() == []


def test_a_connection_is_left_as_it_was(plain_dsn: str) -> None:
    with psycopg.connect(plain_dsn) as connection:
        before = dict(vars(connection))
        with run_in_test():
            add.submit_in(connection, 1, 1)
        assert vars(connection).keys() == before.keys()
