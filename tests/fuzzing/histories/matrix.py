"""Planted histories of a solver with a matrix: each combination is a way to compile the program.

A step says which inputs broke which combination, which combinations have no build, and which do
nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzzing.histories.planted import (
    LIMIT_MS,
    SOLVER,
    Expected,
    History,
    OnBranch,
    PlantedWorld,
    compiled,
    program,
)
from windlass_fuzz.buckets.layout import build_key
from windlass_fuzz.builds.archive import BuildMetadata, pack
from windlass_fuzz.builds.build_cache import BuildCache
from windlass_fuzz.config.combinations import combinations_of
from windlass_fuzz.config.solver_file import Solver, parse_solver
from windlass_fuzz.roles.combinations.combination_run import CombinationRun, RunSite, fix_search
from windlass_fuzz.roles.engine_factory import fresh_folder
from windlass_fuzz.roles.findings_run import Examined
from windlass_fuzz.sources.mirror import Mirror

CLANG = "clang -g -O0"
SANITIZERS = """
matrix:
  sanitizers:
    - {name: address, options: {sanitizer: true}}
    - {name: undefined, options: {sanitizer: true}}
    - plain
  exclude: [%s]
"""
WAYS = {
    "address": f"{CLANG} -fsanitize=address",
    "undefined": f"{CLANG} -fsanitize=undefined",
    "plain": "cc -g -O0",
}
TARGETS = "matrix: {targets: [one, two]}"
TARGET_WAYS = {"one": "cc -g -O0 -DONE", "two": "cc -g -O0 -DTWO"}


def without(*sanitizers: str) -> str:
    """Returns the matrix without some sanitizers."""
    return SANITIZERS % ", ".join(f"{{sanitizer: {name}}}" for name in sanitizers)


@dataclass(frozen=True)
class MatrixStep:
    """A fuzzer's run: the inputs that broke combinations, and how many findings live then.

    `unbuilt` combinations have no build of the commit, `sick` ones do nothing. `settings`
    replace those of the history from here on. `doubt` is a part of what the only finding says
    about why it is not closed.
    """

    commit: str
    inputs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    live: int | None = None
    unbuilt: tuple[str, ...] = ()
    sick: tuple[str, ...] = ()
    settings: str | None = None
    doubt: str | None = None


@dataclass(frozen=True)
class MatrixHistory:
    """Commits with their programs, how combinations compile them, and what must be known."""

    name: str
    commits: dict[str, str]
    steps: tuple[MatrixStep, ...]
    expected: tuple[Expected, ...]
    settings: str
    ways: Mapping[str, str]
    lines: Mapping[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)


class MatrixWorld(PlantedWorld):
    """A planted history with a matrix on this machine."""

    def __init__(self, folder: Path, history: MatrixHistory) -> None:
        self.planted = history
        plain = History(
            history.name, history.commits, (), (), history.settings, lines=history.lines
        )
        super().__init__(folder, plain)
        for commit in history.commits:
            for name, compiler in history.ways.items():
                self._store(commit, name, compiler)

    @property
    def solver(self) -> Solver:
        text = SOLVER.format(repository=self.world.repository, more=self.settings)
        return parse_solver(text.encode(), Path("scripted.yaml"))

    async def run(self) -> None:
        """Runs all steps, and checks after each how many findings live."""
        for step in self.planted.steps:
            self.settings = self.settings if step.settings is None else step.settings
            await self.play(step)
            live = [one for one in await self.findings() if one.live]
            if step.live is not None:
                assert len(live) == step.live, f"after {step}: {[one.title for one in live]}"
            if step.doubt is not None:
                assert [step.doubt in one.unsure for one in live] == [True], live[0].unsure

    async def play(self, step: MatrixStep) -> None:
        """Does what a fuzzer does with each combination once its engine has ended."""
        work = self.world.work("fuzzer")
        mirror = Mirror(str(self.world.repository), work / "mirror.git")
        await mirror.fetch()
        commit = self.names[step.commit]
        seen: Examined | None = None
        sighted: set[str] = set()
        runs: list[CombinationRun] = []
        for one in combinations_of(self.solver):
            if one.name in step.unbuilt:
                continue
            builds = BuildCache(self.world.pipeline, fresh_folder(work / "builds"), one.name)
            build = await builds.fetch(commit)
            assert build is not None
            crashes = fresh_folder(work / "crashes")
            for number, text in enumerate(step.inputs.get(one.name, ())):
                (crashes / f"crash-{number}").write_text(text)
            run = CombinationRun(one, RunSite(self.world.pipeline, work, mirror, work, commit))
            runs.append(run)
            handling = run.findings(builds, None if seen is None else seen.known.catalogue)
            deadline = self.world.clock.now_ms() + LIMIT_MS
            sick = "nothing ran" if one.name in step.sick else ""
            seen = await handling.examine(commit, build, crashes, deadline, True, sick)
            sighted |= {finding.key for finding in seen.found}
            await seen.triage.dating.date_again(commit)
        assert seen is not None
        await seen.close_fixed(commit, sighted, dict.fromkeys(step.unbuilt, "it was not built"))
        catalogue = seen.known.catalogue
        await handling.date_on_branches(catalogue, deadline)
        await fix_search(runs, catalogue, deadline).run(list(catalogue.findings.values()))

    def _store(self, commit: str, combination: str, compiler: str) -> None:
        folder = fresh_folder(self.folder / "made")
        (folder / "toy").write_bytes(compiled(self.planted.commits[commit], compiler))
        (folder / "toy").chmod(0o755)
        full = self.names[commit]
        about = BuildMetadata(commit=full, kind="production", root="/", built_at_ms=0)
        archive = self.folder / "made.tar.gz"
        pack(folder, ["toy"], about, archive)
        key = build_key("scripted", "production", full, combination)
        target = self.folder / "bucket" / key
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read_bytes())


FINE = program("")
# One byte behind the block: without a sanitizer, nobody notices.
PEEK = """\
static int peek(void) {
  char *block = malloc(8);
  int seen = block[8];
  free(block);
  return seen;
}
"""
SILENT = program('  if (has("X")) return peek() & 0;', PEEK)
LATER_SILENT = program('  if (has("X")) return peek() & 0;', PEEK + "\n/* other */")
# Behind the end of a row: each sanitizer reports it in its own way.
ROW = """\
static int row[4];
static int at(int place) { return row[place]; }
"""
OUTSIDE = program('  if (has("X")) return at(4 + has("XX")) & 0;', ROW)
WIDE = "static int row[4];\nstatic int *begin = row;\nstatic int at(int n) { return begin[n]; }\n"
UNSEEN = program('  if (has("X")) return at(4 + has("XX")) & 0;', WIDE)
READ = "static int read_at(int *place) { return *place; }\n"
SHARED = (
    READ
    + """\
#ifdef ONE
static int enter(void) { return has("X") ? read_at((int *)8) : 0; }
#else
static int start(void) { return has("%s") ? read_at((int *)8) : 0; }
static int enter(void) { return start(); }
#endif
"""
)
BOTH = program("  enter();", SHARED % "Y")
ONE_FIXED = program("  enter();", SHARED.replace('has("X") ? read_at((int *)8)', "0 ? 1") % "Y")
APART = """\
#ifdef ONE
static int enter(void) { return has("X") ? *(volatile int *)8 : 0; }
#else
static int start(void) { return has("X") ? *(volatile int *)16 : 0; }
static int enter(void) { return start(); }
#endif
"""
TWO_BUGS = program("  enter();", APART)
HALF = program("  enter();", APART.replace('has("X") ? *(volatile int *)8', "0 ? 1"))

HISTORIES = (
    MatrixHistory(
        "a bug that only one sanitizer sees is not closed by a build without it",
        {"good": FINE, "bug": SILENT, "later": LATER_SILENT, "fix": FINE},
        (MatrixStep("bug", {"address": ("X",)}, 1),
         MatrixStep("later", {}, 1, unbuilt=("address",), doubt="address: it was not built"),
         MatrixStep("later", {}, 1, doubt=""),
         MatrixStep("fix", {}, 1, unbuilt=("address",), doubt="address: it was not built"),
         MatrixStep("fix", {}, 0)),
        (Expected("heap-buffer-overflow in peek", "closed", ("bug",), "good", gone="fix"),),
        without("undefined"), WAYS,
    ),
    MatrixHistory(
        "on each branch, only a build with the sanitizer can say that the bug is fixed there",
        {"good": FINE, "bug": SILENT, "r1": SILENT, "fix": FINE, "picked": FINE},
        (MatrixStep("bug", {"address": ("X",)}, 1), MatrixStep("fix", {}, 1),
         MatrixStep("picked", {}, 1, unbuilt=("address",), doubt="address: it was not built"),
         MatrixStep("picked", {}, 0)),
        (Expected("heap-buffer-overflow in peek", "closed", ("bug",), "good", gone="fix",
                  branches={"main": OnBranch("fixed", "bug", fixed="fix"),
                            "release/1": OnBranch("fixed", "bug", fixed="picked")}),),
        without("undefined") + "branches: [main, release/1]", WAYS,
        {"release/1": ("bug", ("r1", "picked"))},
    ),
    MatrixHistory(
        "one bug that two targets reach is one finding, closed when both are fine",
        {"good": FINE, "bug": BOTH, "half": ONE_FIXED, "fix": FINE},
        (MatrixStep("bug", {"one": ("X",), "two": ("Y",)}, 1), MatrixStep("half", {}, 1),
         MatrixStep("fix", {}, 0)),
        (Expected("read_at", "closed", ("bug",), "good", gone="fix"),),
        TARGETS, TARGET_WAYS,
    ),
    MatrixHistory(
        "two bugs that one input shows in two targets are two findings",
        {"good": FINE, "bug": TWO_BUGS, "half": HALF},
        (MatrixStep("bug", {"one": ("X",), "two": ("X",)}, 2), MatrixStep("half", {}, 1)),
        (Expected("SIGSEGV in enter", "closed", ("bug",), "good", gone="half"),
         Expected("SIGSEGV in start", since=("bug",), good="good")),
        TARGETS, TARGET_WAYS,
    ),
    MatrixHistory(
        "what two sanitizers call differently is one finding",
        {"good": FINE, "bug": OUTSIDE, "fix": FINE},
        (MatrixStep("bug", {"address": ("X",)}, 1), MatrixStep("bug", {"undefined": ("aXX",)}, 1),
         MatrixStep("fix", {}, 1, unbuilt=("undefined",)), MatrixStep("fix", {}, 0)),
        (Expected("global-buffer-overflow", "closed", ("bug",), "good", gone="fix"),),
        without("plain"), WAYS,
    ),
    MatrixHistory(
        "a sanitizer that sees an old bug later blames nobody",
        {"good": FINE, "bug": UNSEEN, "visible": OUTSIDE},
        (MatrixStep("bug", {"address": ("X",)}, 1),
         MatrixStep("visible", {"undefined": ("aXX",)}, 1)),
        (Expected("global-buffer-overflow", since=("bug",), good="good"),),
        without("plain"), WAYS,
    ),
    MatrixHistory(
        "a combination that left the file keeps its findings open",
        {"good": FINE, "bug": SILENT, "fix": FINE},
        (MatrixStep("bug", {"address": ("X",)}, 1),
         MatrixStep("fix", {}, 1, settings=without("undefined", "address"),
                    doubt="address: it is not in the solver file"),
         MatrixStep("fix", {}, 0, settings=without("undefined"))),
        (Expected("heap-buffer-overflow", "closed", ("bug",), "good", gone="fix"),),
        without("undefined"), WAYS,
    ),
    MatrixHistory(
        "a combination whose runs do nothing closes nothing",
        {"good": FINE, "bug": SILENT, "fix": FINE},
        (MatrixStep("bug", {"address": ("X",)}, 1),
         MatrixStep("fix", {}, 1, sick=("address",), doubt="proves nothing: nothing ran"),
         MatrixStep("fix", {}, 0, sick=("plain",))),
        (Expected("heap-buffer-overflow", "closed", ("bug",), "good", gone="fix"),),
        without("undefined"), WAYS,
    ),
    MatrixHistory(
        "combinations must be fine with one and the same commit",
        {"good": FINE, "bug": BOTH, "other": FINE, "last": FINE},
        (MatrixStep("bug", {"one": ("X",), "two": ("Y",)}, 1),
         MatrixStep("other", {}, 1, unbuilt=("two",)), MatrixStep("last", {}, 1, unbuilt=("one",)),
         MatrixStep("last", {}, 0)),
        (Expected("read_at", "closed", ("bug",), "good", gone="last"),),
        TARGETS, TARGET_WAYS,
    ),
    MatrixHistory(
        "a finding from before the matrix is closed once its combination is known and fine",
        {"good": FINE, "bug": BOTH, "later": BOTH + "/* later */", "fix": FINE},
        (MatrixStep("bug", {"": ("Y",)}, 1, settings=""),
         MatrixStep("later", {}, 1, settings=TARGETS), MatrixStep("fix", {}, 0)),
        (Expected("read_at", "closed", ("bug",), "good", gone="fix"),),
        TARGETS, {"": "cc -g -O0 -DTWO", **TARGET_WAYS},
    ),
    MatrixHistory(
        "a finding from before the matrix that no combination shows stays open",
        {"good": FINE, "bug": BOTH, "fix": FINE},
        (MatrixStep("bug", {"": ("Y",)}, 1, settings=""),
         MatrixStep("fix", {}, 1, settings=TARGETS, doubt="before the file had a matrix")),
        (Expected("read_at", since=("bug",), good="good"),),
        TARGETS, {"": "cc -g -O0 -DTWO", **TARGET_WAYS},
    ),
)  # fmt: skip
