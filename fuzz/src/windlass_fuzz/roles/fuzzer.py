"""The fuzzer: selects a commit, fuzzes it from relevant tests, and files what it finds.

The budget covers everything: setup and triage reduce the time for fuzzing. With a matrix, all
combinations run in a row and share the budget. A run in which nothing was fuzzed, or nothing ran to
an answer, does not count.
"""

import asyncio
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from windlass.domain.values.errors import NotFound, WindlassError
from windlass_fuzz.alarms.outbox import repeat_alarms, send_alarm
from windlass_fuzz.alarms.sender import alarm_of
from windlass_fuzz.buckets.layout import statistics_prefix
from windlass_fuzz.builds.build_cache import BuildCache, LocalBuild
from windlass_fuzz.config.combinations import Combination, combinations_of
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.engine import Statistics, Verdict
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.findings.fixes import FixSearch
from windlass_fuzz.findings.known import Catalogue
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.processes.disk_space import report_disk_full
from windlass_fuzz.reach.run_measure import RunReach
from windlass_fuzz.roles.combinations.all_runs import AllRuns, RunLimits
from windlass_fuzz.roles.combinations.combination_run import (
    CombinationReport,
    CombinationRun,
    RunSite,
)
from windlass_fuzz.roles.combinations.recheck import recheck_findings
from windlass_fuzz.roles.engine_factory import EngineFactory, fresh_folder
from windlass_fuzz.roles.findings_run import FindingsRun
from windlass_fuzz.roles.fuzz_steps import FuzzSteps
from windlass_fuzz.roles.run_health import health_key, record_health
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.lease_keeper import LEASE_MS, while_held
from windlass_fuzz.state.leases import HeldLease, process_name
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.statistics.history import RunPoint, record_run
from windlass_fuzz.trackers.filing import update_issues

RESERVE: Final = 10  # a tenth of the budget is reserved for triage
MIN_RESERVED_MS: Final = 5_000
MEASURING: Final = 20  # fraction of the budget for measuring what was reached, and its maximum
MEASURING_MS: Final = 10 * 60_000
FULL_HASH: Final = 40
REPORTS_KEPT: Final = 1_000


class FuzzReport(msgspec.Struct, kw_only=True):
    """The result of a fuzzer's run, also stored in the bucket.

    `reached` is what it was the first to reach, None if unknown. `combinations` are those of a
    matrix; `statistics` then covers all of them.
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
    combinations: list[CombinationReport] = []


class RunBounds(NamedTuple):
    """When a run ends; 0 stands for what the solver file says."""

    budget_ms: int = 0
    until_bug: bool = False
    quiet_ms: int = 0
    triage_elsewhere: bool = False


@dataclass(slots=True)
class Fuzzer:
    """One run for one commit; `notify` gets messages, `on_progress` the statistics.

    The commit's changes are computed against `base`, or else against its first parent. With
    `triage_elsewhere`, jobs of the role triage file findings while it runs.
    """

    solver: Solver
    pipeline: Pipeline
    work: Path
    notify: Callable[[str], None] = lambda _: None
    on_progress: Callable[[Statistics], None] = lambda _: None
    lease_ms: int = LEASE_MS
    budget_ms: int = 0
    until_bug: bool = False
    quiet_ms: int = 0  # 0: what the solver file says
    base: str | None = None
    triage_elsewhere: bool = False
    _issues: list[str] = field(default_factory=list)

    async def run_once(self, commit: str | None = None) -> FuzzReport:
        """Fuzzes the given commit, or the least fuzzed one."""
        await repeat_alarms(self.pipeline, self.solver.alarms, self.notify)
        steps = FuzzSteps(self.pipeline, self.solver, process_name(os.getpid()))
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
        full = await mirror.resolve(commit)
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
        if not report.why or all(one.outcome != "lost" for one in report.combinations):
            report.marked_bad = await record_health(
                self.pipeline, commit, report.why, self.solver.health
            )
        await self._alarm(commit, report)
        return report

    async def _alarm(self, commit: str, report: FuzzReport) -> None:
        """Alerts people about the first run that did nothing, and about a build that is given
        up.
        """
        if not report.why and all(one.outcome == "fuzzed" for one in report.combinations):
            return
        health = await self.pipeline.health.read()
        bad = health.commits.get(commit) if report.why else None
        if bad is not None and (bad.runs == 1 or report.marked_bad):
            await self._send_alarm(commit, report.why, bad.runs, report.marked_bad)
        for one in report.combinations:
            sick = health.combinations.get(health_key(commit, one.combination))
            if one.outcome != "unhealthy" or sick is None:
                continue
            given_up = sick.runs == self.solver.health.runs
            if sick.runs == 1 or given_up:
                why = f"{one.combination}: {one.why}"
                await self._send_alarm(commit, why, sick.runs, given_up)

    async def _send_alarm(self, commit: str, why: str, runs: int, given_up: bool) -> None:
        alarm = alarm_of(self.solver.name, commit, why, runs, self.pipeline.now_ms(), given_up)
        await send_alarm(self.pipeline, alarm, self.solver.alarms, self.notify)

    async def _campaign(self, commit: str) -> FuzzReport:
        began = self.pipeline.now_ms()
        self.notify(f"{commit[:12]}: setting up")
        mirror = self._mirror()
        await mirror.fetch()
        sources = self.work / "checkout"
        await mirror.checkout(commit, sources)
        limits = limits_of(self.budget_ms or self.solver.budget_ms, self.solver)
        site = RunSite(
            self.pipeline, self.work, mirror, sources, commit, self.base, self.until_bug,
            self.quiet_ms or self.solver.quiet_ms, self.notify, self.on_progress,
            None if self.triage_elsewhere else self._file_issues,
        )  # fmt: skip
        runs = AllRuns(self.solver, site, limits)
        await runs.run(began)
        report = FuzzReport(
            outcome="fuzzed", commit=commit, tests=runs.tests, chosen_by=runs.chosen_by,
            setup_ms=runs.setup_ms, statistics=runs.statistics, why=runs.sickness,
            seed_problems=runs.seed_problems, began_at_ms=began, corpus=runs.corpus,
            findings=runs.findings, closed=[finding.key for finding in runs.closed],
            new_findings=runs.new_findings, untriaged=runs.untriaged, reached=runs.reached,
            combinations=[one for one in runs.reports if one.combination],
        )  # fmt: skip
        if report.why:
            report.outcome = "unhealthy"
        await self._file_issues()
        report.issues = list(dict.fromkeys(self._issues))
        await self._save_results(runs, report)
        return report

    async def classify(self, commit: str, path: Path, combination: str = "") -> Verdict:
        """Runs one input with the build of a commit."""
        one = self._combination(combination)
        build = await self.fetch_build(commit, combination)
        factory = EngineFactory(one.solver, self.pipeline, self.work, one.env)
        return await factory.engine(build.folder).classify(path)

    def environment(self, combination: str = "") -> Mapping[str, str]:
        """Returns the additional environment of runs of a combination."""
        return self._combination(combination).env

    async def fetch_build(self, commit: str, combination: str = "") -> LocalBuild:
        """Returns the build of a commit, made on this machine if it is gone."""
        one = self._combination(combination)
        cache = BuildCache(self.pipeline, fresh_folder(self.work / "builds"), one.name)
        full = await self._full_name(commit)
        build = await cache.fetch(full)
        if build is None:
            self.notify(f"{full[:12]}: its build is gone")
            build = await (await self._handling(one, full)).make(full)
        if build is None:
            raise NotFound("build of commit", commit)
        return build

    async def bisect(self, key: str, budget_ms: int) -> Finding:
        """Searches again for the origin and the fix of a finding, building what is missing."""
        found = await FindingStore(self.pipeline).get(key)
        origin = found.current_origin
        one = self._combination(origin.combination if origin else found.combination)
        solver = msgspec.structs.replace(one.solver, bisect="build")
        handling = await self._handling(one._replace(solver=solver), found.shown_in)
        catalogue = Catalogue({found.key: found})
        dating = handling.searches_until(catalogue, self.pipeline.now_ms() + budget_ms)
        dating.bisector.notify = self.notify
        await dating.again(found)
        if found.fixes and len(found.combinations) <= 1:
            await FixSearch({one.name: dating}).run(list(catalogue.findings.values()))
        return catalogue.findings[found.key]

    async def _handling(self, one: Combination, commit: str) -> FindingsRun:
        """Returns the handler for findings of a combination, outside of a campaign."""
        mirror = self._mirror()
        await mirror.fetch()
        site = RunSite(
            self.pipeline, self.work, mirror, self.work / "checkout", commit, notify=self.notify
        )
        run = CombinationRun(one, site)
        return run.findings(run.builds("searched-builds"))

    def _combination(self, name: str) -> Combination:
        """Returns a combination by name; findings without one get the first."""
        known = combinations_of(self.solver)
        found = next((one for one in known if one.name == name), None)
        if found is None and name:
            listed = ", ".join(one.name for one in known) or "none"
            message = f"combination {name} is not in the solver file (known: {listed})"
            raise InvalidSetting("combination", message, name)
        return found or known[0]

    async def _full_name(self, commit: str) -> str:
        """Returns the full hash for a short one."""
        if len(commit) >= FULL_HASH:
            return commit
        mirror = self._mirror()
        await mirror.fetch()
        return await mirror.resolve(commit)

    async def recheck(self, commit: str) -> list[Finding]:
        """Closes findings that the builds of this commit no longer show."""
        full = await self.resolve_built(commit)
        return await recheck_findings(
            self.solver, self.pipeline, self.work, self._mirror(), full, self.notify
        )

    async def _file_issues(self) -> None:
        self._issues += await update_issues(self.solver, self.pipeline, self.notify)

    async def _save_results(self, runs: AllRuns, report: FuzzReport) -> None:
        """Stores the report and adds the run to the history."""
        name = f"{self.pipeline.now_ms()}-{self.pipeline.runtime.nonce()}.json"
        key = f"{statistics_prefix(self.solver.name)}/{name}"
        await self.pipeline.bucket.put(key, msgspec.json.encode(report))
        closed = len(report.closed)
        for one in runs.reports:
            if one.outcome in ("fuzzed", "unhealthy"):
                await self._record(one, report, closed)
                closed = 0  # counted with the first combination
        await forget_old_reports(self.pipeline)

    async def _record(self, one: CombinationReport, report: FuzzReport, closed: int) -> None:
        """Adds a run to the history; a run counts even if that cannot be written."""
        count, reached = one.statistics or Statistics(), one.reached
        try:
            await record_run(self.pipeline, RunPoint(
                at_ms=self.pipeline.now_ms(), commit=report.commit or "", engine=one.engine,
                target=one.target, combination=one.combination,
                healthy=one.outcome == "fuzzed", executions=count.executions,
                seconds=count.seconds, coverage=count.coverage, corpus=one.corpus,
                new_inputs=count.new_inputs, findings=len(one.findings),
                new_findings=one.new_findings, closed=closed,
                new_functions=-1 if reached is None else reached.function_count,
                new_lines=-1 if reached is None else reached.line_count,
                problems=report.seed_problems,
            ))  # fmt: skip
        except WindlassError as error:
            self.notify(f"the statistics were not updated: {error}")

    def _mirror(self) -> Mirror:
        return Mirror(self.solver.repository, self.work / "mirror.git")


async def forget_old_reports(pipeline: Pipeline) -> None:
    """Deletes the oldest reports of runs; their names start with their time."""
    prefix = statistics_prefix(pipeline.solver)
    keys = [item.key async for item in pipeline.bucket.list(prefix)]
    if len(keys) > REPORTS_KEPT:
        await pipeline.bucket.delete(sorted(keys)[:-REPORTS_KEPT])


def reserved_of(budget_ms: int, solver: Solver) -> int:
    """Returns how much of a budget is reserved for triage; each combination has its own."""
    least = MIN_RESERVED_MS * len(combinations_of(solver))
    return min(max(budget_ms // RESERVE, least), solver.findings.triage_ms)


def limits_of(budget_ms: int, solver: Solver) -> RunLimits:
    """Divides a budget: parts for triage, and for measuring what was reached."""
    return RunLimits(
        budget_ms, reserved_of(budget_ms, solver), min(budget_ms // MEASURING, MEASURING_MS)
    )
