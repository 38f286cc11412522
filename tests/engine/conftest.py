"""The fixture `rig`: a test runs as a coroutine on the rig's loop, on one store or on each.

Rules of the folders in `ONE_STORE` combine rows that the conformance suite has compared between
the stores already, so each of their tests runs on one of them: by turns, so that every store
meets every folder. `--all-stores` runs them on all three.
"""

import inspect
import zlib
from collections.abc import Iterator, Sequence

import pytest

from tests.engine.support.rig import Rig
from tests.engine.support.rigs import Rigs
from tests.store.conformance.driver import KINDS


@pytest.fixture(scope="session")
def rigs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Rigs]:
    made = Rigs(request, tmp_path_factory.mktemp("engine"))
    yield made
    made.close()


ONE_STORE = frozenset(
    {"explain", "files", "fleet", "history", "loops", "pools", "schedules", "submit"}
)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Chooses the stores of a test that asks for `rig` and names none itself."""
    marks = metafunc.definition.iter_markers("parametrize")
    named = any("rig" in str(mark.args[0]).split(",") for mark in marks)
    if "rig" in metafunc.fixturenames and not named:
        metafunc.parametrize("rig", stores_of(metafunc), indirect=True)


def stores_of(metafunc: pytest.Metafunc) -> Sequence[str]:
    """Returns the stores that a test runs on."""
    options = metafunc.config.option
    if metafunc.definition.path.parent.name not in ONE_STORE or options.all_stores:
        return KINDS
    if options.fast:
        return ["memory"]
    return [KINDS[zlib.crc32(metafunc.function.__qualname__.encode()) % len(KINDS)]]


@pytest.fixture
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
