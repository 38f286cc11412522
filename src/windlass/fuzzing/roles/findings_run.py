"""What follows a campaign: known findings are checked, failures triaged, fixed ones closed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from windlass.domain.values.errors import WindlassError
from windlass.fuzzing.builds.archive import unpack
from windlass.fuzzing.builds.build_cache import BuildCache, LocalBuild
from windlass.fuzzing.builds.build_runner import BuildFailed, BuildRunner
from windlass.fuzzing.config.solver_file import Solver
from windlass.fuzzing.findings.bisect import Bisector
from windlass.fuzzing.findings.dating import Dating
from windlass.fuzzing.findings.known import TRIES, KnownFindings
from windlass.fuzzing.findings.on_branches.search import BranchSearch
from windlass.fuzzing.findings.on_branches.watch import BranchWatch
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.findings.triage import Triage
from windlass.fuzzing.findings.untriaged import Untriaged
from windlass.fuzzing.roles.engine_factory import EngineFactory, fresh_folder
from windlass.fuzzing.sources.mirror import Mirror
from windlass.fuzzing.state.pipeline import Pipeline


@dataclass(slots=True)
class FindingsResult:
    """The findings that were seen, came back and were closed."""

    found: list[Finding] = field(default_factory=list)
    closed: list[Finding] = field(default_factory=list)
    reopened: list[str] = field(default_factory=list)
    left: list[Path] = field(default_factory=list)


@dataclass(slots=True)
class FindingsRun:
    """Handles the findings of one solver; needs a mirror that was fetched."""

    solver: Solver
    pipeline: Pipeline
    work: Path
    builds: BuildCache
    mirror: Mirror
    notify: Callable[[str], None] = lambda _: None
    factory: EngineFactory = field(init=False)
    store: FindingStore = field(init=False)
    branches: BranchWatch = field(init=False)

    def __post_init__(self) -> None:
        self.factory = EngineFactory(self.solver, self.pipeline, self.work)
        self.store = FindingStore(self.pipeline)
        self.branches = BranchWatch(self.mirror, self.solver.watched)

    async def run(
        self, commit: str, build: LocalBuild, crashes: Path, deadline_ms: int, works: bool
    ) -> FindingsResult:
        """Handles what a campaign found; `works` says that the build runs some test."""
        known = self._known(build, deadline_ms, works)
        await known.load()
        await known.check(commit, crashes)
        triage = self._triage(build, known, deadline_ms)
        await triage.dating.date_reopened(known.reopened, commit)
        found = await triage.run(crashes, commit)
        closed = await known.close_gone(commit, {finding.key for finding in found})
        await triage.dating.date_again(commit)
        await BranchSearch(triage.dating, self.branches).run()
        return FindingsResult(found, closed, known.reopened, triage.left)

    async def recheck(
        self, commit: str, build: LocalBuild, deadline_ms: int, works: bool = False
    ) -> FindingsResult:
        """Checks known findings with a build, without a campaign."""
        return await self.run(
            commit, build, fresh_folder(self.work / "crashes"), deadline_ms, works
        )

    async def triage_waiting(self, commit: str, deadline_ms: int) -> list[Finding]:
        """Triages inputs that earlier runs of other commits left, as long as there is time."""
        untriaged = Untriaged(self.pipeline)
        found: list[Finding] = []
        for other in await untriaged.commits():
            if other == commit or self.pipeline.now_ms() >= deadline_ms:
                continue
            build = await self.builds.fetch(other)
            if build is None:
                await untriaged.forget(other)
                continue
            crashes = fresh_folder(self.work / "waiting")
            await untriaged.fetch(other, crashes)
            known = self._known(build, deadline_ms, False)
            await known.load()
            triage = self._triage(build, known, deadline_ms)
            seen = await triage.run(crashes, other)
            await known.note_branches(seen)
            found += seen
            await untriaged.finish(other, triage.left)
        return found

    def bisector(self) -> Bisector:
        """Returns the search for origins; it builds missing commits if the solver allows it."""
        build = self._make if self.solver.bisect == "build" else None
        return Bisector(
            self.builds, self.mirror, self.factory.judge, self.pipeline.runtime.clock, TRIES,
            self.solver.commits.extensions, build,
        )  # fmt: skip

    def _known(self, build: LocalBuild, deadline_ms: int, works: bool) -> KnownFindings:
        return KnownFindings(
            self.factory.judge(build.folder), self.bisector(), self.store,
            fresh_folder(self.work / "known"), self.pipeline.runtime.clock, deadline_ms,
            self.solver.findings.refused_is_fixed, works, self.notify, branches=self.branches,
        )  # fmt: skip

    def _triage(self, build: LocalBuild, known: KnownFindings, deadline_ms: int) -> Triage:
        scratch = fresh_folder(self.work / "triage")
        clock = self.pipeline.runtime.clock
        dating = Dating(
            known.bisector, self.store, known.catalogue, scratch, clock, deadline_ms,
            self.solver.findings.inputs, self.notify,
        )  # fmt: skip
        return Triage(
            known.judge, str(self.solver.engine["name"]), build.folder, dating, self.store,
            scratch, clock, deadline_ms, known.catalogue, self.notify,
        )  # fmt: skip

    async def _make(self, commit: str) -> LocalBuild | None:
        """Builds a commit for a search on this machine; None if it cannot be built."""
        self.notify(f"{commit[:12]}: building it to find the origin")
        runner = BuildRunner(self.solver, self.mirror, self.work, self.pipeline.runtime.clock)
        log = self.work / "bisect-build.log"
        log.write_bytes(b"")
        folder = self.work / "builds" / "searched" / commit
        try:
            return LocalBuild(folder, unpack(await runner.build(commit, "production", log), folder))
        except (BuildFailed, WindlassError) as error:
            self.notify(f"{commit[:12]}: {error}")
            return None
