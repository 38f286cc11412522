"""The fixture `rig`: each test runs once for every store, as a coroutine on the rig's loop."""

import inspect
from collections.abc import Iterator

import pytest

from tests.engine.support.rig import Rig
from tests.engine.support.rigs import Rigs
from tests.store.conformance.driver import KINDS


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
