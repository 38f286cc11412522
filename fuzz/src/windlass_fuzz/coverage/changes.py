"""Finds the functions that a commit changes, from its diff and the new sources."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from windlass_fuzz.coverage.coverage_map import ChangedFunction
from windlass_fuzz.coverage.functions import functions_in

_FILE: Final = re.compile(r"^\+\+\+ (?:b/(.*?)|/dev/null)\t?$")
_HUNK: Final = re.compile(r"^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@")


class Hunk(NamedTuple):
    """Changed lines of a file after the commit; for a pure deletion, the two lines around it."""

    path: str
    first: int
    last: int


def hunks_of(diff: str) -> list[Hunk]:
    """Parses the hunks of a diff without context (`-U0`)."""
    path = ""
    found = []
    for line in diff.splitlines():
        if file := _FILE.match(line):
            path = file[1] or ""
        elif path and (hunk := _HUNK.match(line)):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            last = first + count - 1 if count else first + 1
            found.append(Hunk(path, first, last))
    return found


def changed_functions(hunks: Iterable[Hunk], sources: Mapping[str, str]) -> list[ChangedFunction]:
    """Returns the functions that contain the hunks.

    A file without any function is represented by its changed lines.
    """
    found: dict[ChangedFunction, None] = {}
    for hunk in hunks:
        spans = functions_in(sources.get(hunk.path, ""))
        touched = [span for span in spans if span.first <= hunk.last and hunk.first <= span.last]
        for span in touched:
            found[ChangedFunction(hunk.path, *span)] = None
        if not spans:
            found[ChangedFunction(hunk.path, "", hunk.first, hunk.last)] = None
    return list(found)
