"""The fixture `store`: each test of the suite runs once for every store there is."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.store.conformance import pristine
from tests.store.conformance.driver import KINDS, Driver, MemoryDriver, PostgresDriver, SqliteDriver
from tests.support.postgres import PostgresServer


class Stores:
    """Opens empty stores of any kind; what they need is made when first asked for."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._numbers = itertools.count(1)
        self._dsn: str | None = None

    def open(self, kind: str) -> Driver:
        """A new store; of those on PostgreSQL, the one before must be closed."""
        if kind == "postgres":
            return PostgresDriver(self._empty_database())
        if kind == "sqlite":
            return SqliteDriver(self._folder / f"{next(self._numbers)}.db")
        return MemoryDriver()

    def _empty_database(self) -> str:
        if self._dsn is None:
            server: PostgresServer = self._request.getfixturevalue("postgres_server")
            self._dsn = server.create_database()
            PostgresDriver(self._dsn).close()
            pristine.save(self._dsn)
        pristine.restore(self._dsn)
        return self._dsn


@pytest.fixture(scope="session")
def stores(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Stores:
    return Stores(request, tmp_path_factory.mktemp("conformance"))


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, stores: Stores) -> Iterator[Driver]:
    """An empty store of each kind."""
    with stores.open(request.param) as driver:
        yield driver
