"""`make demo` works: what it runs, on an empty machine's settings, and what it says."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from windlass.providers.local import workers_below

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parent.parent.parent
LONGEST_S: Final = 150


@pytest.fixture
def temporary() -> Iterator[Path]:
    """An empty folder with a short path: a worker whose path is long keeps its socket elsewhere."""
    with tempfile.TemporaryDirectory(prefix="wd-") as folder:
        yield Path(folder)


def test_the_demo_runs_to_its_end_and_leaves_nothing(tmp_path: Path, temporary: Path) -> None:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WINDLASS", "XDG"))
    }
    environment = kept | {"HOME": str(tmp_path), "TMPDIR": str(temporary), "COLUMNS": "200"}
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo"],
        cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LONGEST_S, check=False,
    )  # fmt: skip
    said = done.stdout
    assert done.returncode == 0, (said, done.stderr)
    for line in (
        "killing worker process",
        "workflow 1 diamond: completed",
        "lint failed",
        "what would let it run: ",
        "verify: the log replays to the state, the invariants hold",
        "done: nothing lost, nothing doubled, nothing left running",
    ):
        assert line in said, (line, said)
    assert list(temporary.iterdir()) == []
    assert list(workers_below(temporary)) == []


def test_make_demo_runs_this_demo() -> None:
    assert "\t$(DEMO_VENV)/bin/python -m examples.demo\n" in (ROOT / "Makefile").read_text()
