"""Load named SQL statements from a file, so that no SQL stands in Python code.

A file holds blocks: a line `-- name: insert_jobs`, comment lines that say why the
statement is as it is, then the statement. Comments are left out of what is sent to the
database and white space is made single, since statement caches compare the text.
"""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from types import MappingProxyType

_NAME = re.compile(r"^-- name: ([a-z][a-z0-9_]*)$")


def load_queries(package: str, *filenames: str) -> Mapping[str, str]:
    """The statements of files in `package`, by name."""
    queries: dict[str, str] = {}
    for filename in filenames:
        found = parse_queries(read_sql(package, filename), filename)
        if twice := queries.keys() & found.keys():
            raise ValueError(f"{filename}: expected new names, got {sorted(twice)} again")
        queries |= found
    return MappingProxyType(queries)


def read_sql(package: str, filename: str) -> str:
    """The text of a file in `package`."""
    return files(package).joinpath(filename).read_text(encoding="utf-8")


def parse_queries(text: str, filename: str) -> Mapping[str, str]:
    """Split the text of a query file; every block needs a name, a reason and a statement."""
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
    """Each name with the lines below it; comments before the first name are the file's own."""
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
