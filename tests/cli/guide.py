"""Runs a guide of docs/guides: writes its files and runs its commands."""

import re
import subprocess
from pathlib import Path

from tests.cli.program import MAX_S, Program

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```(?P<kind>yaml|sh)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# ([a-z0-9]+\.yaml)\n")
MARK = "next-block"


def carry_out(guide: str, program: Program, folder: Path, **variables: str) -> list[str]:
    """Runs every block of commands in a folder and returns the output of each."""
    said = []
    for block in BLOCK.finditer((GUIDES / guide).read_text()):
        if block["kind"] == "yaml":
            named = FILE.match(block["text"])
            assert named, f"the first line of this file must name it:\n{block['text']}"
            (folder / named[1]).write_text(block["text"])
            continue
        done = subprocess.run(
            ["sh", "-eu", "-c", block["text"]], cwd=folder,
            env=program.environment | variables,
            capture_output=True, text=True, timeout=3 * MAX_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (block["text"], done.stdout, done.stderr)
        said.append(done.stdout)
    return said


def carry_out_in_one_shell(
    guide: str, program: Program, folder: Path, **variables: str
) -> list[str]:
    """Runs all blocks of commands one after another in one shell, as somebody who pastes them."""
    commands = []
    for block in BLOCK.finditer((GUIDES / guide).read_text()):
        if block["kind"] == "yaml":
            named = FILE.match(block["text"])
            assert named, f"the first line of this file must name it:\n{block['text']}"
            (folder / named[1]).write_text(block["text"])
        else:
            commands.append(block["text"])
    done = subprocess.run(
        ["sh", "-eu", "-c", f"echo {MARK}\n".join(commands)], cwd=folder,
        env=program.environment | variables,
        capture_output=True, text=True, timeout=6 * MAX_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout, done.stderr)
    return done.stdout.split(f"{MARK}\n")
