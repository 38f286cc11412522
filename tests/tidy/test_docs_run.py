"""The documentation runs: every Python snippet is executed and every make target exists.

A snippet that cannot run by itself is preceded by a line `<!-- not run -->`.
"""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

SNIPPET = re.compile(
    r"(?P<mark><!-- not run -->\s*\n)?^(?P<fence>```+)python[^\n]*\n(?P<code>.*?)^(?P=fence)\s*$",
    re.MULTILINE | re.DOTALL,
)
MENTIONED_TARGET = re.compile(r"(?:`|^|&& |\$ )make ([a-z][a-z-]*)", re.MULTILINE)
DEFINED_TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)

LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s#]*)(?:#([^)\s]+))?\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

LIMIT_SECONDS = 60
GUIDE_WORDS = 1_500


def snippets(text: str) -> list[tuple[int, str]]:
    """The line and the code of each snippet that is meant to run."""
    return [
        (text.count("\n", 0, match.start("code")) + 1, match["code"])
        for match in SNIPPET.finditer(text)
        if not match["mark"]
    ]


def all_snippets() -> list[tuple[str, str]]:
    return [
        (f"{page.relative_to(ROOT)}:{line}", code)
        for page in PAGES
        for line, code in snippets(page.read_text())
    ]


def test_every_python_snippet_runs(tmp_path: Path) -> None:
    problems = []
    for number, (place, code) in enumerate(all_snippets()):
        folder = tmp_path / str(number)
        folder.mkdir()
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=LIMIT_SECONDS,
            check=False,
        )
        if done.returncode:
            problems.append(f"{place} ended with {done.returncode}:\n{done.stderr}")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_make_target_that_is_mentioned_exists(page: Path) -> None:
    defined = set(DEFINED_TARGET.findall((ROOT / "Makefile").read_text()))
    assert set(MENTIONED_TARGET.findall(page.read_text())) - defined == set()


def dead_links(page: Path) -> list[str]:
    """Returns the links of a page to files or headings that do not exist."""
    found = []
    for path, heading in LINK.findall(FENCED.sub("", page.read_text())):
        target = (page.parent / path).resolve() if path else page
        if path.endswith(".jpg"):
            heading = ""  # of a picture, this is the theme of the site that shows it
        if not target.exists() or (heading and heading not in anchors(target)):
            found.append(f"{path}#{heading}" if heading else path)
    return found


def anchors(page: Path) -> set[str]:
    """Returns the anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "SECURITY.md"], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_every_link_leads_somewhere(page: Path) -> None:
    assert dead_links(page) == []


def test_a_dead_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One thing\n[a](#one-thing) [b](#two) [c](no.md) [d](https://a.b/c)\n")
    assert dead_links(page) == ["#two", "no.md"]


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/guides").glob("*.md")), ids=lambda page: page.stem
)
def test_a_guide_is_short(page: Path) -> None:
    words = len(page.read_text().split())
    assert words <= GUIDE_WORDS, "move what few need to the reference"


def test_every_decision_is_in_the_index() -> None:
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    pages = {page.name for page in folder.glob("[0-9]*.md")}
    assert {name for name in pages if f"({name})" not in index} == set()


def test_snippets_are_found_unless_marked() -> None:
    page = "a\n\n```python\nx = 1\n```\n\n<!-- not run -->\n```python\ny\n```\n```\nno\n```\n"
    assert snippets(page) == [(4, "x = 1\n")]


def test_targets_are_found_where_commands_stand() -> None:
    page = "run `make test` or\n```\nmake check\n$ make bench-core\n```\nThey make it so.\n"
    assert MENTIONED_TARGET.findall(page) == ["test", "check", "bench-core"]
