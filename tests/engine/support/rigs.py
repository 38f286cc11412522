"""Opens rigs on empty stores of every kind, and verifies each store when its test is over."""

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engine.support.bases import MemoryBase, PostgresBase, SqliteBase, migrate
from tests.engine.support.rig import Base, Rig
from tests.support.running import run
from tests.support.saved_tables import EMPTY, KeptConnection
from windlass.engine.verify.check import verify


class Rigs:
    """Opens rigs on empty stores; PostgreSQL is started when first asked for."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._numbers = itertools.count(1)
        self._dsn: str | None = None
        self._emptying: KeptConnection | None = None

    @contextmanager
    def open(self, kind: str) -> Iterator[Rig]:
        """A rig whose store is found consistent when the test is over."""
        rig = Rig(self._base(kind))
        try:
            yield rig
            assert rig.run(verify(rig.store, rig.engine.config)) == []
        finally:
            rig.close()

    def _base(self, kind: str) -> Base:
        if kind == "memory":
            return MemoryBase()
        if kind == "sqlite":
            return SqliteBase(self._folder / f"{next(self._numbers)}.db")
        if self._dsn is None or self._emptying is None:
            server = self._request.getfixturevalue("postgres_server")
            dsn: str = server.create_database()
            run(migrate(dsn))
            self._dsn, self._emptying = dsn, KeptConnection(dsn)
        self._emptying.execute(EMPTY)
        return PostgresBase(self._dsn)

    def close(self) -> None:
        """Lets go of the database."""
        if self._emptying is not None:
            self._emptying.close()
