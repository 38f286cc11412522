"""Repositories with planted bugs: small C programs whose history says what must be found.

A history is a list of commits, the steps of fuzzers (with the inputs that their engines came up
with), and the findings that must be there in the end. Programs are compiled once per source.
"""

import functools
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzzing.support.scripted_solver import World
from windlass_fuzz.buckets.layout import build_key
from windlass_fuzz.builds.archive import BuildMetadata, pack
from windlass_fuzz.builds.build_cache import BuildCache
from windlass_fuzz.config.solver_file import Solver, parse_solver
from windlass_fuzz.findings.fixes import FixSearch
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.roles.engine_factory import fresh_folder
from windlass_fuzz.roles.findings_run import FindingsRun
from windlass_fuzz.sources.mirror import Mirror

LIMIT_MS = 300_000  # a limit, not a wait
SHORT_MS = 300  # of one input, where a history is about slow ones
SOLVER = """
name: scripted
repository: {repository}
build:
  production: [sh, build.sh]
  coverage: [sh, build.sh]
binaries: [toy]
tests: ['tests/*']
engine:
  name: command
  argv: ['{{binaries}}/toy', '{{input}}']
  bug: [4]
budget: 60s
memory: 256MiB
cores: 1
{more}
"""
BUILD = "cc -g -O0 -o toy toy.c\n"
SKELETON = """\
#include <assert.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char text[64];
static int has(const char *word) { return strstr(text, word) != NULL; }
%s
int main(int count, char **words) {
  FILE *file = fopen(words[count - 1], "r");
  if (!file || !fread(text, 1, 63, file)) return 0;
%s
  return 0;
}
"""


def program(calls: str, functions: str = "") -> str:
    """Returns the source of a program that reads an input and then does this."""
    return SKELETON % (functions, calls)


FINE = program("")


@functools.cache
def compiled(source: str, compiler: str) -> bytes:
    """Compiles a program, each source once."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name, "toy.c")
        path.write_text(source)
        target = Path(name, "toy")
        words = [*compiler.split(), "-o", str(target), str(path)]
        subprocess.run(words, check=True, capture_output=True)
        return target.read_bytes()


@dataclass(frozen=True)
class Step:
    """A fuzzer's run with a commit: the inputs that broke it, and how many findings live then.

    `built` are commits that get their builds before it, `lost` those that lose them, and `made`
    those that do not exist before. `moves` forces branches to commits, or deletes them, and
    `settings` changes the solver file. If it is `late`, the time for triage is over.
    """

    commit: str
    inputs: tuple[str, ...] = ()
    live: int | None = None
    built: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    moves: Mapping[str, str | None] = field(default_factory=dict)
    settings: str | None = None
    late: bool = False


@dataclass(frozen=True)
class OnBranch:
    """What must be known on a branch: its state, since when, through which merge, and its fix."""

    state: str
    since: str | None = None
    merge: str | None = None
    fixed: str | None = None
    watched: bool = True


@dataclass(frozen=True)
class Expected:
    """A finding that must be there: words of its title, its state, and each time it came.

    `since` are the first bad commits of its origins, `good` the last good one of the newest, and
    `suspects` those of the newest, if given. A commit is blamed only if `exact`, the first
    bad one unless `blamed` is given. `gone` is the commit that ran all inputs fine, and `end` what
    is said about the fix, if given.
    """

    words: str
    state: str = "open"
    since: tuple[str, ...] = ()
    good: str | None = None
    exact: bool = True
    gone: str | None = None
    end: str | None = None
    blamed: str | None = None
    kind: str | None = None
    suspects: tuple[str, ...] | None = None
    branches: Mapping[str, OnBranch] = field(default_factory=dict)


@dataclass(frozen=True)
class History:
    """Commits by name with their programs, what fuzzers do, and what must be known then.

    `side` commits are on a branch that starts at the first commit; the commit "merge" merges it.
    `unbuilt` commits have no build at first. `lines` are more branches: the commit at which each
    starts, and its commits. A commit in `merges` merges other commits into its branch. A commit
    in `touched` changes only that file, whatever its builds do then. The binary of commits in
    `misnamed` has another name, and `compilers` are those of single commits.
    """

    name: str
    commits: dict[str, str]
    steps: tuple[Step, ...]
    expected: tuple[Expected, ...]
    settings: str = ""
    compiler: str = "cc -g -O0"
    compilers: Mapping[str, str] = field(default_factory=dict)
    side: tuple[str, ...] = ()
    unbuilt: tuple[str, ...] = ()
    lines: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)
    merges: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    touched: Mapping[str, str] = field(default_factory=dict)
    misnamed: tuple[str, ...] = ()
    long: bool = False
    duplicates: int = 0


@dataclass
class PlantedWorld:
    """A planted history on this machine."""

    folder: Path
    history: History
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.world = World(self.folder)
        (self.world.repository / "build.sh").write_text(BUILD)
        self._made = 0
        self.settings = self.history.settings
        later = {name for step in self.history.steps for name in step.made}
        self._make(name for name in self.history.commits if name not in later)

    def _make(self, names: Iterable[str]) -> None:
        """Makes commits, and their builds."""
        for name in names:
            self._commit(name, self.history.commits[name])
            if name not in self.history.unbuilt:
                self._store_build(name)

    @property
    def solver(self) -> Solver:
        text = SOLVER.format(repository=self.world.repository, more=self.settings)
        return parse_solver(text.encode(), Path("scripted.yaml"))

    async def run(self) -> None:
        """Runs all steps, and checks after each how many findings live."""
        for step in self.history.steps:
            self._make(step.made)
            self._move(step.moves)
            self.settings = self.settings if step.settings is None else step.settings
            for name in step.built:
                self._store_build(name)
            for name in step.lost:
                key = build_key("scripted", "production", self.names[name])
                await self.world.bucket.delete([key])
            await self.fuzz(step)
            if step.live is not None:
                live = [f.title for f in await self.findings() if f.live]
                assert len(live) == step.live, f"after {step}: {live}"

    async def fuzz(
        self,
        step: Step,
        limit_ms: int = LIMIT_MS,
        cache: Callable[..., BuildCache] = BuildCache,
        notify: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Does what a fuzzer does once its engine has ended."""
        work = self.world.work("fuzzer")
        mirror = Mirror(str(self.world.repository), work / "mirror.git")
        await mirror.fetch()
        builds = cache(self.world.pipeline, fresh_folder(work / "builds"))
        crashes = fresh_folder(work / "crashes")
        for number, text in enumerate(step.inputs):
            (crashes / f"crash-{number}").write_text(text)
        commit = self.names[step.commit]
        build = await builds.fetch(commit)
        assert build is not None
        run = FindingsRun(self.solver, self.world.pipeline, work, builds, mirror, notify)
        deadline = self.world.clock.now_ms() + (0 if step.late else limit_ms)
        seen = await run.examine(commit, build, crashes, deadline, works=True)
        await seen.close_fixed(commit, {finding.key for finding in seen.found}, {})
        await seen.triage.dating.date_again(commit)
        catalogue = seen.known.catalogue
        await run.date_on_branches(catalogue, deadline)
        search = FixSearch({"": run.searches_until(catalogue, deadline)})
        await search.run(list(catalogue.findings.values()))

    async def findings(self) -> list[Finding]:
        return [finding async for finding in FindingStore(self.world.pipeline).all(print)]

    def name_of(self, commit: str | None) -> str | None:
        """Returns the name in the history of a commit's hash."""
        return next((name for name, full in self.names.items() if full == commit), None)

    def _move(self, moves: Mapping[str, str | None]) -> None:
        """Forces branches to other commits, or deletes them."""
        self.world.git("checkout", "--quiet", "--detach")
        for branch, target in moves.items():
            if target is None:
                self.world.git("branch", "--quiet", "-D", branch)
            else:
                self.world.git("branch", "--force", branch, self.names[target])

    def _switch(self, name: str) -> None:
        """Checks out the branch of a commit, and makes it with its first one."""
        for branch, (start, commits) in self.history.lines.items():
            if name in commits:
                where = ("-b", branch, self.names[start]) if name == commits[0] else (branch,)
                self.world.git("checkout", "--quiet", *where)
                return
        if self.names:
            self._to_main()

    def _to_main(self) -> None:
        if self.world.branch() != "main":
            self.world.git("checkout", "--quiet", "main")

    def _merge(self, name: str, source: str) -> None:
        """Merges commits into the branch of this one; the result is this program."""
        world, said = self.world, self.history.merges[name]
        others = [self.names[one] for one in ((said,) if isinstance(said, str) else said)]
        how = ("-X", "theirs") if len(others) == 1 else ("--strategy", "ours")
        world.git("merge", "--quiet", "--no-ff", *how, "--message", name, *others)
        (world.repository / "toy.c").write_text(f"{source}/* {name} */\n")
        world.git("commit", "--quiet", "--all", "--amend", "--no-edit", "--allow-empty")
        self.names[name] = world.head()

    def _commit(self, name: str, source: str) -> None:
        world = self.world
        if self.history.lines:
            self._switch(name)
        if name in self.history.merges:
            self._merge(name, source)
            return
        if name == "merge":
            self._to_main()
            world.git("merge", "--quiet", "--no-ff", "-X", "theirs", "--message", name, "side")
            (world.repository / "toy.c").write_text(source)
            world.git("commit", "--quiet", "--all", "--amend", "--no-edit", "--allow-empty")
            self.names[name] = world.head()
            return
        if name in self.history.side and name == self.history.side[0]:
            first = next(iter(self.names.values()))
            world.git("checkout", "--quiet", "-b", "side", first)
        elif name not in self.history.side and self.history.side and self.names:
            self._to_main()
        self._made += 1
        path = world.repository / self.history.touched.get(name, "toy.c")
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{source}/* {self._made} */\n")
        world.git("add", "--all")
        world.git("commit", "--quiet", "--message", name)
        self.names[name] = world.head()

    def _store_build(self, name: str) -> None:
        folder = fresh_folder(self.folder / "made")
        binary = folder / ("old" if name in self.history.misnamed else "toy")
        compiler = self.history.compilers.get(name, self.history.compiler)
        binary.write_bytes(compiled(self.history.commits[name], compiler))
        binary.chmod(0o755)
        commit = self.names[name]
        about = BuildMetadata(commit=commit, kind="production", root="/", built_at_ms=0)
        archive = self.folder / "made.tar.gz"
        pack(folder, [binary.name], about, archive)
        target = self.folder / "bucket" / build_key("scripted", "production", commit)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read_bytes())
