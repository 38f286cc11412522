"""The commands of the guide to workflows run, on the files it shows."""

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.cli.program import LONGEST_S, Program

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "workflows.md"
BLOCK = re.compile(r"^```(?P<kind>yaml|sh)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([a-z]+\.yaml)\n")


def test_every_command_of_the_guide_runs(up: Program, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    files = commands = 0
    for block in BLOCK.finditer(GUIDE.read_text()):
        if block["kind"] == "yaml":
            named = FILE.match(block["text"])
            assert named, f"a file without a name in its first line:\n{block['text']}"
            (tmp_path / named[1]).write_text(block["text"])
            files += 1
            continue
        done = subprocess.run(
            ["sh", "-eu", "-c", block["text"]], cwd=tmp_path, env=up.environment | {"PATH": path},
            capture_output=True, text=True, timeout=2 * LONGEST_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (block["text"], done.stdout, done.stderr)
        commands += block["text"].count("windlass ")
    assert files
    assert commands
