"""The statements of a submission, without the driver that sends them.

A plan yields statements with named parameters and receives their rows; it returns the new ids. So
blocking and async drivers run the same plan.
"""

from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from windlass.domain.rows.records import PROTOCOL
from windlass.domain.values.errors import Conflict, InvalidInput
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
            message = f"{key.field} {key.key!r} is used by job {job}, which was submitted with"
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
