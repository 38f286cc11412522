"""The repository names no machine: no private path, no registry host, no index address."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Written in pieces, so that this file does not name what it looks for.
PRIVATE_PATHS = [
    re.compile(rf"(?<![\w.]){start}[\w.-]") for start in ("/wo" + "rk/", "/ro" + "ot/")
]
REGISTRIES = [
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"py" + r"pi\.(org|python)",
        r"files\.python" + r"hosted",
        r"registry\.npm" + r"js",
        r"(extra-)?index-" + r"url",
        r"find-" + r"links",
        r"trusted-" + r"host",
    )
]


def text_files() -> list[Path]:
    """What git tracks or would track; a folder without git counts all but what tools make."""
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    names = done.stdout.splitlines() if done.returncode == 0 else unversioned_names()
    return [ROOT / name for name in names if is_text(ROOT / name)]


def unversioned_names() -> list[str]:
    made = {"__pycache__", "build", "dist"}
    paths = [path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file()]
    return [
        str(p) for p in paths if p.parts[0] == ".ci" or (not hidden(p) and not made & {*p.parts})
    ]


def hidden(path: Path) -> bool:
    return path.parts[0].startswith(".")


def is_text(path: Path) -> bool:
    return path.is_file() and b"\0" not in path.read_bytes()[:8192]


def findings(patterns: list[re.Pattern[str]]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        if any(pattern.search(line) for pattern in patterns)
    ]


def test_no_file_names_a_private_path() -> None:
    assert findings(PRIVATE_PATHS) == []


def test_no_file_names_a_package_registry() -> None:
    assert findings(REGISTRIES) == []


@pytest.mark.parametrize("text", ["cd /wo" + "rk/main", "HOME=/ro" + "ot/x", '"/wo' + 'rk/a"'])
def test_a_private_path_is_recognized(text: str) -> None:
    assert any(pattern.search(text) for pattern in PRIVATE_PATHS)
