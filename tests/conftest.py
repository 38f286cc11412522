"""Fixtures and rules for all tests: a real PostgreSQL, no luck, and no skip in CI."""

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import pytest
import structlog
import trustme
from hypothesis import HealthCheck, settings

from tests.support.debian import missing_reason
from tests.support.leftovers import remove_dead_sockets
from tests.support.pgbouncer import PgBouncer, start_pgbouncer
from tests.support.postgres import PostgresMissingError, PostgresServer, start_postgres
from tests.support.s3 import S3MissingError, S3Server, start_s3
from tests.support.second_try import Record

# The same examples on every run, however slow the machine is: a test never passes by luck.
# HYPOTHESIS_PROFILE=explore looks for new examples, ten times as many.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("explore", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


# Jobs of tests look at files and processes outside; tests/worker/isolation tests the other modes.
os.environ["WINDLASS_ISOLATION"] = "process"
# Tests of Windlass reach servers and databases, all of which they start themselves.
os.environ["WINDLASS_TESTS"] = "real"
# Only tests of containers ask a container engine whether it works, which takes long.
os.environ.setdefault("WINDLASS_CONTAINER_ENGINE", "off")

# Else each program that a test starts would compile Windlass anew, which takes it half a second.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Programs must write their lines at once by themselves.
os.environ.pop("PYTHONUNBUFFERED", None)
sys.dont_write_bytecode = False

# Else each program that loads aiohttp reads the machine's file of authorities twice, which is a
# seventh of the start of a command. OpenSSL still finds them in their folder when it needs one.
if "PYTEST_XDIST_WORKER" not in os.environ:  # a worker has inherited it
    AUTHORITY = NamedTemporaryFile(suffix=".pem")  # noqa: SIM115 - it lasts as long as the run
    AUTHORITY.write(trustme.CA().cert_pem.bytes())
    AUTHORITY.flush()
    os.chmod(AUTHORITY.name, 0o644)
    os.environ["SSL_CERT_FILE"] = AUTHORITY.name

# A run in the background may ignore SIGINT, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


LOG_SETTINGS = structlog.get_config()


@pytest.fixture(autouse=True)
def log_settings() -> Iterator[None]:
    """What a test, or a fixture of its module, sets for the log ends with it."""
    structlog.configure(**LOG_SETTINGS)
    yield
    structlog.configure(**LOG_SETTINGS)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One server for the whole run (one for each worker of pytest-xdist), with fsync off."""
    try:
        server = start_postgres(durable=False)
    except PostgresMissingError as missing:
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.fixture
def postgres_dsn(postgres_server: PostgresServer) -> Iterator[str]:
    """The address of an empty database that only this test uses."""
    dsn = postgres_server.create_database()
    yield dsn
    postgres_server.drop_database(dsn)


@pytest.fixture(scope="session")
def pgbouncer(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PgBouncer]:
    """A pooler in transaction mode before the server of the run."""
    if reason := missing_reason("pgbouncer"):
        pytest.skip(reason)
    pooler = start_pgbouncer(postgres_server.port, tmp_path_factory.mktemp("pgbouncer"))
    yield pooler
    pooler.stop()


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A real S3 server for the whole run."""
    try:
        server = start_s3()
    except S3MissingError as missing:
        pytest.skip(str(missing))
    yield server
    server.stop()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Lets the garbage collector look only at what tests make: what is collected stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


# What `--fast` runs: rules of the engine in memory, stores in memory and on SQLite, in this
# process alone.
FAST_FOLDERS = ("blobs", "domain", "engine", "operations", "simulator", "store", "workflows")
SLOW_FIXTURES = frozenset({"pgbouncer", "postgres_dsn", "postgres_server", "s3_server"})


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast",
        action="store_true",
        help="only tests that need no PostgreSQL, no S3, no server and no other process",
    )
    parser.addoption(
        "--all-stores", action="store_true", help="run each rule of the engine on every store"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Groups tests by what they share, and leaves out what `--fast` does not run."""
    if getattr(config.option, "loadgroup", False):  # set by pytest-xdist
        for item in items:
            _tell_group(item)
    if not config.getoption("--fast"):
        return
    left_out = [item for item in items if not _is_fast(item)]
    items[:] = [item for item in items if _is_fast(item)]
    config.hook.pytest_deselected(items=left_out)


# Fixtures of the whole run that take longer to make than their tests to run.
DEAR_FIXTURES = frozenset({"podman"})


def _tell_group(item: pytest.Item) -> None:
    """Appends the group of a test to its id, where the scheduler of pytest-xdist looks for it.

    pytest-xdist 3.8 sets an attribute that pytest 9.2 no longer reads.
    """
    mark = item.get_closest_marker("xdist_group")
    group = _shared_by(item) if mark is None else mark.args[0]
    known = getattr(item, "_id", None)
    if group is not None and known is not None:
        item._id = type(known).parse(f"{item.nodeid}@{group}")


def _shared_by(item: pytest.Item) -> str | None:
    """Names what the test shares with others, for one process to make it once for all of them."""
    known: dict[str, Sequence[pytest.FixtureDef[Any]]] = getattr(
        getattr(item, "_fixtureinfo", None), "name2fixturedefs", {}
    )
    values = getattr(getattr(item, "callspec", None), "params", {})
    made = [
        f"{made[-1].baseid}{values.get(name, '')}"
        for name, made in known.items()
        if made[-1].scope in {"module", "package"} or name in DEAR_FIXTURES
    ]
    return min(made, default=None)  # a folder comes before its files


def _is_fast(item: pytest.Item) -> bool:
    folder = item.path.relative_to(Path(__file__).parent).parts[0]
    if folder not in FAST_FOLDERS or item.get_closest_marker("slow") is not None:
        return False
    if SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
        return False
    if "postgres" in item.name or item.path.parent.name == "postgres":
        return False
    return folder != "engine" or "sqlite" not in item.name


def pytest_configure(config: pytest.Config) -> None:
    """Notes the failed tests of a run, in the process that gathers the reports."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Record(config))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Cleans up after killed agents, once all processes of the run have ended."""
    if not hasattr(config, "workerinput"):
        remove_dead_sockets()


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() not in {"", "0", "false", "no"}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI everything is installed, so a skipped test is a failed one."""
    report = yield
    if in_ci() and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"a skip fails in CI: {_reason(report)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a whole module that skips itself while it is imported."""
    report = yield
    if in_ci() and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"a skip fails in CI: {_reason(report)}"
    return report


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2]
    return str(report.longrepr)
