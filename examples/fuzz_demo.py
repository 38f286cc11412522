"""`make demo-fuzz`: commit fuzzing from an empty bucket to the guilty commit, in minutes.

It creates a repository of a small C++ solver in whose history one commit introduces a bug,
starts a real S3 server, and runs the command of every role. Then it fixes the bug and shows
how the finding is closed, and how a pull request that brings the bug back is refused. It leaves
nothing behind.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from examples.fuzz_repository import (
    BUG,
    FIXED,
    PULL_REQUEST,
    branch,
    commit,
    make_repository,
)
from tests.support.s3 import S3Server, start_s3

DESCRIPTION = """\
name: tinysolve
repository: repository
build:
  production: [./build.sh, production]
  coverage: [./build.sh, coverage]
binaries: [build/tinysolve]
tests: ['tests/*.ts']
engine:
  name: command
  argv: ['{binaries}/build/tinysolve', '{input}']
  unsupported: [2]
input_timeout: 5s
memory: 512MiB
commits: {fresh: 10, window: all}
"""
MAX_ROUNDS = 60

console = Console(soft_wrap=True)


Done = subprocess.CompletedProcess[str]
Start = Callable[[Sequence[str], dict[str, str], Path], Done]


def start_program(words: Sequence[str], environment: dict[str, str], folder: Path) -> Done:
    """Runs a command of `windlass` as a program, and shows what it writes to standard error."""
    return subprocess.run(
        [sys.executable, "-m", "windlass", *words], cwd=folder, env=environment,
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip


class Demo:
    """A folder with the solver file, and commands that run in it on a bucket."""

    def __init__(self, folder: Path, server: S3Server, start: Start = start_program) -> None:
        self.folder = folder
        self._start = start
        (folder / "tinysolve.yaml").write_text(DESCRIPTION)
        self._parts = 0
        self._environment = {
            **os.environ,
            **server.environment(),
            "WINDLASS_FUZZ_BUCKET": "s3://fuzzing",
            "WINDLASS_FUZZ_WORK": str(folder / "work"),
            "NO_COLOR": "1",
        }

    def part(self, title: str, text: str) -> None:
        """Prints the title and the explanation of the next part."""
        self._parts += 1
        console.print(f"\n{self._parts}. {title}", style="bold", highlight=False)
        console.print(text, highlight=False)

    def windlass(self, *words: str, show: bool = True, code: int = 0) -> str:
        """Runs a command and shows its output; another exit code than expected ends the demo."""
        if show:
            console.print(f"$ windlass fuzz {' '.join(words)}", style="cyan", highlight=False)
        done = self._start(("fuzz", *words), self._environment, self.folder)
        if show:
            console.print(done.stdout.rstrip(), markup=False, highlight=False)
        if done.returncode != code:
            raise SystemExit(f"windlass fuzz {' '.join(words)} exited with {done.returncode}")
        return done.stdout

    def ask(self, *words: str) -> Any:
        """Returns the JSON output of a command without showing it."""
        return json.loads(self.windlass(*words, "--json", show=False))


def build_everything(demo: Demo) -> None:
    """Runs a builder for each commit in the queue."""
    while "built in" in demo.windlass("builder", "tinysolve"):
        continue


def show_history(demo: Demo, commits: dict[str, str]) -> None:
    """Lists the commits without saying which of them is bad."""
    demo.part(
        "A solver with a history",
        "tinysolve is a small solver in C++ (examples/tinysolver). Its repository has six\n"
        "commits, one of which introduces a bug. tinysolve.yaml says how to build and run it:\n",
    )
    console.print(DESCRIPTION, style="dim", markup=False, highlight=False)
    for message, name in commits.items():
        console.print(f"  {name[:12]} {message}", markup=False, highlight=False)


def prepare(demo: Demo) -> None:
    """Goes from new commits to builds in the bucket and a coverage map."""
    demo.part(
        "The manager finds new commits",
        "It queues those that touch C++, oldest first. In production, cron starts it every 15\n"
        "minutes.",
    )
    demo.windlass("manager", "tinysolve")
    demo.part(
        "The builder builds them",
        "Each run takes one commit, makes a production and a coverage build, and uploads both.",
    )
    build_everything(demo)
    demo.part(
        "The manager schedules built commits",
        "Fuzzers take the least fuzzed commit in this schedule, the oldest of equals.",
    )
    demo.windlass("manager", "tinysolve")
    demo.part(
        "The coverage map",
        "It runs the tests one by one, so that each commit is fuzzed from the tests that reach\n"
        "the functions it changed.",
    )
    demo.windlass("coverage", "tinysolve")


def fuzz_until_bug(demo: Demo, budget: str) -> dict[str, Any]:
    """Fuzzes one scheduled commit after another until a bug is found."""
    rounds = str(MAX_ROUNDS)
    demo.part(
        "Fuzzing",
        f"One commit after another, {budget} each (in production six hours), until something\n"
        "breaks. Before a real run, --dry-run shows what it would do, and why:",
    )
    demo.windlass("fuzzer", "tinysolve", "--budget", budget, "--dry-run")
    demo.windlass("run", "tinysolve", "--rounds", rounds, "--budget", budget, "--until-bug")
    findings = demo.ask("findings", "tinysolve")
    if not findings:
        raise SystemExit(f"no bug was found in {rounds} rounds of {budget}")
    found: dict[str, Any] = findings[0]
    return found


def show(demo: Demo, finding: dict[str, Any], guilty: str) -> None:
    """Shows the report; fails unless it names the right commit."""
    demo.part(
        "The report",
        "The fuzzer ran the input five more times, made it as small as possible, and ran it with\n"
        "older builds until it knew which commit introduced the bug.",
    )
    page = demo.windlass("findings", "show", "tinysolve", finding["key"], show=False)
    console.print(f"$ windlass fuzz findings show tinysolve {finding['key']}", style="cyan")
    console.print(Markdown(page))
    if finding["introduced_by"] != guilty:
        raise SystemExit(f"the report should name {guilty}, not {finding['introduced_by']}")
    console.print(f"the commit that broke it: {finding['introduced_subject']}", style="bold green")
    demo.part("Status", "The state of the whole pipeline in the bucket:")
    demo.windlass("status", "tinysolve")


def fix(demo: Demo, key: str) -> None:
    """Commits a fix, builds it, and checks that the finding is closed."""
    fixed = commit(demo.folder / "repository", FIXED)
    demo.part(
        "The fix",
        f"Someone commits a fix, {fixed[:12]} {FIXED.message}.\nOnce it is built, open findings "
        "are run with it, and those that are fixed are closed.",
    )
    demo.windlass("manager", "tinysolve")
    build_everything(demo)
    rechecked = demo.windlass("findings", "recheck", "tinysolve", fixed)
    listed = demo.windlass("findings", "tinysolve", "--all")
    if f"fixed: {key}" not in rechecked or f"{key}  closed" not in listed:
        raise SystemExit(f"{fixed} should have closed {key}")


def refuse(demo: Demo) -> None:
    """Opens a pull request that brings the bug back, and shows that the check refuses it."""
    wanted = branch(demo.folder / "repository", "pull-request", PULL_REQUEST)
    demo.part(
        "A pull request",
        f"Somebody proposes {wanted[:12]} {PULL_REQUEST.message}. The check builds it and its\n"
        "base, runs the inputs of fixed bugs, fuzzes what it reaches, and exits with 1 if it\n"
        "brings a bug. In CI this is a workflow (windlass fuzz workflows) or a script (--plain).",
    )
    words = ("check", "tinysolve", "--head", "pull-request", "--budget", "5s")
    said = demo.windlass(*words, code=1)
    if "refused: the change brings a fixed bug back" not in said:
        raise SystemExit("the pull request should have been refused")
    console.print(Markdown((demo.folder / "fuzz-check" / "summary.md").read_text()))


def run(budget: str, start: Start = start_program) -> None:
    """Runs the whole demo; `start` runs its commands."""
    if shutil.which("g++") is None:
        raise SystemExit("there is no C++ compiler (g++) on the PATH; install one")
    with tempfile.TemporaryDirectory(prefix="windlass-fuzz-") as name:
        folder = Path(name)
        commits = make_repository(folder / "repository")
        server = start_s3()
        try:
            demo = Demo(folder, server, start)
            show_history(demo, commits)
            prepare(demo)
            finding = fuzz_until_bug(demo, budget)
            show(demo, finding, commits[BUG])
            fix(demo, finding["key"])
            refuse(demo)
        finally:
            server.stop()
    console.print("\ndone: found, dated, reported, fixed, closed, refused", style="bold green")
    console.print("to fuzz your own solver: docs/guides/fuzzing.md", highlight=False)


def main() -> None:
    """Runs the demo from the command line."""
    parser = argparse.ArgumentParser(description="Commit fuzzing from start to guilty commit.")
    parser.add_argument("--budget", default="10s", help="time for each commit, such as 10s")
    run(parser.parse_args().budget)


if __name__ == "__main__":
    main()
