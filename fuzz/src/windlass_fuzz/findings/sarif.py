"""Findings as SARIF 2.1.0, which code hosts show next to the changed lines."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from windlass_fuzz.coverage.functions import Span, functions_in
from windlass_fuzz.findings.markdown import count_of, one_line
from windlass_fuzz.findings.record import Finding

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
# GitHub uses these to tell alerts apart and to find them again in later uploads.
FINGERPRINT: Final = "primaryLocationLineHash"
MAX_SOURCE: Final = 1024 * 1024  # maximum bytes of a file that is searched for functions
_LINK: Final = re.compile(r"[\\\[\]]")
_PLACE: Final = re.compile(r"([\w./+-]+\.\w{1,4}):(\d{1,7})")
RULES: Final = {
    "crash": "The program crashes",
    "assertion": "An assertion fails",
    "sanitizer": "A sanitizer reports an error",
    "leak": "Memory is leaked",
    "wrong_answer": "The answer is wrong",
    "timeout": "An input needs too much time",
    "hang": "An input does not end",
    "memory": "An input needs too much memory",
}


class Place(NamedTuple):
    """A line of a file in the repository."""

    file: str
    line: int


def sarif(findings: Iterable[Finding], places: dict[str, Place], new: set[str]) -> dict[str, Any]:
    """Returns the document; findings that are not new are notes."""
    results = [_result(one, places[one.key], one.key in new) for one in findings]
    rules = [_rule(kind, text) for kind, text in sorted(RULES.items())]
    driver = {"name": "windlass fuzz", "rules": rules}
    run = {"tool": {"driver": driver}, "results": results, "columnKind": "utf16CodeUnits"}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def place_of(finding: Finding, sources: Path, changed: Sequence[str]) -> Place:
    """Returns the first line in the output that is a line of the repository.

    Without one, it is the innermost function that the change contains, or else the first changed
    file that still exists: a result without a place is not shown.
    """
    for match in _PLACE.finditer(finding.output):
        file = _file_in(match[1], sources)
        if file is not None:
            return Place(file, min(max(int(match[2]), 1), _lines_of(sources / file)))
    there = [name for name in changed if (sources / name).is_file()]
    for frame in finding.frames:
        for name in there:
            for span in _functions(sources / name):
                if f"::{frame}".endswith(f"::{span.name}"):
                    return Place(name, span.first)
    return Place([*there, *changed, "."][0], 1)


def _file_in(name: str, sources: Path) -> str | None:
    """Finds a file of the repository by the end of a path; builds run in other folders."""
    parts = [part for part in name.split("/") if part not in ("", ".", "..", ".git")]
    for start in range(len(parts)):
        path = sources.joinpath(*parts[start:])
        if path.is_file() and path.resolve().is_relative_to(sources.resolve()):
            return path.relative_to(sources).as_posix()
    return None


def _functions(file: Path) -> list[Span]:
    if file.stat().st_size > MAX_SOURCE:
        return []
    return functions_in(file.read_text(errors="replace"))


def _lines_of(file: Path) -> int:
    return max(len(file.read_bytes().splitlines()), 1)


def _rule(kind: str, text: str) -> dict[str, Any]:
    more = f"{text}. Windlass found an input that shows it."
    help_text = f"{more} It is among the files of the check, whose summary says how to run it."
    return {
        "id": kind, "shortDescription": {"text": text}, "fullDescription": {"text": more},
        "help": {"text": help_text},
    }  # fmt: skip


def _message(finding: Finding) -> str:
    """Describes the finding; brackets would turn a program's output into links."""
    text = f"{one_line(finding.title)} (with an input of {count_of(finding.size, 'byte')})"
    return _LINK.sub(r"\\\g<0>", text)


def _result(finding: Finding, place: Place, new: bool) -> dict[str, Any]:
    place_in_file = {
        "artifactLocation": {"uri": quote(place.file)},
        "region": {"startLine": place.line},
    }
    return {
        "ruleId": finding.kind,
        "level": "error" if new else "note",
        "message": {"text": _message(finding)},
        "locations": [{"physicalLocation": place_in_file}],
        "partialFingerprints": {FINGERPRINT: finding.key},
    }
