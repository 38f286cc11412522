"""A small solver that the demo's farm fuzzes, so that the dashboard has real findings to show.

The solver is a shell script, which needs no compiler. One of its commits breaks it.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

GOOD: Final = """\
#!/bin/sh
# Checks that an expression has no more closing than opening brackets.
text=$(cat "$1")
case "$text" in
  *[a-z]*) exit 2 ;;
esac
echo ok
"""
# The commit that breaks it: it refuses what it should read.
BROKEN: Final = GOOD.replace(
    "echo ok",
    """\
case "$text" in
  *'(('*) echo "solver.sh: deeper: Assertion 'depth < 2' failed." >&2; kill -ABRT $$ ;;
esac
echo ok""",
)
HISTORY: Final = (
    ("Check brackets", GOOD),
    ("Say what is checked", f"{GOOD}# Only brackets count.\n"),
    ("Keep the depth in a variable", BROKEN),
    ("Mention the exit code", f"{BROKEN}# 2: not an expression.\n"),
)
SOLVER: Final = """\
name: brackets
repository: {folder}/brackets
bucket: {folder}/bucket
build:
  production: [cp, solver.sh, brackets.sh]
  coverage: [cp, solver.sh, brackets.sh]
binaries: [brackets.sh]
tests: ['tests/*.txt']
engine: {{name: command, argv: [sh, '{{binaries}}/brackets.sh', '{{input}}'], unsupported: [2]}}
input_timeout: 5s
commits: {{fresh: 10, window: all, extensions: [.sh]}}
health: {{coverage: false}}
"""


def describe(folder: Path) -> Path:
    """Makes the repository, and returns the file of its solver."""
    repository = folder / "brackets"
    (repository / "tests").mkdir(parents=True)
    (repository / "tests" / "sum.txt").write_text("(1 + 2) * (3 + 4)\n")
    (repository / "tests" / "one.txt").write_text("(1)\n")
    # A test of its own that the broken commit aborts on: found on every machine, however slow.
    (repository / "tests" / "deep.txt").write_text("((1 + 2) * 3)\n")
    _git(repository, "init", "--quiet", "--initial-branch", "main")
    for message, text in HISTORY:
        (repository / "solver.sh").write_text(text)
        _git(repository, "add", "--all")
        _git(repository, "commit", "--quiet", "--message", message)
    file = folder / "brackets.yaml"
    file.write_text(SOLVER.format(folder=folder))
    return file


def start_fuzzing(file: Path) -> "subprocess.Popen[bytes]":
    """Finds the commits, builds them, and fuzzes one after another for seconds each."""
    words = ["fuzz", "run", str(file), "--rounds", "5", "--budget", "2s"]
    environment = {**os.environ, "WINDLASS_FUZZ_WORK": str(file.parent / "work")}
    return subprocess.Popen(
        [sys.executable, "-m", "windlass", *words], cwd=file.parent, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _git(repository: Path, *words: str) -> None:
    about = ["-c", "user.name=demo", "-c", "user.email=demo@localhost"]
    subprocess.run(["git", "-C", str(repository), *about, *words], check=True, capture_output=True)
