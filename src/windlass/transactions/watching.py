"""Watches the transactions of connections in tests, each driver in its own way.

`note` receives BEGIN, COMMIT, ROLLBACK and savepoints, as SQL. Where a driver offers no hook, we
use its private parts. If those no longer exist, a submission counts although its transaction is
rolled back.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

Note = Callable[[str], None]
Undo = Callable[[], None]


def watched_part(connection: Any) -> Any:
    """Returns the object that owns the transactions: sessions and pools use one connection after
    another.
    """
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
