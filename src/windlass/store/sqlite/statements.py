"""The statements of the .sql files, loaded once.

Those that both databases share are written as PostgreSQL wants them. Here parameters get
SQLite's form, an array becomes a table-valued function, and locks are left out, because
one transaction runs at a time.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from windlass.store.sql.queries import load_queries

_SEQUENCE = re.compile(r"nextval\('(\w+)_ids'\)")
_NUMBERS = re.compile(r"= ANY \(\$(\d+)::text::(?:bigint|integer|smallint)\[\]\)")
_TEXTS = re.compile(r"= ANY \(\$(\d+)::text\[\]\)")
_PARAMETER = re.compile(r"\$(\d+)(?:::[a-z]+(?:\[\])?)*")
_LOCK = re.compile(r" FOR (?:NO KEY UPDATE|UPDATE|SHARE|KEY SHARE)(?: OF \w+)?(?: SKIP LOCKED)?$")


def adapt(statement: str) -> str:
    """Returns a shared statement as SQLite takes it; one of SQLite's own stays as it is.

    The number that a sequence gives becomes the last parameter.
    """
    last = max((int(number) for number in _PARAMETER.findall(statement)), default=0)
    statement = _SEQUENCE.sub(f"?{last + 1}", statement)
    statement = _NUMBERS.sub(r"IN carray(?\1)", statement)
    statement = _TEXTS.sub(r"IN (SELECT value FROM json_each(?\1))", statement)
    return _LOCK.sub("", _PARAMETER.sub(r"?\1", statement))


# One transaction runs at a time: what locks rows on PostgreSQL reads them here.
_READS = {
    "lock_free_limits": "read_limits",
    "lock_jobs": "read_jobs",
    "lock_leases": "read_leases",
    "lock_limits": "read_limits",
    "lock_waits": "read_waits",
    "lock_workers": "read_workers",
    "lock_workflows": "read_workflows",
    "read_ready": "peek",
    "share_jobs": "read_jobs",
}

_STATEMENTS = load_queries("sqlite")

QUERIES: Mapping[str, str] = MappingProxyType(
    {name: adapt(statement) for name, statement in _STATEMENTS.items()}
    | {name: _STATEMENTS[read] for name, read in _READS.items()}
)
SEQUENCES: Mapping[str, str] = MappingProxyType(
    {name: found[1] for name, text in _STATEMENTS.items() if (found := _SEQUENCE.search(text))}
)
