"""Fuzzes one commit with one combination: sets it up, runs it, and examines what fails.

Without a matrix, the solver itself is the only combination.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import Conflict, WindlassError
from windlass.domain.values.quantities import format_duration
from windlass.ports.clock import Clock
from windlass_fuzz.builds.build_cache import BuildCache, LocalBuild
from windlass_fuzz.config.combinations import Combination
from windlass_fuzz.engines.engine import BuildLost, Campaign, Engine, EngineFailed, Statistics
from windlass_fuzz.findings.evidence import Where
from windlass_fuzz.findings.fixes import FixSearch
from windlass_fuzz.findings.known import Catalogue
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.findings.untriaged import Untriaged
from windlass_fuzz.reach.run_measure import RunMeasure, RunReach
from windlass_fuzz.roles.combinations.quiet import Quiet, is_busy, used_ms
from windlass_fuzz.roles.combinations.while_fuzzing import WhileFuzzing
from windlass_fuzz.roles.corpus import Corpus, prune
from windlass_fuzz.roles.engine_factory import EngineFactory, cores_of, fresh_folder, memory_of
from windlass_fuzz.roles.findings_run import Examined, FindingsRun
from windlass_fuzz.roles.seed_runs import SeedRuns, added
from windlass_fuzz.roles.seed_selection import SeedSelection, SeedSelector
from windlass_fuzz.seeds.importer import SeedImporter, Seeds
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.pipeline import Pipeline

MIN_MS: Final = 1_000
TESTS_PART: Final = 4  # at most a quarter of the time is for running unmodified tests
KEEP_EVERY_MS: Final = 2_000


class CombinationReport(msgspec.Struct, kw_only=True):
    """What a run did with one combination; `given_ms` is its share of the budget.

    The build of a `lost` one is gone from the bucket.
    """

    combination: str
    target: str
    engine: str
    outcome: Literal["fuzzed", "unhealthy", "skipped", "lost"]
    why: str = ""
    given_ms: int = 0
    statistics: Statistics | None = None
    findings: list[str] = []
    new_findings: int = 0
    untriaged: int = 0
    corpus: int = 0
    reached: RunReach | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """Everything that was set up for one campaign."""

    engine: Engine
    build: LocalBuild
    builds: BuildCache
    selection: SeedSelection
    corpus: Path
    crashes: Path
    fetched: frozenset[str]
    seeds: Seeds


@dataclass(frozen=True, slots=True)
class RunSite:
    """A commit that is fuzzed, and where: all its combinations share it.

    The commit is checked out in `sources`. Its changes are computed against `base`, or else against
    its first parent. `file` files findings while the engine still runs.
    """

    pipeline: Pipeline
    work: Path
    mirror: Mirror
    sources: Path
    commit: str
    base: str | None = None
    until_bug: bool = False
    quiet_ms: int = 0
    notify: Callable[[str], None] = lambda _: None
    on_progress: Callable[[Statistics], None] = lambda _: None
    file: Callable[[], Awaitable[None]] | None = None


@dataclass(slots=True)
class CombinationRun:
    """One campaign with one combination of a commit."""

    combination: Combination
    site: RunSite

    @property
    def where(self) -> Where:
        """Returns how findings name this combination; a target matters only in a matrix."""
        name = self.combination.name
        return Where(name, self.combination.target if name else "")

    async def select_tests(self) -> SeedSelection:
        """Returns the tests that it starts from."""
        site, one = self.site, self.combination
        selector = SeedSelector(one.solver, site.pipeline, site.notify, one.names.target)
        return await selector.select(site.mirror, site.commit, site.sources, site.base)

    async def set_up(self) -> Session:
        """Prepares the build, the tests, the corpus and the engine."""
        commit = self.site.commit
        title = f"{commit[:12]} {self.combination.name}".strip()
        builds = self.builds("builds")
        build = await builds.fetch(commit)
        if build is None:
            raise BuildLost(f"the binary of {commit} was deleted after it was selected")
        selection = await self.select_tests()
        self.site.notify(f"{title}: {count_of(len(selection.tests), 'test')} ({selection.why})")
        corpus = fresh_folder(self.site.work / "corpus")
        fetched = await self._corpus().fetch(corpus)
        engine = self._factory().engine(build.folder)
        crashes = fresh_folder(self.site.work / "crashes")
        seeds = await self._import_seeds(build)
        selection = selection.with_more(seeds.inputs)
        return Session(engine, build, builds, selection, corpus, crashes, fetched, seeds)

    def builds(self, folder: str) -> BuildCache:
        """Returns the builds of this combination, unpacked in a fresh folder."""
        return BuildCache(
            self.site.pipeline, fresh_folder(self.site.work / folder), self.combination.name
        )

    def while_fuzzing(self, allowance_ms: int) -> WhileFuzzing | None:
        """Returns what triages failures while the engine runs, unless the first one ends it."""
        if self.site.file is None or self.site.until_bug:
            return None
        work = fresh_folder(self.site.work / "early")
        builds = BuildCache(self.site.pipeline, work / "builds", self.combination.name)
        return WhileFuzzing(
            self.findings(builds, work=work), self.site.commit, allowance_ms, self.site.file
        )

    async def fuzz(
        self, session: Session, left_ms: int, early: WhileFuzzing | None = None
    ) -> Statistics:
        """Runs tests and corpus unmodified, then the engine; keeps failing inputs in the bucket."""
        clock = self.site.pipeline.runtime.clock
        untriaged = self._untriaged()
        await untriaged.fetch(self.site.commit, session.crashes)
        began = clock.now_ms()
        keeping = asyncio.create_task(
            _keep_failures(untriaged, self.site.commit, session.crashes, clock)
        )
        try:
            until = began + left_ms // TESTS_PART
            count = await self._run_tests(session, until)
            count.bugs += await self._sift_corpus(session, until)
            left_ms = max(left_ms - (clock.now_ms() - began), MIN_MS)
            if not (self.site.until_bug and count.bugs):
                count = added(count, await self._run_with(early, session, left_ms))
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await untriaged.drop_done(self.site.commit)
            await untriaged.keep(self.site.commit, session.crashes)
        if count.executions == 0:
            raise EngineFailed("the engine executed nothing; the run does not count")
        return count

    async def _run_with(
        self, early: WhileFuzzing | None, session: Session, left_ms: int
    ) -> Statistics:
        """Runs the engine, with the triage beside it."""
        if early is None:
            return await self._run_engine(session, left_ms)
        stopped = asyncio.Event()
        watching = asyncio.create_task(early.run_until(stopped))
        try:
            count = await self._run_engine(session, left_ms)
            stopped.set()
            await watching
            return count
        finally:
            watching.cancel()

    async def _run_engine(self, session: Session, left_ms: int) -> Statistics:
        """Runs the engine for its time, or in parts until it has found nothing new for a while."""
        if not self.site.quiet_ms:
            return await session.engine.fuzz(self._plan(session, left_ms))
        clock = self.site.pipeline.runtime.clock
        quiet = Quiet(self.site.quiet_ms, cores_of(self.combination.solver))
        end = clock.now_ms() + left_ms
        total: Statistics | None = None
        while (left_ms := end - clock.now_ms()) >= MIN_MS or total is None:
            began, used = clock.now_ms(), used_ms()
            part_ms = max(min(quiet.part_ms, left_ms), MIN_MS)
            count = await session.engine.fuzz(self._plan(session, part_ms))
            before = -1 if total is None else total.coverage
            total = count if total is None else added(total, count)
            new = count.coverage > before if count.coverage >= 0 else count.new_inputs > 0
            if self.site.until_bug and count.bugs:
                break
            if quiet.note(new, clock.now_ms() - began, used_ms() - used, is_busy()):
                said = format_duration(self.site.quiet_ms)
                self.site.notify(f"nothing new in {said}: the run ends")
                break
        return total

    async def examine(
        self, session: Session, deadline_ms: int, works: bool, sickness: str,
        catalogue: Catalogue | None,
    ) -> Examined:  # fmt: skip
        """Checks known findings and triages failures; `catalogue` is what is known so far."""
        handling = self.findings(session.builds, catalogue)
        if catalogue is not None:  # what was found while the engine ran is not in it yet
            async for finding in handling.store.all(self.site.notify):
                catalogue.put(finding)
        seen = await handling.examine(
            self.site.commit, session.build, session.crashes, deadline_ms, works, sickness
        )
        await self._untriaged().finish(self.site.commit, seen.left)
        return seen

    def findings(
        self, builds: BuildCache, catalogue: Catalogue | None = None, work: Path | None = None
    ) -> FindingsRun:
        """Returns the handler for the findings of this combination."""
        return FindingsRun(
            self.combination.solver, self.site.pipeline, work or self.site.work, builds,
            self.site.mirror, self.site.notify, self.where, self.combination.env, catalogue,
        )  # fmt: skip

    async def measure(self, session: Session, length_ms: int) -> RunReach | None:
        """Returns what the new inputs reach that tests and corpus did not reach before."""
        folder = fresh_folder(self.site.work / "reach")
        solver = self.combination.solver
        try:
            return await RunMeasure(
                solver, self.site.pipeline, session.builds, folder, cores_of(solver)
            ).run(
                self.site.commit, self.combination.target, session.selection.everything,
                session.corpus, session.fetched, length_ms,
            )  # fmt: skip
        except WindlassError as error:
            self.site.notify(f"cannot tell what the run reached: {error}")
            return None

    async def save_corpus(self, session: Session, prune_ms: int) -> int:
        """Stores the corpus and returns its size; a run counts even if that fails."""
        await prune(session.engine, session.corpus, self.site.work / "scratch", prune_ms)
        try:
            return (await self._corpus().merge(session.corpus, session.fetched)).inputs
        except Conflict as error:
            self.site.notify(f"the corpus was not updated: {error}")
            return 0

    async def _import_seeds(self, build: LocalBuild) -> Seeds:
        """Fetches seeds from outside; reports and leaves out what cannot be used."""
        solver = self.combination.solver
        if not solver.seeds.wanted:
            return Seeds()
        runtime = self.site.pipeline.runtime
        seeds = await SeedImporter(
            solver.seeds, self.site.work, self.site.sources, build.folder, memory_of(solver),
            runtime.clock, runtime.chance,
        ).fetch()  # fmt: skip
        for problem in seeds.problems:
            self.site.notify(f"seeds: {problem}")
        return seeds

    async def _run_tests(self, session: Session, until_ms: int) -> Statistics:
        solver = self.combination.solver
        clock = self.site.pipeline.runtime.clock
        runs = SeedRuns(session.engine, session.crashes, solver.kinds, clock, until_ms)
        count = await runs.run(session.selection.everything, cores_of(solver))
        self.site.on_progress(count)
        return count

    async def _sift_corpus(self, session: Session, until_ms: int) -> int:
        """Runs the corpus, each input with its time limit; returns how many are bugs.

        An engine would spend its time on inputs that hang, so what fails is taken out.
        """
        failing: list[Path] = []
        runs = SeedRuns(
            session.engine, session.crashes, self.combination.solver.kinds,
            self.site.pipeline.runtime.clock, until_ms, failing.append,
        )  # fmt: skip
        inputs = sorted(session.corpus.iterdir())
        count = await runs.run(inputs, cores_of(self.combination.solver))
        for path in failing:
            path.unlink()
        if failing:
            self.site.notify(f"taken out of the corpus: {count_of(len(failing), 'failing input')}")
        return count.bugs

    def _plan(self, session: Session, left_ms: int) -> Campaign:
        solver = self.combination.solver
        return Campaign(
            session.selection.tests, session.corpus, session.crashes, left_ms, cores_of(solver),
            self.site.until_bug, self.site.on_progress, solver.kinds,
            session.seeds.dictionary,
        )  # fmt: skip

    def _factory(self) -> EngineFactory:
        one = self.combination
        site = self.site
        return EngineFactory(one.solver, site.pipeline, site.work, one.env, site.sources)

    def _corpus(self) -> Corpus:
        return Corpus(self.site.pipeline, self.combination.corpus)

    def _untriaged(self) -> Untriaged:
        return Untriaged(self.site.pipeline, self.combination.name)


def fix_search(runs: Sequence[CombinationRun], catalogue: Catalogue, until_ms: int) -> FixSearch:
    """Returns the search for fixes with the builds of all these combinations."""
    return FixSearch({
        run.combination.name: run.findings(
            run.builds(f"fix-builds-{run.combination.name}")
        ).searches_until(catalogue, until_ms)
        for run in runs
    })  # fmt: skip


async def _keep_failures(untriaged: Untriaged, commit: str, crashes: Path, clock: Clock) -> None:
    """Uploads failing inputs while the engine runs, so that a killed run loses nothing."""
    while True:
        await clock.sleep_ms(KEEP_EVERY_MS)
        await untriaged.keep(commit, crashes)
