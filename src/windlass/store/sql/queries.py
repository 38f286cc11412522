"""Loads named SQL statements from files, so that Python code contains no SQL.

A file holds blocks: a line `-- name: insert_jobs`, comment lines that say why the
statement is as it is, then the statement. Comments are left out of what is sent to the
database and white space is made single, since statement caches compare the text. Names of
codes, such as `{state.queued}`, become numbers (`codes.py`).
"""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from types import MappingProxyType

from windlass.store.codes import fill_in

ROLES = "windlass.store.sql"

_FILE = re.compile(r"^[a-z_]+(?:\.([a-z]+))?\.sql$")
_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)$")


def load_queries(dialect: str) -> Mapping[str, str]:
    """Returns the statements for one database, by name: those of the roles and its own.

    `schema.sql` holds no named statements.
    """
    queries: dict[str, str] = {}
    for package in (ROLES, f"windlass.store.{dialect}"):
        for filename in sorted(entry.name for entry in files(package).iterdir()):
            if not _is_for(dialect, filename):
                continue
            found = parse_queries(read_sql(package, filename), filename)
            if twice := queries.keys() & found.keys():
                raise ValueError(f"{filename}: expected new names, got {sorted(twice)} again")
            queries |= found
    return MappingProxyType(queries)


def _is_for(dialect: str, filename: str) -> bool:
    """Returns whether `pools.sql` is for all databases, or `pools.sqlite.sql` for this one."""
    found = _FILE.match(filename)
    return found is not None and filename != "schema.sql" and found[1] in (None, dialect)


def read_sql(package: str, filename: str) -> str:
    """Returns the text of a file in `package`, with numbers in place of the names of codes."""
    return fill_in(files(package).joinpath(filename).read_text(encoding="utf-8"), filename)


def parse_queries(text: str, filename: str) -> Mapping[str, str]:
    """Splits the text of a query file; every block needs a name, a reason and a statement."""
    queries: dict[str, str] = {}
    for name, lines in _blocks(text, filename):
        comments = [line for line in lines if line.startswith("--")]
        statement = " ".join(" ".join(line.split()) for line in lines if not line.startswith("--"))
        if name in queries:
            raise ValueError(f"{filename}: expected each name once, got {name!r} twice")
        if not comments:
            raise ValueError(f"{filename}: expected a comment that says why below {name!r}")
        if not statement.strip():
            raise ValueError(f"{filename}: expected a statement below {name!r}")
        queries[name] = statement.strip().removesuffix(";")
    return MappingProxyType(queries)


def _blocks(text: str, filename: str) -> Iterator[tuple[str, list[str]]]:
    """Yields each name with the lines below it; comments before the first are the file's own."""
    name = ""
    lines: list[str] = []
    for line in (raw.strip() for raw in text.splitlines()):
        if match := _NAME.match(line):
            if name:
                yield name, lines
            name, lines = match.group(1), []
        elif name and line:
            lines.append(line)
        elif line and not line.startswith("--"):
            raise ValueError(f"{filename}: expected `-- name: …` before the statement {line!r}")
    if name:
        yield name, lines
