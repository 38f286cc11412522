"""The work after a campaign: known findings are checked, failures triaged, fixed ones closed.

With a matrix, this happens for each combination, and findings are closed after the last one.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.builds.archive import unpack
from windlass_fuzz.builds.build_cache import BuildCache, LocalBuild
from windlass_fuzz.builds.build_runner import BuildFailed, BuildRunner
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.signature import Signature
from windlass_fuzz.findings.bisect import Bisector
from windlass_fuzz.findings.claims import Claims
from windlass_fuzz.findings.dating import Dating
from windlass_fuzz.findings.evidence import Where
from windlass_fuzz.findings.known import TRIES, Catalogue, KnownFindings
from windlass_fuzz.findings.on_branches.search import BranchSearch
from windlass_fuzz.findings.on_branches.watch import BranchWatch
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.sightings import ANYWHERE
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.findings.triage import Triage
from windlass_fuzz.findings.untriaged import Untriaged
from windlass_fuzz.roles.engine_factory import EngineFactory, fresh_folder
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.documents import CommitTimes
from windlass_fuzz.state.pipeline import Pipeline

DATING: Final = 4  # the last quarter of the time for triage is for origins


@dataclass(slots=True)
class Examined:
    """What one combination says about the findings, before any of them is closed."""

    known: KnownFindings
    triage: Triage
    found: list[Finding]

    async def close_fixed(
        self, commit: str, sighted: set[str], reasons: Mapping[str, str]
    ) -> list[Finding]:
        """Closes findings that all their combinations run fine; records why others stay open.

        It comes after the last combination. `reasons` say why some combinations of the file did not
        run.
        """
        closed = await self.known.close_gone(commit, sighted)
        await self.known.note_missing(commit, reasons)
        return closed

    @property
    def reopened(self) -> list[str]:
        return self.known.reopened

    @property
    def left(self) -> list[Path]:
        return self.triage.left


@dataclass(slots=True)
class FindingsRun:
    """Handles the findings of one combination of a solver; needs a fetched mirror.

    `catalogue` are the findings as earlier combinations of this run left them, if any. Unless it
    runs known inputs `again`, those that have run with a build are not run with it. `waiting` are
    failures of each commit that nobody had time to examine.
    """

    solver: Solver
    pipeline: Pipeline
    work: Path
    builds: BuildCache
    mirror: Mirror
    notify: Callable[[str], None] = lambda _: None
    where: Where = ANYWHERE
    env: Mapping[str, str] = field(default_factory=dict)
    catalogue: Catalogue | None = None
    again: bool = True
    waiting: dict[str, list[Signature]] = field(default_factory=dict)
    factory: EngineFactory = field(init=False)
    store: FindingStore = field(init=False)
    branches: BranchWatch = field(init=False)

    def __post_init__(self) -> None:
        self.factory = EngineFactory(self.solver, self.pipeline, self.work, self.env)
        self.store = FindingStore(self.pipeline)
        self.branches = BranchWatch(self.mirror, self.solver.watched)

    async def examine(
        self, commit: str, build: LocalBuild, crashes: Path, deadline_ms: int, works: bool,
        sickness: str = "",
    ) -> Examined:  # fmt: skip
        """Checks known findings and triages failures with one build, and closes nothing.

        However many failures there are, some time is left to search for origins. `sickness` says
        why the run of this build does not count, if so.
        """
        known = await self._known(build, deadline_ms, works)
        known.sickness = sickness
        await known.check(commit, crashes)
        triage = await self._triage(build, known, deadline_ms)
        await triage.dating.date_reopened(known.reopened, commit)
        found = await triage.run(crashes, commit)
        return Examined(known, triage, found)

    async def date_on_branches(self, catalogue: Catalogue, deadline_ms: int) -> None:
        """Finds out since when live findings are on their branches, while there is time."""
        await BranchSearch(self.searches_until(catalogue, deadline_ms), self.branches).run()

    def searches_until(self, catalogue: Catalogue, deadline_ms: int) -> Dating:
        """Returns what searches the builds of this combination for origins and fixes."""
        scratch = fresh_folder(self.work / "searched" / self.where.combination)
        return self._dating(self.bisector(), catalogue, scratch, deadline_ms)

    async def triage_waiting(self, commit: str, deadline_ms: int) -> list[Finding]:
        """Triages inputs that earlier runs of other commits left, while there is time.

        If such a commit has no build any more, they wait for the next run of this one.
        """
        untriaged = Untriaged(self.pipeline, self.where.combination)
        found: list[Finding] = []
        for other in await untriaged.commits():
            if other == commit or self.pipeline.now_ms() >= deadline_ms:
                continue
            if await self.builds.fetch(other) is None:
                await untriaged.pass_on(other, commit)
            else:
                found += await self.triage_commit(other, deadline_ms)
        return found

    async def triage_commit(
        self, commit: str, deadline_ms: int, looked: set[str] | None = None
    ) -> list[Finding]:
        """Triages the inputs of a commit that are in the bucket, if it has a build.

        While the commit is fuzzed, inputs that show nothing new are left: the bucket is asked for
        new ones again, and `looked` are the keys of those that were run before.
        """
        build = await self.builds.fetch(commit)
        crashes = fresh_folder(self.work / "waiting")
        untriaged = Untriaged(self.pipeline, self.where.combination)
        keys = await untriaged.fetch(commit, crashes, looked or ())
        if build is None or not keys:
            return []
        known = await self._known(build, deadline_ms, False)
        triage = await self._triage(build, known, deadline_ms)
        triage.only_new = looked is not None
        triage.drop_done = partial(untriaged.drop_done, commit)
        found = await triage.run(crashes, commit)
        await known.note_branches(found)
        self.waiting[commit] = known.catalogue.waiting
        await untriaged.finish(commit, triage.left, keys)
        if looked is not None:
            looked.update(keys)
        return found

    def bisector(self) -> Bisector:
        """Returns the search for origins; it builds missing commits if the solver allows it."""
        build = self.make if self.solver.bisect == "build" else None
        return Bisector(
            self.builds, self.mirror, self.factory.judge, self.pipeline.runtime.clock, TRIES,
            self.solver.commits.extensions, build, self.where.combination, self.solver.tests,
        )  # fmt: skip

    async def _known(self, build: LocalBuild, deadline_ms: int, works: bool) -> KnownFindings:
        known = KnownFindings(
            self.factory.judge(build.folder), self.bisector(), self.store,
            fresh_folder(self.work / "known"), self.pipeline.runtime.clock, deadline_ms,
            self.solver.findings.refused_is_fixed, works, self.notify, where=self.where,
            branches=self.branches, binaries=build.folder, again=self.again,
        )  # fmt: skip
        if self.catalogue is None:
            await known.load()
        else:
            known.catalogue = self.catalogue
        return known

    async def _triage(self, build: LocalBuild, known: KnownFindings, deadline_ms: int) -> Triage:
        """Returns the triage, whose searches for origins may go on until the deadline."""
        left = max(deadline_ms - self.pipeline.now_ms(), 0)
        scratch = fresh_folder(self.work / "triage")
        clock = self.pipeline.runtime.clock
        dating = self._dating(known.bisector, known.catalogue, scratch, deadline_ms)
        return Triage(
            known.judge, str(self.solver.engine["name"]), build.folder, dating, self.store,
            scratch, clock, deadline_ms - left // DATING, known.catalogue,
            Claims(self.pipeline, deadline_ms), self.notify, where=self.where,
            moments=await self._moments(build),
        )  # fmt: skip

    async def _moments(self, build: LocalBuild) -> dict[str, int]:
        """Returns when a commit was made, seen by the manager, built and scheduled."""
        commit, times, committed_ms = build.metadata.commit, CommitTimes(), 0
        with suppress(WindlassError):  # nothing depends on it
            committed_ms = await self.mirror.committed_ms(commit)
            times = await self.pipeline.times.read()
        known = {
            "committed": committed_ms,
            "pushed": times.pushed.get(commit, 0),
            "built": build.metadata.built_at_ms,
            "scheduled": times.scheduled.get(commit, 0),
        }
        return {name: at for name, at in known.items() if at}

    def _dating(
        self, bisector: Bisector, catalogue: Catalogue, scratch: Path, deadline_ms: int
    ) -> Dating:
        return Dating(
            bisector, self.store, catalogue, scratch, self.pipeline.runtime.clock, deadline_ms,
            self.solver.findings.inputs, self.notify, self.where,
        )  # fmt: skip

    async def make(self, commit: str) -> LocalBuild | None:
        """Builds a commit for a search on this machine; returns None if it cannot be built."""
        if commit in (await self.pipeline.queue.read()).failed:
            return None
        self.notify(f"{commit[:12]}: building it")
        runner = BuildRunner(self.solver, self.mirror, self.work, self.pipeline.runtime.clock)
        log = self.work / "bisect-build.log"
        log.write_bytes(b"")
        folder = self.work / "builds" / "searched" / self.where.combination / commit
        try:
            archive = await runner.build(commit, "production", log, self.where.combination)
            return LocalBuild(folder, unpack(archive, folder))
        except (BuildFailed, WindlassError) as error:
            self.notify(f"{commit[:12]}: {error}")
            return None
