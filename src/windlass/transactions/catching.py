"""Catches submissions in tests: they reach no database, and disappear on rollback.

A test may check before its transaction ends, and often it never commits. So a submission counts at
once, until its transaction or savepoint is rolled back.

Each driver's transactions are watched in its own way: `note` receives BEGIN, COMMIT, ROLLBACK and
savepoints, as SQL. Where a driver offers no hook, we use its private parts. If those no longer
exist, a submission counts although its transaction is rolled back.
"""

import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final

from windlass.ports.this_process import is_allowed, refuse_in_tests, under_django
from windlass.transactions.drivers import POSTGRESQL, Driver
from windlass.transactions.requests import Request
from windlass.transactions.statements import Plan, Statement

Note = Callable[[str], None]
Undo = Callable[[], None]

# Statements that begin a transaction where the INSERT of a real submission would.
READ: Final = "SELECT 1"
TABLE: Final = "CREATE TEMP TABLE IF NOT EXISTS windlass_caught (id)"
WRITE: Final = "INSERT INTO windlass_caught VALUES (1)"


def watched_part(connection: Any) -> Any:
    """Returns the object with the transactions: pools and sessions change connections."""
    kind = type(connection).__module__.partition(".")[0]
    if kind == "asyncpg":
        return getattr(connection, "_con", connection)
    if kind != "sqlalchemy":
        return connection
    own = connection() if callable(connection) else connection  # a scoped session
    own = getattr(own, "sync_session", getattr(own, "sync_connection", own))
    return own.connection() if hasattr(own, "get_bind") else own


def watch(connection: Any, note: Note) -> Undo:
    """Reports to `note` the transactions of what `watched_part` returns, until `Undo` is called."""
    for kind in type(connection).__mro__:
        begin = _WATCHES.get(kind.__module__.partition(".")[0])
        if begin is not None:
            return begin(connection, note)
    return _nothing


def _nothing() -> None:
    """Has nothing to undo."""


def _around(target: Any, name: str, before: Callable[..., None]) -> Undo:
    """Calls `before` ahead of a method of this one object."""
    method = getattr(target, name, None)
    if method is None:
        return _nothing

    def call(*args: Any, **kwargs: Any) -> Any:
        before(*args)
        return method(*args, **kwargs)

    setattr(target, name, call)
    return partial(vars(target).pop, name, None)


def _psycopg(connection: Any, note: Note) -> Undo:
    def before(command: Any, *_: Any) -> None:
        if not isinstance(command, str | bytes):
            command = command.as_bytes(connection)
        note(command if isinstance(command, str) else command.decode())

    return _around(connection, "_exec_command", before)


def _asyncpg(connection: Any, note: Note) -> Undo:
    protocol = getattr(connection, "_protocol", None)
    return _around(protocol, "query", lambda text, *_: note(text))


def _sqlite3(connection: Any, note: Note) -> Undo:
    connection.set_trace_callback(note)
    return partial(connection.set_trace_callback, None)


def _apsw(connection: Any, note: Note) -> Undo:
    statements = sys.modules["apsw"].SQLITE_TRACE_STMT
    connection.trace_v2(statements, lambda event: note(event["sql"]), id=note)
    return partial(connection.trace_v2, 0, None, id=note)


def _django(connection: Any, note: Note) -> Undo:
    undo = [
        _around(connection, "set_autocommit", lambda *_: note("BEGIN")),
        _around(connection, "_savepoint", lambda sid: note(f"SAVEPOINT {sid}")),
        _around(connection, "_savepoint_rollback", lambda sid: note(f"ROLLBACK TO {sid}")),
        _around(connection, "_rollback", lambda: note("ROLLBACK")),
        _around(connection, "_commit", lambda: note("COMMIT")),
    ]

    def undo_all() -> None:
        for one in undo:
            one()

    return undo_all


def _sqlalchemy(connection: Any, note: Note) -> Undo:
    from sqlalchemy import event

    names: list[str] = []  # SQLAlchemy does not report all of them: they are nested

    def savepoint(*_: Any) -> None:
        names.append(f"S{len(names)}")
        note(f"SAVEPOINT {names[-1]}")

    def leave(words: str, *_: Any) -> None:
        note(f"{words} {names.pop() if names else 'EARLIER'}")

    heard: dict[str, Callable[..., None]] = {
        "begin": lambda *_: note("BEGIN"), "commit": lambda *_: note("COMMIT"),
        "rollback": lambda *_: note("ROLLBACK"), "savepoint": savepoint,
        "rollback_savepoint": partial(leave, "ROLLBACK TO"),
        "release_savepoint": partial(leave, "RELEASE"),
    }  # fmt: skip
    for name, hear in heard.items():
        event.listen(connection, name, hear)
    return _nothing  # The connection returns to its pool with the transaction.


_WATCHES: Final[dict[str, Callable[[Any, Note], Undo]]] = {
    "apsw": _apsw,
    "asyncpg": _asyncpg,
    "django": _django,
    "psycopg": _psycopg,
    "sqlalchemy": _sqlalchemy,
    "sqlite3": _sqlite3,
}


class Caught:
    """One submission, and whether its transaction was rolled back."""

    def __init__(self, request: Request, ids: Sequence[int]) -> None:
        self.request = request
        self.ids = ids
        self.is_undone = False


class Savepoints:
    """What was caught on one connection, in the order of its savepoints."""

    def __init__(self) -> None:
        self._steps: list[Caught | str] = []

    def add(self, caught: Caught) -> None:
        """Adds a submission of the open transaction."""
        self._steps.append(caught)

    def note(self, sql: str) -> None:
        """Inspects a statement of the connection."""
        words = sql.upper().replace(";", " ").split()
        match words:
            case ["ROLLBACK" | "ABORT", *_, "TO", name] | [
                "ROLLBACK" | "ABORT", *_, "TO", "SAVEPOINT", name,
            ]:  # fmt: skip
                self._undo(self._after(name))
            case ["ROLLBACK" | "ABORT", *rest] if rest[:1] != ["PREPARED"]:
                self._undo(0)
            case ["SAVEPOINT", name]:
                self._steps.append(name)
            case ["BEGIN" | "START" | "COMMIT" | "END", *_]:
                self._steps.clear()  # They were committed.

    def _after(self, name: str) -> int:
        """Returns the position of a savepoint; 0 if it is older than the first submission."""
        places = [place for place, step in enumerate(self._steps) if step == name]
        return places[-1] + 1 if places else 0

    def _undo(self, first: int) -> None:
        for step in self._steps[first:]:
            if isinstance(step, Caught):
                step.is_undone = True
        del self._steps[first:]


class Catcher:
    """Catches what a test submits in transactions; `take` assigns the ids of its jobs."""

    def __init__(self, take: Callable[[int], Sequence[int]]) -> None:
        self._take = take
        self._caught: list[Caught] = []
        self._watched: dict[int, tuple[Any, Savepoints, Undo]] = {}

    def collect(self) -> list[Caught]:
        """Returns what has been caught since the last call and was not rolled back."""
        caught, self._caught = self._caught, []
        return [one for one in caught if not one.is_undone]

    def plan(self, connection: Any, driver: Driver, request: Request) -> Plan:
        """Begins the transaction as a submission would, and records the submission."""
        if driver.database == POSTGRESQL:
            yield Statement(READ)
        else:
            yield Statement(TABLE)
            yield Statement(WRITE)
        caught = Caught(request, self._take(request.facts.count))
        self._caught.append(caught)
        self._savepoints(connection).add(caught)
        return caught.ids

    async def watch_later(self, connection: Any) -> None:
        """Begins to watch a connection that lives in a thread of its own."""
        if id(connection) not in self._watched:
            savepoints = Savepoints()
            self._watched[id(connection)] = connection, savepoints, lambda: None
            await connection.set_trace_callback(savepoints.note)

    def close(self) -> None:
        """Restores all connections."""
        while self._watched:
            _, (_, _, undo) = self._watched.popitem()
            with suppress(Exception):  # Most of them are closed by now.
                undo()

    def _savepoints(self, connection: Any) -> Savepoints:
        own = watched_part(connection)
        known = self._watched.get(id(own))
        if known is None:
            savepoints = Savepoints()
            known = own, savepoints, watch(own, savepoints.note)
            # It keeps a reference to the connection, so that its id stays unique.
            self._watched[id(own)] = known
        return known[1]


class _Active:
    """The catcher of the test that runs."""

    catcher: Catcher | None = None


def set_catcher(catcher: Catcher | None) -> None:
    """Sets the catcher of all submissions in transactions; None ends that."""
    if _Active.catcher is not None:
        _Active.catcher.close()
    _Active.catcher = catcher


_NUMBERS: Final = itertools.count(1)


def _discard() -> Catcher:
    """Returns a catcher for Django tests that do not check jobs, as Django does with mails."""
    return Catcher(lambda count: [next(_NUMBERS) for _ in range(count)])


def active_catcher(connection: Any) -> Catcher | None:
    """Returns the active catcher; None for a real submission. Raises if tests may not submit."""
    if _Active.catcher is not None:
        return _Active.catcher
    kind = type(connection).__module__
    if kind.startswith("django.") and under_django() and not is_allowed():
        return _discard()
    refuse_in_tests("submit_in")
    return None


async def watch_later(connection: Any) -> None:
    """Begins to watch what a plan, which never waits, cannot."""
    catcher = _Active.catcher
    if catcher is not None and type(connection).__module__.partition(".")[0] == "aiosqlite":
        await catcher.watch_later(connection)
