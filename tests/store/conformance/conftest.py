"""The fixture `store`: each test of the suite runs once for every store there is.

Some also run on PostgreSQL behind a pooler, where only sessions differ.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.conformance.driver import KINDS, Driver, MemoryDriver, PostgresDriver, SqliteDriver
from tests.store.conformance.pristine import PristineDatabase
from tests.support.pgbouncer import PgBouncer
from tests.support.postgres import PostgresServer

POOLED = "postgres-pooled"
POOLED_MODULES = ("test_flow", "test_leases", "test_log", "test_news", "test_transactions")


class Stores:
    """Opens empty stores of any kind; what they need is made when first asked for."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._numbers = itertools.count(1)
        self._database: PristineDatabase | None = None

    def open(self, kind: str) -> Driver:
        """A new store; of those on PostgreSQL, the one before must be closed."""
        if kind == "postgres":
            return PostgresDriver(self._empty_database())
        if kind == POOLED:
            pooler: PgBouncer = self._request.getfixturevalue("pgbouncer")
            return PostgresDriver(pooler.dsn(self._empty_database(), listen=True))
        if kind == "sqlite":
            return SqliteDriver(self._folder / f"{next(self._numbers)}.db")
        return MemoryDriver()

    def _empty_database(self) -> str:
        if self._database is None:
            server: PostgresServer = self._request.getfixturevalue("postgres_server")
            dsn = server.create_database()
            PostgresDriver(dsn).close()
            self._database = PristineDatabase(dsn)
        self._database.restore()
        return self._database.dsn

    def close(self) -> None:
        if self._database is not None:
            self._database.close()


@pytest.fixture(scope="session")
def stores(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stores]:
    made = Stores(request, tmp_path_factory.mktemp("conformance"))
    yield made
    made.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each test on every kind of store."""
    if "store" in metafunc.fixturenames:
        pooled = metafunc.module.__name__.rpartition(".")[2] in POOLED_MODULES
        kinds = (*KINDS, POOLED) if pooled else KINDS
        metafunc.parametrize("store", kinds, indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, stores: Stores) -> Iterator[Driver]:
    """An empty store of each kind."""
    with stores.open(request.param) as driver:
        yield driver
