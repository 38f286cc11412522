"""What errors of a user's database mean to somebody who submits jobs there."""

import re
from collections.abc import Iterator
from typing import Final

from windlass.domain.values.errors import Conflict, InvalidInput, WindlassError, causes_of
from windlass.transactions.statements import no_store

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
