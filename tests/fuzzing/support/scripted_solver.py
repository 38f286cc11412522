"""A solver that is a shell script, so that it builds quickly, and a world for it."""

import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from windlass.clock import RealChance, RealClock, RealSecrets
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.config.combinations import combination_names
from windlass_fuzz.config.solver_file import Solver, parse_solver
from windlass_fuzz.roles.builder import Builder, BuildReport
from windlass_fuzz.roles.fuzzer import Fuzzer, FuzzReport
from windlass_fuzz.state import rules
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.state_file import Runtime

BUILD = "#!/bin/sh\nset -e\nmkdir -p build\ncp solver.sh build/solver\nchmod +x build/solver\n"
FINE = "#!/bin/sh\ncat $1 >/dev/null\necho fine\n"
# What breaks it is a word that changing numbers alone leads to.
BROKEN = (
    "#!/bin/sh\nif grep -q 'limit 0' $1; then echo 'bad limit' >&2; kill -ABRT $$; fi\necho fine\n"
)
TEST = "limit 1\nother 3\n"

DESCRIPTION = """
name: scripted
repository: {repository}
build:
  production: [./build.sh, production]
  coverage: [./build.sh, coverage]
  timeout: {timeout}
binaries: [build/solver]
tests: ['tests/*']
engine: {{name: command, argv: ['{{binaries}}/build/solver', '{{input}}']}}
budget: 60s
memory: 256MiB
cores: {cores}
health: {{coverage: false}}
{more}
"""


class ShiftedClock(RealClock):
    """The real clock, some time ahead, so that leases expire without waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


@dataclass
class World:
    """A repository, a bucket in a directory, and the roles that work on them."""

    folder: Path
    more: str = ""
    timeout: str = "60s"
    cores: int = 2
    clock: ShiftedClock = field(default_factory=ShiftedClock)

    def __post_init__(self) -> None:
        self.repository = self.folder / "repository"
        self.repository.mkdir(parents=True)
        self.git("init", "--quiet", "--initial-branch=main")
        runtime = Runtime(self.clock, RealChance(), RealSecrets())
        self.bucket = DirectoryBucket(self.folder / "bucket")
        matrix = combination_names(self.solver) if "matrix:" in self.more else ()
        self.pipeline = Pipeline(self.bucket, "scripted", runtime, "test", matrix)

    @property
    def description(self) -> str:
        return DESCRIPTION.format(
            repository=self.repository,
            timeout=self.timeout,
            more=self.more,
            cores=self.cores,
        )

    @property
    def solver(self) -> Solver:
        return parse_solver(self.description.encode(), Path("scripted.yaml"))

    def git(self, *words: str) -> str:
        author = {f"GIT_{who}_{what}": "ada" for who in ("AUTHOR", "COMMITTER")
                  for what in ("NAME", "EMAIL")}  # fmt: skip
        done = subprocess.run(
            ["git", "-C", str(self.repository), *words], check=True, capture_output=True, text=True,
            env={**os.environ, **author, "GIT_CONFIG_GLOBAL": os.devnull},
        )  # fmt: skip
        return done.stdout.strip()

    def commit(self, message: str, **files: str) -> str:
        """Makes a commit with these files; the name of a script ends in _sh."""
        base = {"build.sh": BUILD, "solver.sh": FINE, "tests/a.txt": TEST}
        changed = {name.replace("_sh", ".sh"): text for name, text in files.items()}
        for name, text in {**base, **changed}.items():
            path = self.repository / name
            if name in changed or not path.exists():
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
                path.chmod(0o755)
        (self.repository / "notes").write_text(message)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.head()

    def branch(self) -> str:
        """Returns the branch that is checked out, without a process; "" if there is none."""
        ref = (self.repository / ".git" / "HEAD").read_text().strip()
        return ref.removeprefix("ref: refs/heads/") if ref.startswith("ref: ") else ""

    def head(self) -> str:
        """Returns the commit that is checked out."""
        branch, git = self.branch(), self.repository / ".git"
        return (git / "refs" / "heads" / branch if branch else git / "HEAD").read_text().strip()

    async def enqueue(self, *commits: str) -> None:
        await self.pipeline.queue.update(lambda queue: rules.enqueue_new(queue, commits))

    async def build(self, **options: Any) -> BuildReport:
        """Runs a builder once."""
        return await Builder(self.solver, self.pipeline, self.work("builder")).run_once(**options)

    async def build_and_schedule(self, *commits: str) -> None:
        """Builds and schedules commits, as builder and manager would."""
        await self.enqueue(*commits)
        for commit in commits:
            assert (await self.build()).outcome == "built"
            await self.pipeline.schedule.update(
                lambda schedule, c=commit: rules.add_to_schedule(schedule, c)  # type: ignore[misc]
            )
        await self.pipeline.queue.update(lambda queue: rules.take_from_built(queue, queue.built))

    async def fuzz(self, commit: str | None = None, **options: Any) -> FuzzReport:
        """Runs a fuzzer once."""
        working = Fuzzer(self.solver, self.pipeline, self.work("fuzzer"), **options)
        return await working.run_once(commit)

    def work(self, role: str) -> Path:
        folder = self.folder / "work" / role
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def objects(self, prefix: str) -> list[str]:
        """Returns the keys below a prefix."""
        root = self.folder / "bucket"
        found = (root / "solvers" / "scripted" / prefix).rglob("*")
        return sorted(path.relative_to(root).as_posix() for path in found if path.is_file())
