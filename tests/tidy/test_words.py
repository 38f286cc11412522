"""Plain English: phrases that stop a reader, and names that need a look-up, are refused.

docs/STYLE.md shows sentences before and after. A phrase that is right in one place goes into
`allowed.toml` under `words`, with the reason.
"""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = tomllib.loads(Path(__file__).with_name("allowed.toml").read_text())["words"]

PHRASES = re.compile(
    r"\b(parted by|stands? in the (?:reference|guide|file)|had better|for want of"
    r"|the ordinary way|otherwise than|may vouch|let .{1,30} no more|what is there already"
    r"|whoever (?:is|asks|has)|be gone\b|in vain|tells? of (?:jobs|workers|its)|speaks? of"
    r"|hangs? on|be had there|at the door|as it were|worked off|works? off|looked after"
    r"|thereupon|whereupon|hitherto|of one's own accord|with nothing to be told by)",
    re.IGNORECASE,
)
# What may be the number 1, before a plural: `domain/values/quantities.py: counted` suits both.
UNCOUNTED = re.compile(
    r"\{(?!(?:[A-Z_]+|name|task)\})[^{}\"]+\} (?:(?:more|other|different|old|new) )?"
    r"(?:attempts|commits|days|events|files|findings|functions|jobs|options|pools|queues|runs|slots|tasks|workers"
    r"|workflows)\b"
)
CLASS = re.compile(r"^\s*class (\w+)", re.MULTILINE)
NAMES = frozenset(
    {
        "Desk", "Door", "Draft", "Found", "Mould", "Prepared", "Report", "Surroundings",
        "_Kind", "_Sheet", "_Shyness", "calm", "concealed", "drafts", "endings", "leaving",
        "reopening", "restoring", "tied", "upkeep", "waited", "working_off",
    }
)  # fmt: skip


def sources(kind: str) -> list[Path]:
    return sorted(path for one in ("src", "fuzz/src") for path in (ROOT / one).rglob(kind))


def texts() -> Iterator[tuple[str, int, str]]:
    """Yields every line of source and documentation, with its place."""
    folders = [path for kind in ("*.py", "*.sql") for path in sources(kind)]
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    for path in sorted([*folders, *pages]):
        place = path.relative_to(ROOT).as_posix()
        if place == "docs/STYLE.md" or "docs/decisions/" in place:
            continue  # the one quotes the phrases, the others are not rewritten
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield place, number, line


def names() -> Iterator[tuple[str, str]]:
    """Yields the names of modules and classes in the source."""
    for path in sources("*.py"):
        place = path.relative_to(ROOT).as_posix()
        yield place, path.stem
        for name in CLASS.findall(path.read_text()):
            yield place, name


def test_no_phrase_stops_a_native_reader() -> None:
    found = [
        f"{place}:{number}: {match[0]!r}"
        for place, number, line in texts()
        if (match := PHRASES.search(line)) and f"{place}: {match[0].lower()}" not in ALLOWED
    ]
    assert found == []


def test_commands_count_one_in_the_singular() -> None:
    found = [
        f"{place}:{number}: {match[0]!r}"
        for place, number, line in texts()
        if re.match("src/windlass/cli/(commands|output)/", place)
        and (match := UNCOUNTED.search(line))
    ]
    assert found == []


def test_no_module_or_class_has_a_name_that_needs_a_look_up() -> None:
    assert [f"{place}: {name}" for place, name in names() if name in NAMES] == []


@pytest.mark.parametrize("phrase", ["several parted by commas", "killed for want of memory"])
def test_a_banned_phrase_is_found(phrase: str) -> None:
    assert PHRASES.search(phrase)
