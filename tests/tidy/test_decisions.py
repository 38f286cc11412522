"""A decision that has figures says how to repeat them, or that nobody can."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))

MEASURED = re.compile(r"^(?:## Measured|\*\*Measured)", re.MULTILINE)
REPEAT = re.compile(r"^Repeat: (`.*)$", re.MULTILINE)
GONE = "These figures cannot be repeated: the script was not kept."
COMMAND = re.compile(r"`([^`]+)`")
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def complaints(text: str) -> list[str]:
    """Returns what is missing from the page of a decision."""
    repeats = REPEAT.findall(text)
    if MEASURED.search(text) and not repeats and f"\n{GONE}\n" not in text:
        return [f"add a line 'Repeat: `COMMAND`', or: {GONE}"]
    commands = [command for line in repeats for command in COMMAND.findall(line)]
    return [f"nothing runs {command!r}" for command in commands if not _exists(command.split())]


def _exists(words: list[str]) -> bool:
    """Returns whether the target, the module or the tests of a command are there."""
    if words[0] == "make":
        return words[1] in TARGET.findall((ROOT / "Makefile").read_text())
    if words[:3] == ["python", "-m", "pytest"]:
        tests = [word for word in words[3:] if not word.startswith("-")]
        return bool(tests) and all((ROOT / test).exists() for test in tests)
    path = words[2].replace(".", "/") if words[:2] == ["python", "-m"] else ""
    places = [ROOT / path, ROOT / f"{path}.py", ROOT / "src" / path]
    return path != "" and any(place.exists() for place in places)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name[:3])
def test_figures_can_be_repeated_or_the_page_says_that_they_cannot(page: Path) -> None:
    assert complaints(page.read_text()) == []


def test_figures_without_a_line_are_reported() -> None:
    assert len(complaints("## Measured\n\nIt took 3 ms.\n")) == 1
    assert complaints(f"## Measured\n\nIt took 3 ms.\n\n{GONE}\n") == []


def test_a_command_that_is_gone_is_reported() -> None:
    page = "Repeat: `python -m benchmarks.core`, `python -m benchmarks.no`, `make no`\n"
    assert complaints(page) == [
        "nothing runs 'python -m benchmarks.no'", "nothing runs 'make no'",
    ]  # fmt: skip
