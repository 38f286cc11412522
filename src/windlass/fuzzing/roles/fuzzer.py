"""The fuzzer: selects a commit, fuzzes it from relevant tests, and files what it finds.

The budget covers everything: setup and triage reduce the time for fuzzing. A run in which
nothing was fuzzed, or nothing ran to an answer, does not count.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import Conflict, NotFound, WindlassError
from windlass.fuzzing.alarms.sender import alarm_of, send_alarm
from windlass.fuzzing.buckets.layout import statistics_prefix
from windlass.fuzzing.builds.build_cache import BuildCache, LocalBuild
from windlass.fuzzing.config.solver_file import Solver
from windlass.fuzzing.engines.engine import (
    Campaign,
    Engine,
    EngineFailed,
    Statistics,
    Verdict,
)
from windlass.fuzzing.errors import InvalidSetting
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.findings.untriaged import Untriaged
from windlass.fuzzing.processes.disk_space import report_disk_full
from windlass.fuzzing.reach.run_measure import RunMeasure, RunReach
from windlass.fuzzing.roles.corpus import Corpus, prune
from windlass.fuzzing.roles.engine_factory import EngineFactory, cores_of, fresh_folder, memory_of
from windlass.fuzzing.roles.findings_run import FindingsRun
from windlass.fuzzing.roles.fuzz_steps import FuzzSteps
from windlass.fuzzing.roles.run_health import record_health, sickness_of
from windlass.fuzzing.roles.seed_runs import SeedRuns, added
from windlass.fuzzing.roles.seed_selection import SeedSelection, SeedSelector, find_tests
from windlass.fuzzing.seeds.importer import SeedImporter, Seeds
from windlass.fuzzing.sources.mirror import Mirror
from windlass.fuzzing.state.lease_keeper import LEASE_MS, while_held
from windlass.fuzzing.state.leases import HeldLease
from windlass.fuzzing.state.pipeline import Pipeline
from windlass.fuzzing.statistics.history import RunPoint, record_run
from windlass.fuzzing.trackers.filing import IssueFiler
from windlass.fuzzing.trackers.options import issue_options
from windlass.ports.clock import Clock

RESERVE: Final = 10  # a tenth of the budget is reserved for triage
LEAST_RESERVED_MS: Final = 5_000
LEAST_MS: Final = 1_000
MEASURING: Final = 20  # a part of the budget is for measuring what was reached, and at most
MEASURING_MS: Final = 10 * 60_000
PRUNE_MS: Final = 5 * 60_000
TESTS_PART: Final = 4  # a quarter of the time at most is for running tests as they are
TESTS_TO_TRY: Final = 5
KEEP_EVERY_MS: Final = 2_000
FULL_HASH: Final = 40
REPORTS_KEPT: Final = 1_000


class FuzzReport(msgspec.Struct, kw_only=True):
    """The result of a fuzzer's run, also stored in the bucket.

    `reached` is what it reached that nothing had before, None if that is not known.
    """

    outcome: Literal["fuzzed", "nothing", "unhealthy"]
    commit: str | None = None
    why: str = ""
    tests: int = 0
    chosen_by: str = ""
    setup_ms: int = 0
    statistics: Statistics | None = None
    findings: list[str] = []
    closed: list[str] = []
    issues: list[str] = []
    untriaged: int = 0
    marked_bad: bool = False
    corpus: int = 0
    fuzz_count: int | None = None
    removed: list[str] = []
    seed_problems: list[str] = []
    began_at_ms: int = 0
    new_findings: int = 0
    reached: RunReach | None = None


@dataclass(slots=True)
class Fuzzer:
    """One run for one commit; `notify` gets messages, `on_progress` the statistics.

    What the commit changed is seen against `base`, or else against its first parent.
    """

    solver: Solver
    pipeline: Pipeline
    work: Path
    notify: Callable[[str], None] = lambda _: None
    on_progress: Callable[[Statistics], None] = lambda _: None
    lease_ms: int = LEASE_MS
    budget_ms: int = 0
    until_bug: bool = False
    base: str | None = None

    async def run_once(self, commit: str | None = None) -> FuzzReport:
        """Fuzzes the given commit, or the least fuzzed one."""
        steps = FuzzSteps(self.pipeline)
        if commit is not None:
            commit = await self.resolve_built(commit)
            await steps.add(commit)
        selected = await steps.select(self.lease_ms, commit)
        removed = list(selected.removed)
        if selected.held is None:
            why = f"nothing to fuzz: {self._why_not(commit, removed)}"
            return FuzzReport(outcome="nothing", why=why, removed=removed)
        report = await self._fuzz(steps, selected.held)
        report.removed = removed
        return report

    async def resolve_built(self, commit: str) -> str:
        """Returns the full hash of a commit that a person named; raises if it has no binary."""
        mirror = self._mirror()
        await mirror.fetch()
        full = await mirror.require(commit)
        if not await self.pipeline.has_build(full, ("production",)):
            command = f"windlass fuzz builder {self.solver.name} --commit {full}"
            raise InvalidSetting("commit", f"commit {full} has no binary; run {command}", full)
        return full

    def _why_not(self, commit: str | None, removed: list[str]) -> str:
        if commit is not None and commit not in removed:
            return f"another fuzzer is fuzzing {commit}"
        return "no commit in the schedule is free and has a binary"

    async def _fuzz(self, steps: FuzzSteps, held: HeldLease) -> FuzzReport:
        clock = self.pipeline.runtime.clock
        try:
            report = await while_held(steps, held, self.lease_ms, clock, self.campaign(held.commit))
        except BaseException:
            await asyncio.shield(steps.release(held))
            raise
        if report.outcome == "unhealthy":
            await steps.release(held)
            return report
        counted = await steps.increment(held.commit, held.token)
        report.fuzz_count = counted.fuzz_count
        return report

    async def campaign(self, commit: str) -> FuzzReport:
        """Fuzzes one commit and files its findings; does not touch its lease or count."""
        with report_disk_full(self.work):
            report = await self._campaign(commit)
        report.marked_bad = await record_health(
            self.pipeline, commit, report.why, self.solver.health
        )
        await self._alarm(commit, report)
        return report

    async def _alarm(self, commit: str, report: FuzzReport) -> None:
        """Tells people of the first run that did nothing, and of a build that is given up."""
        bad = (await self.pipeline.health.read()).commits.get(commit) if report.why else None
        if bad is not None and (bad.runs == 1 or report.marked_bad):
            alarm = alarm_of(
                self.solver.name, commit, report.why, bad.runs, self.pipeline.now_ms(),
                report.marked_bad,
            )  # fmt: skip
            await send_alarm(alarm, self.solver.alarms, self.pipeline.runtime.clock, self.notify)

    async def _campaign(self, commit: str) -> FuzzReport:
        began = self.pipeline.now_ms()
        session = await self._set_up(commit)
        budget = self.budget_ms or self.solver.budget_ms
        setup_ms = self.pipeline.now_ms() - began
        reserved = reserved_of(budget, self.solver)
        measuring = min(budget // MEASURING, MEASURING_MS)
        left = max(budget - setup_ms - reserved - measuring, LEAST_MS)
        statistics = await self._run_engine(session, commit, left)
        report = FuzzReport(
            outcome="fuzzed", commit=commit, tests=len(session.selection.tests),
            chosen_by=session.selection.why, setup_ms=setup_ms, statistics=statistics,
            why=sickness_of(statistics, self.solver.health),
            seed_problems=session.seeds.problems, began_at_ms=began,
        )  # fmt: skip
        if report.why:
            report.outcome = "unhealthy"
        await self._triage_failures(session, commit, report, self.pipeline.now_ms() + reserved)
        report.reached = await self._measure(session, commit, measuring)
        await self._save_results(session, report)
        return report

    async def _measure(self, session: "Session", commit: str, length_ms: int) -> RunReach | None:
        """Says what the new inputs reach that tests and corpus did not before."""
        folder = fresh_folder(self.work / "reach")
        try:
            return await RunMeasure(
                self.solver, self.pipeline, session.builds, folder, cores_of(self.solver)
            ).run(
                commit, target_of(self.solver), session.selection.everything, session.corpus,
                session.fetched, length_ms,
            )  # fmt: skip
        except WindlassError as error:
            self.notify(f"not known what the run reached: {error}")
            return None

    async def classify(self, commit: str, path: Path) -> Verdict:
        """Runs one input with the build of a commit."""
        build = await self.fetch_build(commit)
        return (
            await EngineFactory(self.solver, self.pipeline, self.work)
            .engine(build.folder)
            .classify(path)
        )

    async def fetch_build(self, commit: str) -> LocalBuild:
        """Returns the build of a commit; raises if it is gone."""
        cache = BuildCache(self.pipeline, fresh_folder(self.work / "builds"))
        build = await cache.fetch(await self._full_name(commit))
        if build is None:
            raise NotFound("build of commit", commit)
        return build

    async def _full_name(self, commit: str) -> str:
        """Returns the full hash for a short one."""
        if len(commit) >= FULL_HASH:
            return commit
        mirror = self._mirror()
        await mirror.fetch()
        return await mirror.require(commit)

    async def recheck(self, commit: str) -> list[Finding]:
        """Closes findings that the build of this commit no longer shows."""
        full = await self.resolve_built(commit)
        builds = BuildCache(self.pipeline, fresh_folder(self.work / "builds"))
        build = await builds.fetch(full)
        assert build is not None  # `resolve_built` has just seen it
        mirror = self._mirror()
        deadline = self.pipeline.now_ms() + self.solver.findings.triage_ms
        checking = FindingsRun(self.solver, self.pipeline, self.work, builds, mirror, self.notify)
        works = self.solver.findings.refused_is_fixed and await self._works(mirror, full, build)
        return (await checking.recheck(full, build, deadline, works)).closed

    async def _works(self, mirror: Mirror, commit: str, build: LocalBuild) -> bool:
        """Returns whether a build runs one of its tests to an answer."""
        sources = self.work / "checkout"
        await mirror.checkout(commit, sources)
        tests = list(find_tests(sources, self.solver.tests).values())[:TESTS_TO_TRY]
        clock = self.pipeline.runtime.clock
        engine = EngineFactory(self.solver, self.pipeline, self.work).engine(build.folder)
        runs = SeedRuns(
            engine, fresh_folder(self.work / "crashes"), (), clock, clock.now_ms() + LEAST_MS
        )
        return bool((await runs.run(tests, cores_of(self.solver))).tests_fine)

    async def _set_up(self, commit: str) -> "Session":
        """Prepares the checkout, the build, the tests, the corpus and the engine."""
        self.notify(f"{commit[:12]}: setting up")
        mirror = self._mirror()
        await mirror.fetch()
        sources = self.work / "checkout"
        await mirror.checkout(commit, sources)
        builds = BuildCache(self.pipeline, fresh_folder(self.work / "builds"))
        build = await builds.fetch(commit)
        if build is None:
            raise EngineFailed(f"the binary of {commit} was deleted after it was selected")
        selection = await SeedSelector(self.solver, self.pipeline, self.notify).select(
            mirror, commit, sources, self.base
        )
        self.notify(f"{commit[:12]}: {len(selection.tests)} tests ({selection.why})")
        corpus = fresh_folder(self.work / "corpus")
        fetched = await Corpus(self.pipeline).fetch(corpus)
        engine = EngineFactory(self.solver, self.pipeline, self.work).engine(build.folder)
        crashes = fresh_folder(self.work / "crashes")
        seeds = await self._import_seeds(sources, build)
        selection = selection.with_more(seeds.inputs)
        return Session(engine, build, builds, mirror, selection, corpus, crashes, fetched, seeds)

    async def _import_seeds(self, sources: Path, build: LocalBuild) -> Seeds:
        """Fetches seeds from outside; what cannot be used is said, and left out."""
        if not self.solver.seeds.wanted:
            return Seeds()
        runtime = self.pipeline.runtime
        seeds = await SeedImporter(
            self.solver.seeds, self.work, sources, build.folder, memory_of(self.solver),
            runtime.clock, runtime.chance,
        ).fetch()  # fmt: skip
        for problem in seeds.problems:
            self.notify(f"seeds: {problem}")
        return seeds

    async def _run_engine(self, session: "Session", commit: str, left_ms: int) -> Statistics:
        """Runs the tests as they are, then the engine; keeps what fails in the bucket."""
        clock = self.pipeline.runtime.clock
        untriaged = Untriaged(self.pipeline)
        await untriaged.fetch(commit, session.crashes)
        began = clock.now_ms()
        keeping = asyncio.create_task(_keep_failures(untriaged, commit, session.crashes, clock))
        try:
            count = await self._run_tests(session, began + left_ms // TESTS_PART)
            left_ms = max(left_ms - (clock.now_ms() - began), LEAST_MS)
            if not (self.until_bug and count.bugs):
                count = added(count, await session.engine.fuzz(self._plan(session, left_ms)))
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await untriaged.keep(commit, session.crashes)
        if count.executions == 0:
            raise EngineFailed("the engine executed nothing; the run does not count")
        return count

    async def _run_tests(self, session: "Session", until_ms: int) -> Statistics:
        clock = self.pipeline.runtime.clock
        kinds = self.solver.findings.kinds
        runs = SeedRuns(session.engine, session.crashes, kinds, clock, until_ms)
        count = await runs.run(session.selection.everything, cores_of(self.solver))
        self.on_progress(count)
        return count

    def _plan(self, session: "Session", left_ms: int) -> Campaign:
        return Campaign(
            session.selection.tests, session.corpus, session.crashes, left_ms,
            cores_of(self.solver), self.until_bug, self.on_progress, self.solver.findings.kinds,
            session.seeds.dictionary,
        )  # fmt: skip

    async def _triage_failures(
        self, session: "Session", commit: str, report: FuzzReport, deadline_ms: int
    ) -> None:
        assert report.statistics is not None
        handling = FindingsRun(
            self.solver, self.pipeline, self.work, session.builds, session.mirror, self.notify
        )
        works = bool(report.statistics.tests_fine)
        result = await handling.run(commit, session.build, session.crashes, deadline_ms, works)
        await Untriaged(self.pipeline).finish(commit, result.left)
        waiting = await handling.triage_waiting(commit, deadline_ms)
        keys = [finding.key for finding in [*result.found, *waiting]]
        report.findings = list(dict.fromkeys([*result.reopened, *keys]))
        report.closed = [finding.key for finding in result.closed]
        fresh = {f.key for f in [*result.found, *waiting] if f.found_at_ms >= report.began_at_ms}
        report.new_findings = len(fresh)
        report.untriaged = len(result.left)
        await self._sync_issues(handling.store, report)

    async def _sync_issues(self, store: FindingStore, report: FuzzReport) -> None:
        """Updates issues; if the project does not answer, the next run does it."""
        options = issue_options(self.solver.issues)
        if options is None:
            return
        tracker = IssueFiler(options, self.solver.name, self.pipeline.runtime.clock)
        try:
            settled = await tracker.sync_all(store, self.notify)
            report.issues = [finding.issue for finding in settled]
        except WindlassError as error:
            self.notify(f"could not update issues: {error}")
        finally:
            await tracker.close()

    async def _save_results(self, session: "Session", report: FuzzReport) -> None:
        """Stores the corpus and the report; a run counts even if the corpus cannot be stored."""
        await prune(session.engine, session.corpus, self.work / "scratch", PRUNE_MS)
        try:
            merged = await Corpus(self.pipeline).merge(session.corpus, session.fetched)
            report.corpus = merged.inputs
        except Conflict as error:
            self.notify(f"the corpus was not updated: {error}")
        name = f"{self.pipeline.now_ms()}-{self.pipeline.runtime.nonce()}.json"
        key = f"{statistics_prefix(self.solver.name)}/{name}"
        await self.pipeline.bucket.put(key, msgspec.json.encode(report))
        await self._record(report)

    async def _record(self, report: FuzzReport) -> None:
        """Adds the run to the history; a run counts even if that cannot be written."""
        count, reached = report.statistics or Statistics(), report.reached
        try:
            await record_run(self.pipeline, RunPoint(
                at_ms=self.pipeline.now_ms(), commit=report.commit or "",
                engine=str(self.solver.engine["name"]), target=target_of(self.solver),
                healthy=report.outcome == "fuzzed", executions=count.executions,
                seconds=count.seconds, coverage=count.coverage, corpus=report.corpus,
                new_inputs=count.new_inputs, findings=len(report.findings),
                new_findings=report.new_findings, closed=len(report.closed),
                new_functions=-1 if reached is None else reached.function_count,
                new_lines=-1 if reached is None else reached.line_count,
                problems=report.seed_problems,
            ))  # fmt: skip
        except WindlassError as error:
            self.notify(f"the statistics were not updated: {error}")
        await forget_old_reports(self.pipeline)

    def _mirror(self) -> Mirror:
        return Mirror(self.solver.repository, self.work / "mirror.git")


@dataclass(frozen=True, slots=True)
class Session:
    """Everything that was set up for one campaign."""

    engine: Engine
    build: LocalBuild
    builds: BuildCache
    mirror: Mirror
    selection: SeedSelection
    corpus: Path
    crashes: Path
    fetched: frozenset[str]
    seeds: Seeds


def target_of(solver: Solver) -> str:
    """Returns the name of what the engine runs: a file of the build."""
    named = solver.engine.get("binary") or solver.binaries[0]
    return str(named)


async def forget_old_reports(pipeline: Pipeline) -> None:
    """Deletes the oldest reports of runs; their names start with their time."""
    prefix = statistics_prefix(pipeline.solver)
    keys = [item.key async for item in pipeline.bucket.list(prefix)]
    if len(keys) > REPORTS_KEPT:
        await pipeline.bucket.delete(sorted(keys)[:-REPORTS_KEPT])


def reserved_of(budget_ms: int, solver: Solver) -> int:
    """Returns how much of a budget is reserved for triage."""
    return min(max(budget_ms // RESERVE, LEAST_RESERVED_MS), solver.findings.triage_ms)


async def _keep_failures(untriaged: Untriaged, commit: str, crashes: Path, clock: Clock) -> None:
    """Uploads what fails while the engine runs, so that a killed run loses nothing."""
    while True:
        await clock.sleep_ms(KEEP_EVERY_MS)
        await untriaged.keep(commit, crashes)
