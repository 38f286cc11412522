"""The fixture `rig`: each test runs once for every store, as a coroutine on the rig's loop."""

import inspect
import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.engine.bases import MemoryBase, PostgresBase, SqliteBase, migrate
from tests.engine.rig import Base, Rig
from tests.store.conformance.driver import KINDS
from tests.support.running import run
from windlass.engine.verify import verify


class Rigs:
    """Opens rigs on empty stores; PostgreSQL is started when first asked for."""

    def __init__(self, request: pytest.FixtureRequest, folder: Path) -> None:
        self._request = request
        self._folder = folder
        self._numbers = itertools.count(1)
        self._dsn: str | None = None

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
        if self._dsn is None:
            server = self._request.getfixturevalue("postgres_server")
            dsn: str = server.create_database()
            run(migrate(dsn))
            self._dsn = dsn
        return PostgresBase(self._dsn)


@pytest.fixture(scope="session")
def rigs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Rigs:
    return Rigs(request, tmp_path_factory.mktemp("engine"))


@pytest.fixture(params=KINDS)
def rig(request: pytest.FixtureRequest, rigs: Rigs) -> Iterator[Rig]:
    """A started engine on an empty store of each kind."""
    with rigs.open(request.param) as opened:
        yield opened


@pytest.fixture
def memory_rig(rigs: Rigs) -> Iterator[Rig]:
    """The same on the memory store only, for what is decided before a store is asked."""
    with rigs.open("memory") as opened:
        yield opened


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine on the loop of its rig."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = inspect.signature(pyfuncitem.obj).parameters
    arguments = {name: pyfuncitem.funcargs[name] for name in wanted}
    (used,) = (value for value in arguments.values() if isinstance(value, Rig))
    used.run(pyfuncitem.obj(**arguments))
    return True
