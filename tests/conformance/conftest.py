"""The fixture `store`: each test of the suite runs once for every store there is."""

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.conformance.driver import KINDS, Driver, MemoryDriver, PostgresDriver, SqliteDriver
from tests.support.postgres import PostgresServer


class Stores:
    """Opens empty stores of any kind; what they need is made when first asked for."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._numbers = itertools.count(1)
        self._migrated: str | None = None

    @contextmanager
    def open(self, kind: str) -> Iterator[Driver]:
        with ExitStack() as stack:
            if kind == "postgres":
                server: PostgresServer = self._request.getfixturevalue("postgres_server")
                driver: Driver = PostgresDriver(stack.enter_context(self._database(server)))
            elif kind == "sqlite":
                driver = SqliteDriver(self._folder / f"{next(self._numbers)}.db")
            else:
                driver = MemoryDriver()
            yield stack.enter_context(driver)

    @contextmanager
    def _database(self, server: PostgresServer) -> Iterator[str]:
        """A copy of one migrated database, which is much faster than migrating each."""
        if self._migrated is None:
            dsn = server.create_database()
            PostgresDriver(dsn).close()
            self._migrated = dsn.rpartition("/")[2]
        name = f"conformance_{next(self._numbers)}"
        server.execute(f"CREATE DATABASE {name} TEMPLATE {self._migrated} STRATEGY wal_log")
        yield server.dsn(name)
        server.drop_database(server.dsn(name))


@pytest.fixture(scope="session")
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(request, tmp_path_factory.mktemp("conformance"))


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, stores: Stores) -> Iterator[Driver]:
    """An empty store of each kind."""
    with stores.open(request.param) as driver:
        yield driver
