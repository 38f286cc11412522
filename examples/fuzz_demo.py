"""`make demo-fuzz`: commit fuzzing from an empty bucket to a named commit, in minutes.

It makes a repository of a small C++ solver with a history in which one commit breaks it,
starts a real S3 server, and runs every role as a person would: by its command. Then it mends
the solver and shows how the finding is closed. Nothing is left behind.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markdown import Markdown

from examples.fuzz_repository import BUG, MENDED, commit, make_repository
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
MOST_ROUNDS = 60

console = Console(soft_wrap=True)


class Demo:
    """A folder with the solver's file, and commands run in it against a bucket."""

    def __init__(self, folder: Path, server: S3Server) -> None:
        self.folder = folder
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
        """Say what comes next, and what for."""
        self._parts += 1
        console.print(f"\n{self._parts}. {title}", style="bold", highlight=False)
        console.print(text, highlight=False)

    def windlass(self, *words: str, show: bool = True) -> str:
        """Run a command and show what it says; a command that fails ends the demo."""
        if show:
            console.print(f"$ windlass fuzz {' '.join(words)}", style="cyan", highlight=False)
        done = subprocess.run(
            [sys.executable, "-m", "windlass", "fuzz", *words], cwd=self.folder,
            env=self._environment, stdout=subprocess.PIPE, text=True, check=False,
            stderr=None if show else subprocess.DEVNULL,
        )  # fmt: skip
        if show:
            console.print(done.stdout.rstrip(), markup=False, highlight=False)
        if done.returncode != 0:
            raise SystemExit(f"windlass fuzz {' '.join(words)} ended with {done.returncode}")
        return done.stdout

    def ask(self, *words: str) -> Any:
        """What a command says to programs, unseen."""
        return json.loads(self.windlass(*words, "--json", show=False))


def build_everything(demo: Demo) -> None:
    """A builder for each commit of the queue."""
    while "built in" in demo.windlass("builder", "tinysolve"):
        continue


def tell_history(demo: Demo, commits: dict[str, str]) -> None:
    """The commits that there are; nobody says which of them is the bad one."""
    demo.part(
        "A solver with a history",
        "tinysolve is a small solver in C++ (examples/tinysolver). Its repository has six\n"
        "commits, one of which brings a bug. tinysolve.yaml says how to build and run it:\n",
    )
    console.print(DESCRIPTION, style="dim", markup=False, highlight=False)
    for message, name in commits.items():
        console.print(f"  {name[:12]} {message}", markup=False, highlight=False)


def prepare(demo: Demo) -> None:
    """From new commits to builds in the bucket and a map of what tests reach."""
    demo.part(
        "The manager looks for new commits",
        "It queues those that touch C++, oldest first. In earnest cron starts it every 15 minutes.",
    )
    demo.windlass("manager", "tinysolve")
    demo.part(
        "Builders build them",
        "Each run takes one commit, makes a production and a coverage build, and uploads both.",
    )
    build_everything(demo)
    demo.part(
        "The manager schedules what is built",
        "Fuzzers take the least fuzzed commit of this schedule, among equals the oldest.",
    )
    demo.windlass("manager", "tinysolve")
    demo.part(
        "The coverage mapper",
        "It runs the tests one by one, so that each commit is fuzzed from the tests that reach\n"
        "the functions it changed.",
    )
    demo.windlass("coverage", "tinysolve")


def loop(demo: Demo, budget: str) -> dict[str, Any]:
    """Fuzz what the schedule says, commit after commit, until something is found."""
    rounds = str(MOST_ROUNDS)
    demo.part(
        "Fuzzing",
        f"Commit after commit, {budget} each (in earnest six hours), until something breaks.\n"
        "Before a real run, --dry-run tells what it would do, and why:",
    )
    demo.windlass("fuzzer", "tinysolve", "--budget", budget, "--dry-run")
    demo.windlass("run", "tinysolve", "--rounds", rounds, "--budget", budget, "--until-bug")
    findings = demo.ask("findings", "tinysolve")
    if not findings:
        raise SystemExit(f"no bug was found in {rounds} rounds of {budget}")
    found: dict[str, Any] = findings[0]
    return found


def show(demo: Demo, finding: dict[str, Any], guilty: str) -> None:
    """The report; fails loudly unless the right commit is named."""
    demo.part(
        "The report",
        "The input was run again five times, made as small as possible, and given to older builds\n"
        "until the commit was known that brought the bug.",
    )
    page = demo.windlass("findings", "show", "tinysolve", finding["key"], show=False)
    console.print(f"$ windlass fuzz findings show tinysolve {finding['key']}", style="cyan")
    console.print(Markdown(page))
    if finding["introduced_by"] != guilty:
        raise SystemExit(f"expected {guilty} to be named, got {finding['introduced_by']}")
    console.print(f"the commit that broke it: {finding['introduced_subject']}", style="bold green")
    demo.part("Everything at a glance", "The state of the pipeline, as it stands in the bucket:")
    demo.windlass("status", "tinysolve")


def mend(demo: Demo, key: str) -> None:
    """Commit a fix, build it, and see the finding closed."""
    fixed = commit(demo.folder / "repository", MENDED)
    demo.part(
        "The bug is mended",
        f"Somebody commits a fix, {fixed[:12]} {MENDED.message}.\nOnce it is built, open findings "
        "are run with it, and what is gone is closed.",
    )
    demo.windlass("manager", "tinysolve")
    build_everything(demo)
    gone = demo.windlass("findings", "recheck", "tinysolve", fixed)
    listed = demo.windlass("findings", "tinysolve", "--all")
    if f"gone: {key}" not in gone or f"{key}  closed" not in listed:
        raise SystemExit(f"expected {key} to be closed by {fixed}")


def run(budget: str) -> None:
    """The whole demo."""
    if shutil.which("g++") is None:
        raise SystemExit("expected a C++ compiler (g++) on the PATH, found none; install one")
    with tempfile.TemporaryDirectory(prefix="windlass-fuzz-") as name:
        folder = Path(name)
        commits = make_repository(folder / "repository")
        server = start_s3()
        try:
            demo = Demo(folder, server)
            tell_history(demo, commits)
            prepare(demo)
            finding = loop(demo, budget)
            show(demo, finding, commits[BUG])
            mend(demo, finding["key"])
        finally:
            server.stop()
    console.print("\ndone: found, dated, reported, mended, closed", style="bold green")
    console.print("the same for a solver of yours: docs/guides/fuzzing.md", highlight=False)


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description="Commit fuzzing, from nothing to a named commit.")
    parser.add_argument("--budget", default="10s", help="for each commit, such as 10s")
    run(parser.parse_args().budget)


if __name__ == "__main__":
    main()
