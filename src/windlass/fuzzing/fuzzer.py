"""The fuzzer: selects a commit, fuzzes it from the tests that matter, files what it finds.

Its budget covers everything: what setting up takes, and what looking into failures may take,
is not fuzzed. A run in which nothing was fuzzed does not count.
"""

import asyncio
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import Conflict, InvalidInput, NotFound, WindlassError
from windlass.fuzzing.archives import room_needed
from windlass.fuzzing.board import Board
from windlass.fuzzing.builds import Builds, LocalBuild
from windlass.fuzzing.checkout import Mirror
from windlass.fuzzing.choosing import Chooser, Chosen
from windlass.fuzzing.corpus import Corpus, prune
from windlass.fuzzing.engines.engine import (
    Campaign,
    Engine,
    EngineFailed,
    Statistics,
    Target,
    Verdict,
    make_engine,
)
from windlass.fuzzing.findings.issues import IssueDesk, issue_options
from windlass.fuzzing.findings.judging import Judge
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.shelf import Shelf
from windlass.fuzzing.findings.triage import Triage
from windlass.fuzzing.holding import LEASE_MS, while_held
from windlass.fuzzing.layout import statistics_prefix
from windlass.fuzzing.leases import Held
from windlass.fuzzing.solver import Solver
from windlass.fuzzing.steps_fuzz import FuzzSteps

RESERVE: Final = 10  # one part in so many of the budget is for looking into failures
MOST_RESERVED_MS: Final = 10 * 60_000
LEAST_MS: Final = 1_000
PRUNE_MS: Final = 5 * 60_000
LEAST_MEMORY: Final = 64 * 1024 * 1024


class FuzzReport(msgspec.Struct, kw_only=True):
    """What a run of the fuzzer did, as it is kept in the bucket."""

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
    """One run for one commit; `told` hears what is going on, `counted` how far it is."""

    solver: Solver
    board: Board
    work: Path
    told: Callable[[str], None] = lambda _: None
    counted: Callable[[Statistics], None] = lambda _: None
    lease_ms: int = LEASE_MS
    budget_ms: int = 0
    until_bug: bool = False

    async def run_once(self, commit: str | None = None) -> FuzzReport:
        """Fuzz the least fuzzed commit, or this one."""
        steps = FuzzSteps(self.board)
        if commit is not None:
            commit = await self.known(commit)
            await steps.add(commit)
        selected = await steps.select(self.lease_ms, commit)
        removed = list(selected.removed)
        if selected.held is None:
            why = f"nothing to fuzz: {self._why_not(commit, removed)}"
            return FuzzReport(outcome="nothing", why=why, removed=removed)
        report = await self._fuzz(steps, selected.held)
        report.removed = removed
        return report

    async def known(self, commit: str) -> str:
        """The full name of a commit that a person named, if it can be fuzzed at all."""
        mirror = self._mirror()
        await mirror.fetch()
        full = await mirror.require(commit)
        if not await self.board.has_build(full, ("production",)):
            command = f"windlass fuzz builder {self.solver.name} --commit {full}"
            raise InvalidInput("commit", f"one whose binary exists ({command} makes it)", full)
        return full

    def _why_not(self, commit: str | None, removed: list[str]) -> str:
        if commit is not None and commit not in removed:
            return f"somebody else fuzzes {commit}"
        return "no commit of the schedule is free and has a binary"

    async def _fuzz(self, steps: FuzzSteps, held: Held) -> FuzzReport:
        clock = self.board.around.clock
        try:
            report = await while_held(steps, held, self.lease_ms, clock, self.campaign(held.commit))
        except BaseException:
            await asyncio.shield(steps.release(held))
            raise
        counted = await steps.increment(held.commit, held.token)
        report.fuzz_count = counted.fuzz_count
        return report

    async def campaign(self, commit: str) -> FuzzReport:
        """Fuzz one commit and file what is found; its lease and its count are not touched."""
        with room_needed(self.work):
            return await self._campaign(commit)

    async def _campaign(self, commit: str) -> FuzzReport:
        began = self.board.now_ms()
        session = await self._set_up(commit)
        budget = self.budget_ms or self.solver.budget_ms
        deadline = began + budget
        setup_ms = self.board.now_ms() - began
        left = max(budget - setup_ms - reserved_of(budget), LEAST_MS)
        statistics = await self._run_engine(session, left)
        report = FuzzReport(
            outcome="fuzzed", commit=commit, tests=len(session.chosen.tests),
            chosen_by=session.chosen.why, setup_ms=setup_ms, statistics=statistics,
        )  # fmt: skip
        await self._look_into(session, commit, report, deadline)
        await self._keep(session, report)
        return report

    async def judge(self, commit: str, path: Path) -> Verdict:
        """What the build of a commit makes of one input."""
        build = await Builds(self.board, _fresh(self.work / "builds")).fetch(commit)
        if build is None:
            raise NotFound("build of commit", commit)
        return await self._engine(build.folder).judge(path)

    async def recheck(self, commit: str) -> list[Finding]:
        """Close what the build of this commit no longer shows."""
        full = await self.known(commit)
        builds = Builds(self.board, _fresh(self.work / "builds"))
        build = await builds.fetch(full)
        assert build is not None  # it was there a moment ago
        engine = self._engine(build.folder)
        triage = self._triage(engine, build, builds, self.board.now_ms())
        return await triage.recheck(full)

    async def _set_up(self, commit: str) -> "Session":
        """Sources for the tests, the build, the corpus, and the engine over them."""
        self.told(f"{commit[:12]}: setting up")
        mirror = self._mirror()
        await mirror.fetch()
        sources = self.work / "checkout"
        await mirror.checkout(commit, sources)
        builds = Builds(self.board, _fresh(self.work / "builds"))
        build = await builds.fetch(commit)
        if build is None:
            raise EngineFailed(f"the binary of {commit} has gone since it was selected")
        chosen = await Chooser(self.solver, self.board, self.told).choose(mirror, commit, sources)
        self.told(f"{commit[:12]}: {len(chosen.tests)} tests ({chosen.why})")
        corpus = _fresh(self.work / "corpus")
        fetched = await Corpus(self.board).fetch(corpus)
        engine = self._engine(build.folder)
        crashes = _fresh(self.work / "crashes")
        return Session(engine, build, builds, chosen, corpus, crashes, fetched)

    def _engine(self, binaries: Path) -> Engine:
        around = self.board.around
        scratch = _fresh(self.work / "scratch" / around.nonce())
        target = Target(
            binaries, self.solver.engine, scratch, around.clock, around.chance,
            self.solver.input_timeout_ms, memory_of(self.solver),
        )  # fmt: skip
        return make_engine(str(self.solver.engine["name"]), target)

    async def _run_engine(self, session: "Session", left_ms: int) -> Statistics:
        campaign = Campaign(
            session.chosen.tests, session.corpus, session.crashes, left_ms, cores_of(self.solver),
            self.until_bug, self.counted,
        )  # fmt: skip
        statistics = await session.engine.fuzz(campaign)
        if statistics.executions == 0:
            raise EngineFailed("nothing was executed; the run does not count")
        return statistics

    async def _look_into(
        self, session: "Session", commit: str, report: FuzzReport, deadline_ms: int
    ) -> None:
        triage = self._triage(session.engine, session.build, session.builds, deadline_ms)
        found = await triage.run(session.crashes, commit)
        gone = await triage.recheck(commit)
        report.findings = [finding.key for finding in found]
        report.closed = [finding.key for finding in gone]
        await self._tell_project(triage.shelf, report)

    def _triage(
        self, engine: Engine, build: LocalBuild, builds: Builds, deadline_ms: int
    ) -> Triage:
        judge = Judge(builds, self._mirror(), self._engine, tries=TRIES)
        return Triage(
            engine, str(self.solver.engine["name"]), build.folder, judge, Shelf(self.board),
            _fresh(self.work / "triage"), self.board.around.clock, deadline_ms, self.told,
        )  # fmt: skip

    async def _tell_project(self, shelf: Shelf, report: FuzzReport) -> None:
        """A project that does not answer costs nothing but its issues: the next run files them."""
        options = issue_options(self.solver.issues)
        if options is None:
            return
        desk = IssueDesk(options, self.solver.name, self.board.around.clock)
        try:
            settled = await desk.settle_all(shelf, self.told)
            report.issues = [finding.issue for finding in settled]
        except WindlassError as error:
            self.told(f"issues could not be filed: {error}")
        finally:
            await desk.close()

    async def _keep(self, session: "Session", report: FuzzReport) -> None:
        """The corpus, and what this run did; without the former it was a run all the same."""
        await prune(session.engine, session.corpus, self.work / "scratch", PRUNE_MS)
        try:
            merged = await Corpus(self.board).merge(session.corpus, session.fetched)
            report.corpus = merged.inputs
        except Conflict as error:
            self.told(f"the corpus stays as it was: {error}")
        name = f"{self.board.now_ms()}-{self.board.around.nonce()}.json"
        key = f"{statistics_prefix(self.solver.name)}/{name}"
        await self.board.bucket.put(key, msgspec.json.encode(report))

    def _mirror(self) -> Mirror:
        return Mirror(self.solver.repository, self.work / "mirror.git")


TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Session:
    """What was set up for one campaign."""

    engine: Engine
    build: LocalBuild
    builds: Builds
    chosen: Chosen
    corpus: Path
    crashes: Path
    fetched: frozenset[str]


def reserved_of(budget_ms: int) -> int:
    """What of a budget is for looking into failures."""
    return min(budget_ms // RESERVE, MOST_RESERVED_MS)


def cores_of(solver: Solver) -> int:
    """How many cores to use: those of this process, unless the description says less."""
    return solver.cores or len(os.sched_getaffinity(0))


def memory_of(solver: Solver) -> int:
    """What one run of the target may use: all cores together must leave the machine alive."""
    with open("/proc/meminfo") as file:
        facts = dict(line.split(":", 1) for line in file)
    available = int(facts["MemAvailable"].split()[0]) * 1024
    return min(solver.memory_bytes, max(available // cores_of(solver), LEAST_MEMORY))


def _fresh(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
