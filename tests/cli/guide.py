"""A guide of docs/guides, carried out: its files are written, its commands run."""

import re
import subprocess
from pathlib import Path

from tests.cli.program import LONGEST_S, Program

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```(?P<kind>yaml|sh)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([a-z]+\.yaml)\n")


def carry_out(guide: str, program: Program, folder: Path, **variables: str) -> list[str]:
    """Run every block of commands in a folder; what each of them said."""
    said = []
    for block in BLOCK.finditer((GUIDES / guide).read_text()):
        if block["kind"] == "yaml":
            named = FILE.match(block["text"])
            assert named, f"a file without a name in its first line:\n{block['text']}"
            (folder / named[1]).write_text(block["text"])
            continue
        done = subprocess.run(
            ["sh", "-eu", "-c", block["text"]], cwd=folder,
            env=program.environment | variables,
            capture_output=True, text=True, timeout=3 * LONGEST_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (block["text"], done.stdout, done.stderr)
        said.append(done.stdout)
    return said
