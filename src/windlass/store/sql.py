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

_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)$")


def load_queries(package: str, *folders: str) -> Mapping[str, str]:
    """Returns the statements of all `.sql` files of a store, by name.

    Looks in `package` itself and in these sub-packages; `schema.sql` holds no named statements.
    """
    queries: dict[str, str] = {}
    for place in (package, *(f"{package}.{folder}" for folder in folders)):
        for filename in sorted(entry.name for entry in files(place).iterdir()):
            if not filename.endswith(".sql") or filename == "schema.sql":
                continue
            found = parse_queries(read_sql(place, filename), filename)
            if twice := queries.keys() & found.keys():
                raise ValueError(f"{filename}: expected new names, got {sorted(twice)} again")
            queries |= found
    return MappingProxyType(queries)


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
