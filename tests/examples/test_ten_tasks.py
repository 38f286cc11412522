"""The ten tasks that the guide compares with other systems all work as the file says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXPECTED = """\
1, 2: 3
3: worked at try 3
4: 4
5: 0 3 * * *
6: 7
7: 90
8: True
9: canceled
10: receipt 117, two parcels
"""


def test_all_ten_tasks_work(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / "ten_tasks.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == EXPECTED
