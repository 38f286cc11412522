"""The fuzzer: selects a commit, fuzzes it from relevant tests, and files what it finds.

The budget covers everything: setup and triage reduce the time for fuzzing. A run in which
nothing was fuzzed does not count.
"""

import asyncio
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import Conflict, NotFound, WindlassError
from windlass.fuzzing.buckets.layout import statistics_prefix
from windlass.fuzzing.builds.build_cache import BuildCache, LocalBuild
from windlass.fuzzing.config.solver_file import Solver
from windlass.fuzzing.engines.engine import (
    Campaign,
    Engine,
    EngineFailed,
    Statistics,
    Target,
    Verdict,
    make_engine,
)
from windlass.fuzzing.errors import InvalidSetting
from windlass.fuzzing.findings.bisect import Bisector
from windlass.fuzzing.findings.issues import IssueTracker, issue_options
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.findings.triage import Triage
from windlass.fuzzing.processes.disk_space import report_disk_full
from windlass.fuzzing.roles.corpus import Corpus, prune
from windlass.fuzzing.roles.fuzz_steps import FuzzSteps
from windlass.fuzzing.roles.seed_selection import SeedSelection, SeedSelector
from windlass.fuzzing.sources.mirror import Mirror
from windlass.fuzzing.state.lease_keeper import LEASE_MS, while_held
from windlass.fuzzing.state.leases import HeldLease
from windlass.fuzzing.state.pipeline import Pipeline

RESERVE: Final = 10  # a tenth of the budget is reserved for triage
MOST_RESERVED_MS: Final = 10 * 60_000
LEAST_MS: Final = 1_000
PRUNE_MS: Final = 5 * 60_000
LEAST_MEMORY: Final = 64 * 1024 * 1024


class FuzzReport(msgspec.Struct, kw_only=True):
    """The result of a fuzzer's run, also stored in the bucket."""

    outcome: Literal["fuzzed", "nothing"]
    commit: str | None = None
    why: str = ""
    tests: int = 0
    chosen_by: str = ""
    setup_ms: int = 0
    statistics: Statistics | None = None
    findings: list[str] = []
    closed: list[str] = []
    issues: list[str] = []
    corpus: int = 0
    fuzz_count: int | None = None
    removed: list[str] = []


@dataclass(slots=True)
class Fuzzer:
    """One run for one commit; `notify` gets messages, `on_progress` the statistics."""

    solver: Solver
    pipeline: Pipeline
    work: Path
    notify: Callable[[str], None] = lambda _: None
    on_progress: Callable[[Statistics], None] = lambda _: None
    lease_ms: int = LEASE_MS
    budget_ms: int = 0
    until_bug: bool = False

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
        counted = await steps.increment(held.commit, held.token)
        report.fuzz_count = counted.fuzz_count
        return report

    async def campaign(self, commit: str) -> FuzzReport:
        """Fuzzes one commit and files its findings; does not touch its lease or count."""
        with report_disk_full(self.work):
            return await self._campaign(commit)

    async def _campaign(self, commit: str) -> FuzzReport:
        began = self.pipeline.now_ms()
        session = await self._set_up(commit)
        budget = self.budget_ms or self.solver.budget_ms
        deadline = began + budget
        setup_ms = self.pipeline.now_ms() - began
        left = max(budget - setup_ms - reserved_of(budget), LEAST_MS)
        statistics = await self._run_engine(session, left)
        report = FuzzReport(
            outcome="fuzzed", commit=commit, tests=len(session.selection.tests),
            chosen_by=session.selection.why, setup_ms=setup_ms, statistics=statistics,
        )  # fmt: skip
        await self._triage_failures(session, commit, report, deadline)
        await self._save_results(session, report)
        return report

    async def classify(self, commit: str, path: Path) -> Verdict:
        """Runs one input with the build of a commit."""
        build = await BuildCache(self.pipeline, _fresh(self.work / "builds")).fetch(commit)
        if build is None:
            raise NotFound("build of commit", commit)
        return await self._engine(build.folder).classify(path)

    async def recheck(self, commit: str) -> list[Finding]:
        """Closes findings that the build of this commit no longer shows."""
        full = await self.resolve_built(commit)
        builds = BuildCache(self.pipeline, _fresh(self.work / "builds"))
        build = await builds.fetch(full)
        assert build is not None  # `resolve_built` has just seen it
        engine = self._engine(build.folder)
        triage = self._triage(engine, build, builds, self.pipeline.now_ms())
        return await triage.recheck(full)

    async def _set_up(self, commit: str) -> "Session":
        """Prepares the checkout, the build, the tests, the corpus and the engine."""
        self.notify(f"{commit[:12]}: setting up")
        mirror = self._mirror()
        await mirror.fetch()
        sources = self.work / "checkout"
        await mirror.checkout(commit, sources)
        builds = BuildCache(self.pipeline, _fresh(self.work / "builds"))
        build = await builds.fetch(commit)
        if build is None:
            raise EngineFailed(f"the binary of {commit} was deleted after it was selected")
        selection = await SeedSelector(self.solver, self.pipeline, self.notify).select(
            mirror, commit, sources
        )
        self.notify(f"{commit[:12]}: {len(selection.tests)} tests ({selection.why})")
        corpus = _fresh(self.work / "corpus")
        fetched = await Corpus(self.pipeline).fetch(corpus)
        engine = self._engine(build.folder)
        crashes = _fresh(self.work / "crashes")
        return Session(engine, build, builds, selection, corpus, crashes, fetched)

    def _engine(self, binaries: Path) -> Engine:
        runtime = self.pipeline.runtime
        scratch = _fresh(self.work / "scratch" / runtime.nonce())
        target = Target(
            binaries, self.solver.engine, scratch, runtime.clock, runtime.chance,
            self.solver.input_timeout_ms, memory_of(self.solver),
        )  # fmt: skip
        return make_engine(str(self.solver.engine["name"]), target)

    async def _run_engine(self, session: "Session", left_ms: int) -> Statistics:
        campaign = Campaign(
            session.selection.tests, session.corpus, session.crashes, left_ms,
            cores_of(self.solver), self.until_bug, self.on_progress,
        )  # fmt: skip
        statistics = await session.engine.fuzz(campaign)
        if statistics.executions == 0:
            raise EngineFailed("the engine executed nothing; the run does not count")
        return statistics

    async def _triage_failures(
        self, session: "Session", commit: str, report: FuzzReport, deadline_ms: int
    ) -> None:
        triage = self._triage(session.engine, session.build, session.builds, deadline_ms)
        found = await triage.run(session.crashes, commit)
        gone = await triage.recheck(commit)
        report.findings = [finding.key for finding in found]
        report.closed = [finding.key for finding in gone]
        await self._sync_issues(triage.store, report)

    def _triage(
        self, engine: Engine, build: LocalBuild, builds: BuildCache, deadline_ms: int
    ) -> Triage:
        bisector = Bisector(builds, self._mirror(), self._engine, tries=TRIES)
        return Triage(
            engine, str(self.solver.engine["name"]), build.folder, bisector,
            FindingStore(self.pipeline), _fresh(self.work / "triage"), self.pipeline.runtime.clock,
            deadline_ms, self.notify,
        )  # fmt: skip

    async def _sync_issues(self, store: FindingStore, report: FuzzReport) -> None:
        """Updates issues; if the project does not answer, the next run does it."""
        options = issue_options(self.solver.issues)
        if options is None:
            return
        tracker = IssueTracker(options, self.solver.name, self.pipeline.runtime.clock)
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

    def _mirror(self) -> Mirror:
        return Mirror(self.solver.repository, self.work / "mirror.git")


TRIES: Final = 3


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


def reserved_of(budget_ms: int) -> int:
    """Returns how much of a budget is reserved for triage."""
    return min(budget_ms // RESERVE, MOST_RESERVED_MS)


def cores_of(solver: Solver) -> int:
    """Returns how many cores to use: the solver file's number, or all that this process may use."""
    return solver.cores or len(os.sched_getaffinity(0))


def memory_of(solver: Solver) -> int:
    """Returns the memory limit per run, so that all cores together fit into this machine."""
    with open("/proc/meminfo") as file:
        facts = dict(line.split(":", 1) for line in file)
    available = int(facts["MemAvailable"].split()[0]) * 1024
    return min(solver.memory_bytes, max(available // cores_of(solver), LEAST_MEMORY))


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
