"""`make demo-fuzz`: commit fuzzing from an empty bucket to a named commit, in minutes.

It makes a repository of a small C++ solver with a history in which one commit breaks it,
starts a real S3 server, and runs every role as a person would: by its command. Then it mends
the solver and shows how the finding is closed. Nothing is left behind.
"""

import argparse
import json
import os
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
        self._environment = {
            **os.environ,
            **server.environment(),
            "WINDLASS_FUZZ_BUCKET": "s3://fuzzing",
            "WINDLASS_FUZZ_WORK": str(folder / "work"),
            "NO_COLOR": "1",
        }

    def windlass(self, *words: str, show: bool = True) -> str:
        """Run a command and show what it says; a command that fails ends the demo."""
        console.print(f"$ windlass fuzz {' '.join(words)}", style="bold cyan", highlight=False)
        done = subprocess.run(
            [sys.executable, "-m", "windlass", "fuzz", *words], cwd=self.folder,
            env=self._environment, stdout=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if show and "--json" not in words:
            console.print(done.stdout.rstrip(), markup=False, highlight=False)
        if done.returncode != 0:
            raise SystemExit(f"windlass fuzz {' '.join(words)} ended with {done.returncode}")
        return done.stdout

    def ask(self, *words: str) -> Any:
        """The same, for the JSON it prints."""
        return json.loads(self.windlass(*words, "--json"))


def build_everything(demo: Demo) -> None:
    """The manager queues commits, the builder builds them, the manager schedules them."""
    demo.windlass("manager", "tinysolve")
    while demo.ask("builder", "tinysolve")["outcome"] != "nothing":
        continue
    demo.windlass("manager", "tinysolve")


def hunt(demo: Demo, budget: str) -> dict[str, Any]:
    """Fuzz what the schedule says, commit after commit, until something is found."""
    rounds = str(MOST_ROUNDS)
    demo.windlass("run", "tinysolve", "--rounds", rounds, "--budget", budget, "--until-bug")
    findings = demo.ask("findings", "tinysolve")
    if not findings:
        raise SystemExit(f"no bug was found in {rounds} rounds of {budget}")
    found: dict[str, Any] = findings[0]
    return found


def check(finding: dict[str, Any], guilty: str) -> None:
    """Fail loudly unless the right commit is named."""
    if finding["introduced_by"] != guilty:
        raise SystemExit(f"expected {guilty} to be named, got {finding['introduced_by']}")
    console.print(f"the commit that broke it: {finding['introduced_subject']}", style="green")


def mend(demo: Demo, key: str) -> None:
    """Commit a fix, build it, and see the finding closed."""
    fixed = commit(demo.folder / "repository", MENDED)
    build_everything(demo)
    demo.windlass("findings", "recheck", "tinysolve", fixed)
    closed = {finding["key"]: finding for finding in demo.ask("findings", "tinysolve", "--all")}
    if closed[key]["state"] != "closed" or closed[key]["closed_in"] != fixed:
        raise SystemExit(f"expected {key} to be closed by {fixed}: {closed[key]}")


def run(budget: str) -> None:
    """The whole demo."""
    with tempfile.TemporaryDirectory(prefix="windlass-fuzz-") as name:
        folder = Path(name)
        commits = make_repository(folder / "repository")
        server = start_s3()
        try:
            demo = Demo(folder, server)
            build_everything(demo)
            demo.windlass("coverage", "tinysolve")
            finding = hunt(demo, budget)
            check(finding, commits[BUG])
            demo.windlass("status", "tinysolve")
            page = demo.windlass("findings", "show", "tinysolve", finding["key"], show=False)
            console.print(Markdown(page))
            mend(demo, finding["key"])
        finally:
            server.stop()
    console.print("done: found, dated, reported, mended, closed", style="bold green")


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description="Commit fuzzing, from nothing to a named commit.")
    parser.add_argument("--budget", default="10s", help="for each commit, such as 10s")
    run(parser.parse_args().budget)


if __name__ == "__main__":
    main()
