"""mypy finds ids that were swapped: each kind is a type of its own."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SAMPLE = Path(__file__).with_name("swapped_ids.txt")


def test_mypy_finds_every_swapped_id(tmp_path: Path) -> None:
    lines = SAMPLE.read_text().splitlines()
    wrong = {number for number, line in enumerate(lines, 1) if line.endswith("# wrong")}
    sample = shutil.copy(SAMPLE, tmp_path / "swapped.py")
    settings = tmp_path / "mypy.ini"
    settings.write_text("[mypy]\n[mypy-aiohttp.*,yarl.*]\nfollow_imports = skip\n")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir",
         str(tmp_path), "--config-file", str(settings), str(sample)],
        capture_output=True, text=True, check=False, cwd=ROOT, env={"MYPYPATH": "src"},
    )  # fmt: skip
    found = {int(number) for number in re.findall(r"swapped\.py:(\d+): error:", done.stdout)}
    assert wrong
    assert found == wrong, done.stdout
