"""The code of docs/guides/python.md runs, block by block, in one program."""

import re
import subprocess
import sys
from pathlib import Path

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "python.md"
START = """
import windlass
client = windlass.Client.embedded("jobs.db", workers=2)
windlass.set_default_client(client)
"""
END = "client.close()\n"


def test_every_block_of_the_guide_runs(tmp_path: Path) -> None:
    tasks, *blocks = re.findall(
        r"^```python\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL
    )
    assert tasks.startswith("# tasks.py")
    (tmp_path / "tasks.py").write_text(tasks)
    assert len(blocks) > 5
    # Each block is a program of its own, with names of its own.
    programs = "".join(f"exec({block!r}, {{'__name__': 'guide'}})\n" for block in blocks)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START + programs + END],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert "JobFailed(job" in done.stdout
