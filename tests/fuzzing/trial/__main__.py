"""Plants bugs in real projects, lets the pipeline find them, and prints how well it did.

    python -m tests.fuzzing.trial [--budget 10m] [--quiet 15s] [--triage 5m] [--keep DIR]
        [PROJECT ...]

Each project is pushed to step by step. After each push `windlass fuzz run` manages, builds, fuzzes
and files with a tracker on loopback; a tenth of the budget is for triage. `windlass fuzz triage`
then does what that had no time for, as a fleet's jobs do. All projects run at the same time.
With `--keep`, a run that was stopped goes on with the push that it did not finish: the same pushes
make the same commits.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from tests.fuzzing.trackers.servers import GitHubIssues, running
from tests.fuzzing.trial.history import History
from tests.fuzzing.trial.planted import PROJECTS, PUSHES, Planted
from tests.fuzzing.trial.score import Watch, report
from windlass.cli.output.text import say
from windlass.clock import RealClock
from windlass_fuzz.findings.record import Finding

SOLVER: Final = """\
name: {name}
repository: {repository}
build:
  production: [sh, build.sh, production]
  coverage: [sh, build.sh, coverage]
binaries: [target, words.dict]
tests: ['tests/*']
engine: {{name: libfuzzer, binary: target, dictionary: words.dict, flags: [-max_len=200]}}
memory: 1GiB
input_timeout: 3s
cores: 1
order: newest
bisect: build
commits: {{window: all}}
issues: {{project: trial/{name}, api: '{api}', per_run: 50, per_day: 1000}}
"""
FIRST: Final = "20s"


class Bounds(NamedTuple):
    """How long each run of the fuzzer and each job for triage may take."""

    budget: str
    quiet: str
    triage: str


class Trial:
    """The trial of one project: its history, its pipeline, and what it said after each push."""

    def __init__(self, planted: Planted, folder: Path, api: str) -> None:
        self.name = planted.source.name
        self.folder = folder
        self.log = folder / "log"
        self.env = {
            **os.environ, "GITHUB_TOKEN": "made-up",
            "WINDLASS_FUZZ_BUCKET": str(folder / "bucket"),
            "WINDLASS_FUZZ_WORK": str(folder / "work"),
        }  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(folder / "repository", ignore_errors=True)
        self.watch = Watch(History(planted, folder / "repository"))
        self.findings: list[Finding] = []
        text = SOLVER.format(name=self.name, repository=folder / "repository", api=api)
        (folder / f"{self.name}.yaml").write_text(text)

    async def run(self, bounds: Bounds) -> None:
        """Pushes and fuzzes; after the last push, an older commit is fuzzed once more.

        The first push has no bug: it needs a build, not a search.
        """
        clock = RealClock()
        for number in range(len(PUSHES)):
            began, done = (self.folder / f"push-{number + 1}{end}" for end in (".ms", ".json"))
            began_ms = int(began.read_text()) if began.exists() else clock.now_ms()
            began.write_text(str(began_ms))
            self.watch.history.push(number, began_ms)
            if done.exists():
                self._look(done.read_text())
                continue
            rounds = 2 if number == len(PUSHES) - 1 else 1
            budget = bounds.budget if number else FIRST
            limits = ("--budget", budget, "--until-quiet", bounds.quiet)
            await self._windlass("run", "--rounds", str(rounds), *limits)
            if number:
                await self._windlass("triage", "--budget", bounds.triage)
            said = await self._windlass("findings", "list", "--all", "--json")
            self._look(said)
            done.write_text(said)
            live = sum(one.live for one in self.findings)
            seconds = (clock.now_ms() - began_ms) // 1000
            say(
                f"{self.name}: push {number + 1} of {len(PUSHES)} in {seconds} s, "
                f"{live} of {len(self.findings)} findings are open"
            )

    def _look(self, said: str) -> None:
        """Notes the findings after a push."""
        self.findings = msgspec.json.decode(said, type=list[Finding])
        self.watch.look(self.findings)

    async def _windlass(self, *words: str) -> str:
        """Runs `windlass fuzz` for this project; returns its output."""
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "windlass", "fuzz", *words, f"{self.name}.yaml",
                cwd=self.folder, env=self.env, stdout=asyncio.subprocess.PIPE, stderr=log,
            )  # fmt: skip
            said, _ = await process.communicate()
        if process.returncode:
            say(f"{self.name}: fuzz {words[0]} ended with {process.returncode}: see {self.log}")
        return said.decode()


async def trial(names: list[str], folder: Path, bounds: Bounds) -> str:
    """Runs the trials of these projects and returns the score."""
    tracker = GitHubIssues()
    async with running(tracker):
        chosen = [one for one in PROJECTS if not names or one.source.name in names]
        trials = [Trial(one, folder / one.source.name, tracker.address) for one in chosen]
        try:
            await asyncio.gather(*(one.run(bounds) for one in trials))
        except asyncio.CancelledError:
            say("stopped: the score is of what was pushed until now")
    verdicts = [said for one in trials for said in one.watch.verdicts(one.findings)]
    strangers = [said for one in trials for said in one.watch.strangers(one.findings)]
    listed = "".join(f"not planted: {one.key} {one.title}\n" for one in strangers)
    return report(verdicts, [one.watch for one in trials], len(strangers)) + listed


def main() -> None:
    """Runs the trial and prints its score."""
    options = argparse.ArgumentParser(prog="python -m tests.fuzzing.trial")
    options.add_argument("--budget", default="10m", help="of each run of the fuzzer")
    options.add_argument(
        "--quiet", default="15s", help="end a run that finds nothing new for this long"
    )
    options.add_argument("--triage", default="5m", help="time of the job after each run")
    options.add_argument("--keep", type=Path, help="keep repositories, buckets and logs here")
    options.add_argument("names", nargs="*", metavar="PROJECT")
    given = options.parse_args()
    bounds = Bounds(given.budget, given.quiet, given.triage)
    with tempfile.TemporaryDirectory() as scratch:
        folder = given.keep or Path(scratch)
        say(asyncio.run(trial(given.names, folder.resolve(), bounds)))


if __name__ == "__main__":
    main()
