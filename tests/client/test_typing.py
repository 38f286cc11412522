"""mypy and pyright know the types of calls and results, and flag every wrong call."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = Path(__file__).with_name("typed_calls.txt")
LINES = SAMPLE.read_text().splitlines()
WRONG = {number for number, line in enumerate(LINES, 1) if line.endswith("# wrong")}
SHOWN = {
    number: found[1]
    for number, line in enumerate(LINES, 1)
    if (found := re.search(r"# shows: (.+)$", line))
}


def short(kind: str) -> str:
    """Returns a type without the modules of its names."""
    return re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", kind)


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """The calls as a module. They are kept as text, so that only these tests check them."""
    return Path(shutil.copy(SAMPLE, tmp_path / "calls.py"))


def check(errors: set[int], revealed: dict[int, str]) -> None:
    assert WRONG
    assert errors == WRONG, f"missed {WRONG - errors}, not wrong {errors - WRONG}"
    assert revealed == SHOWN


def test_mypy_flags_wrong_calls_and_knows_results(sample: Path, tmp_path: Path) -> None:
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\n[mypy-aiohttp.*,yarl.*]\nfollow_imports = skip\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context",
         "--cache-dir", str(tmp_path), "--config-file", str(settings), str(sample)],
        capture_output=True, text=True, check=False, cwd=ROOT, env={"MYPYPATH": "src"},
    )  # fmt: skip
    found = re.findall(r"calls\.py:(\d+): (error|note): (.*)", done.stdout)
    errors = {int(number) for number, kind, _ in found if kind == "error"}
    notes = ((int(n), re.search(r'Revealed type is "(.+)"', text)) for n, _, text in found)
    check(errors, {number: short(note[1]) for number, note in notes if note})


def test_pyright_flags_wrong_calls_and_knows_results(sample: Path, tmp_path: Path) -> None:
    settings = {
        "include": [str(sample)], "extraPaths": [str(ROOT / "src")], "pythonVersion": "3.11",
        "typeCheckingMode": "strict", "reportUnusedCoroutine": "none",
    }  # fmt: skip
    file = tmp_path / "pyrightconfig.json"
    file.write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--project", str(file), "--outputjson",
         "--pythonpath", sys.executable],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = {one["range"]["start"]["line"] + 1 for one in found if one["severity"] == "error"}
    notes = (
        (one["range"]["start"]["line"] + 1, re.search(r'Type of .* is "(.+)"', one["message"]))
        for one in found
        if one["severity"] == "information"
    )
    check(errors, {number: short(note[1]) for number, note in notes if note})
