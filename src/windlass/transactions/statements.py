"""The statements of a submission, without the driver that sends them; what their errors mean."""

import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.rows.records import PROTOCOL
from windlass.domain.values.errors import Conflict, InvalidInput, WindlassError, causes_of
from windlass.ports.this_process import is_open_here
from windlass.transactions.requests import ANY_NAMESPACE, Key, Reference, Request

SUBMITTER = "sqlite"

SUBMIT = (
    "SELECT windlass.submit_request(CAST(:protocol AS integer), CAST(:request AS text), "
    "CAST(CAST(:facts AS text) AS json))"
)
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name IN ('inbox', 'sequences')"
FILES = "PRAGMA database_list"  # unlike a SELECT, it does not begin a read transaction
LOCK = "UPDATE sequences SET value = value WHERE FALSE"
TAKE = (
    "INSERT INTO sequences (name, value) VALUES (:name, :count) ON CONFLICT (name) "
    "DO UPDATE SET value = value + excluded.value RETURNING value"
)
PUT = (
    "INSERT INTO inbox (id, at, jobs, submitted_by, namespaces, body) VALUES (:id, "
    "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), :jobs, :by, '[]', :body)"
)
JOB = (
    "SELECT json_extract(CAST(s.body AS TEXT), '$.namespace') FROM jobs j "
    "JOIN shapes s ON s.id = j.shape WHERE j.id = :id UNION ALL SELECT :own FROM inbox i "
    "WHERE EXISTS (SELECT 1 FROM json_each(i.jobs) WHERE value = :id)"
)
KEY = (
    "SELECT j.id, j.spec FROM keys k JOIN jobs j ON j.id = k.job LEFT JOIN outcomes o "
    "ON o.job = j.id WHERE k.namespace = :namespace AND k.key = :key AND o.job IS NULL"
)
WORKFLOW = "SELECT namespace FROM workflows WHERE id = :id AND finished_at IS NULL"

Rows = Sequence[Sequence[Any]]

OTHER_VERSION: Final = "WL001"  # raised by functions/submit_request.sql
INVALID: Final = "WL002"
KEY_TAKEN: Final = "WL003"
NO_SCHEMA: Final = "3F000"
NO_FUNCTION: Final = "42883"
NOT_ALLOWED: Final = "42501"

NO_TABLE: Final = re.compile(r"no such (table: sequences|column: value)\b")  # of SQLite
# SQLite: another transaction is writing, or wrote after this one had read. A transaction that has
# read is refused at once, whatever its busy timeout.
BUSY: Final = (5, 517)
BEGIN_IMMEDIATE: Final = (
    "Another transaction is writing, or wrote after this one had read. Set a busy timeout "
    "and begin this one with BEGIN IMMEDIATE, so that it waits, or run it again."
)

UPGRADE: Final = "run `windlass db upgrade --store postgresql://…` with the role of the servers"

_EXPECTED: Final = re.compile(r"expected (?P<field>\S+) to be (?P<expected>.*), got (?P<got>.*)")


class Statement(NamedTuple):
    """SQL with parameters written as `:name`."""

    text: str
    values: Mapping[str, Any] = {}


Plan = Generator[Statement, Rows, Sequence[int]]


def on_postgres(request: Request) -> Plan:
    """Calls the database function that takes submissions: one statement."""
    facts = msgspec.json.encode(request.facts).decode()
    values = {"protocol": PROTOCOL, "request": request.body, "facts": facts}
    rows = yield Statement(SUBMIT, values)
    taken: list[int] = rows[0][0]
    return taken


def on_sqlite(request: Request, same_library: bool) -> Plan:
    """Takes ids and writes a row, after the checks that need the file.

    It locks the file before it reads: SQLite refuses a write by a transaction that read before
    another one wrote.
    """
    if not same_library:
        files = yield Statement(FILES)
        _refuse_same_process(files)
    yield Statement(LOCK)
    if len((yield Statement(TABLES))) != 2:
        raise no_store()
    for one in request.facts.jobs:
        found = yield Statement(JOB, {"id": one.id, "own": _own(one)})
        _check(one, "the id of an existing job", found)
    for one in request.facts.workflows:
        found = yield Statement(WORKFLOW, {"id": one.id})
        _check(one, "the id of a workflow that has not ended", found)
    for key in request.facts.keys:
        holders = yield Statement(KEY, {"namespace": key.namespace or "default", "key": key.key})
        _check_key(key, holders)
    count = request.facts.count
    last = (yield Statement(TAKE, {"name": "job", "count": count}))[0][0]
    number = (yield Statement(TAKE, {"name": "inbox", "count": 1}))[0][0]
    taken = range(last - count + 1, last + 1)
    jobs = msgspec.json.encode(list(taken)).decode()
    values = {"id": number, "jobs": jobs, "by": SUBMITTER, "body": request.body}
    yield Statement(PUT, values)
    return taken


def no_store() -> Conflict:
    """Returns the error for a file without our tables."""
    return Conflict(
        "schema_missing",
        "this file is not a Windlass store of this version: let `windlass up` or "
        "`windlass.Client.embedded(file)` create or upgrade it, then add your own tables",
    )


def _own(reference: Reference) -> str:
    return reference.namespace or "default"


def _check(reference: Reference, expected: str, found: Rows) -> None:
    if any(row[0] == _own(reference) or _own(reference) == ANY_NAMESPACE for row in found):
        return
    raise InvalidInput(reference.field, expected, reference.id)


def _check_key(key: Key, holders: Rows) -> None:
    """Raises if an open job has the key, but another task or other arguments."""
    for job, body in holders:
        held = msgspec.json.decode(body)
        args = msgspec.to_builtins(key.args)
        if (held["task"], held.get("args")) != (key.task, args):
            message = f"{key.field} {key.key!r} is used by job {job}, which was submitted with "
            raise Conflict("key_conflict", f"{message}other arguments")


def _refuse_same_process(files: Rows) -> None:
    """Raises if the engine has the file open in this process, through another copy of SQLite.

    File locks belong to a process: two copies would not see each other's locks, and could write at
    the same time.
    """
    for _, name, file in files:
        if name == "main" and file and is_open_here(Path(file)):
            raise Conflict(
                "same_process",
                f"{file} is open in this process through windlass.Client.embedded(), which "
                "uses another SQLite library: both at once could damage the file. Run the "
                "jobs in another process (`windlass up`, or an embedded client there), or "
                "use an apsw connection",
            )


def explain_failure(error: Exception) -> WindlassError | None:
    """Returns the error to raise instead, or None for an error that is not about jobs.

    An error that needs advice gets it as a note.
    """
    for cause in _all_causes(error):
        state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
        if state is not None:
            return _explain(str(state), _first_line(cause))
        if NO_TABLE.search(str(cause)):
            return no_store()
        code = getattr(cause, "sqlite_errorcode", None) or getattr(cause, "extendedresult", None)
        if code in BUSY:
            error.add_note(BEGIN_IMMEDIATE)
            return None
    return None


def _explain(state: str, message: str) -> WindlassError | None:
    if state == INVALID:
        match = _EXPECTED.search(message)
        parts = match.groups() if match else ("submission", message, "something else")
        return InvalidInput(*parts)
    if state == KEY_TAKEN:
        return Conflict("key_conflict", message)
    if state == OTHER_VERSION:
        return Conflict("schema_mismatch", message)
    if state == NO_SCHEMA:
        return Conflict("schema_missing", f"this database has no schema windlass; {UPGRADE}")
    if state == NO_FUNCTION and "submit_request" in message:
        return Conflict(
            "schema_outdated",
            "the schema windlass of this database is older than this library and does not "
            f"take submissions in transactions; {UPGRADE}",
        )
    if state == NOT_ALLOWED:
        allow = "the owner of the schema runs `windlass db allow-submit ROLE --namespace default`"
        more = "" if "may not submit" in message else f"; {allow}"
        return Conflict("not_allowed", f"{message}{more}")
    return None


def _all_causes(error: Exception) -> Iterator[BaseException]:
    """Yields the error, the one it wraps (SQLAlchemy: `orig`) and its causes."""
    for cause in causes_of(error):
        yield cause
        original = getattr(cause, "orig", None)
        if isinstance(original, BaseException):
            yield from causes_of(original)


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].removeprefix("<class 'asyncpg.exceptions.RaiseError'>: ")
