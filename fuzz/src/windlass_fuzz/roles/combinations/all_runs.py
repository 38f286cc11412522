"""Fuzzes one commit with all its combinations in a row, then closes what is fixed.

A combination that was not built, or whose run does nothing, is red in `status`; the others
continue.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.config.combinations import Combination, combinations_of
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.engine import BuildLost, EngineFailed, Statistics
from windlass_fuzz.findings.known import Catalogue
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.untriaged import forget_orphans
from windlass_fuzz.reach.run_measure import RunReach
from windlass_fuzz.roles.combinations.combination_run import (
    MIN_MS,
    CombinationReport,
    CombinationRun,
    RunSite,
    Session,
    fix_search,
)
from windlass_fuzz.roles.findings_run import Examined
from windlass_fuzz.roles.run_health import (
    LOST,
    combinations_ready,
    record_combination,
    sickness_of,
)
from windlass_fuzz.roles.seed_runs import added
from windlass_fuzz.statistics.history import history_file
from windlass_fuzz.statistics.shares import Share, divide

EARLY: Final = 2  # this part of the time for triage may be used while the engine runs
PRUNE_MS: Final = 5 * 60_000  # time for pruning all corpora


class RunLimits(NamedTuple):
    """How long a run may take, and how much of that is for triage and for measuring."""

    budget_ms: int
    reserved_ms: int
    measuring_ms: int


class Done(NamedTuple):
    """A combination that ran, and what it says about findings."""

    run: CombinationRun
    session: Session
    seen: Examined
    report: CombinationReport


@dataclass(slots=True)
class AllRuns:
    """The runs of one commit with all combinations, and what they found together."""

    solver: Solver
    site: RunSite
    limits: RunLimits
    reports: list[CombinationReport] = field(default_factory=list)
    found: list[Finding] = field(default_factory=list)
    reopened: list[str] = field(default_factory=list)
    closed: list[Finding] = field(default_factory=list)
    seed_problems: list[str] = field(default_factory=list)
    tests: int = 0
    chosen_by: str = ""
    setup_ms: int = 0
    _reasons: dict[str, str] = field(default_factory=dict)
    _done: list[Done] = field(default_factory=list)
    _began_ms: int = 0
    _spent_ms: int = 0
    _saved_ms: int = 0
    _finished: bool = False
    _counted: set[str] = field(default_factory=set)

    async def run(self, began_ms: int) -> None:
        """Runs all combinations that can run; `began_ms` is when the setup began."""
        self._began_ms = began_ms
        ready, self._reasons = await combinations_ready(
            self.solver, self.site.pipeline, self.site.commit
        )
        for one in combinations_of(self.solver):
            if one.name in self._reasons:
                self._skip([one], self._reasons[one.name])
        limits = self.limits
        self.setup_ms = self.site.pipeline.now_ms() - began_ms
        left = limits.budget_ms - self.setup_ms - limits.reserved_ms - limits.measuring_ms
        for number, share in enumerate(await self._shares(ready, left)):
            report = await self._run_one(ready[number], share, len(ready) - number)
            self.reports.append(report)
            if self.site.until_bug and report.statistics is not None and report.statistics.bugs:
                self._skip(ready[number + 1 :], "an earlier combination found a bug")
                break
        order = [one.name for one in combinations_of(self.solver)]
        self.reports.sort(key=lambda report: order.index(report.combination))
        await self._finish()

    def _skip(self, combinations: list[Combination], why: str) -> None:
        """Notes combinations that do not run."""
        for one in combinations:
            self._reasons[one.name] = why
            self.reports.append(
                CombinationReport(
                    combination=one.name, target=one.target, engine=one.engine,
                    outcome="lost" if why == LOST else "skipped", why=why,
                )
            )  # fmt: skip

    async def _shares(self, ready: list[Combination], left_ms: int) -> list[Share]:
        names = [one.name for one in ready]
        if names == [""]:
            return [Share(combination="", ms=max(left_ms, MIN_MS), why="")]
        history = await history_file(self.site.pipeline).read()
        budget_ms = max(left_ms, MIN_MS * len(names))
        reaching = await self._reaching(ready) if self.site.base is not None else names
        parts = divide(budget_ms, names, history.runs, reaching)
        for part in parts:
            self.site.notify(f"{part.combination}: {part.ms // 1000} s ({part.why})")
        return parts

    async def _reaching(self, ready: list[Combination]) -> list[str]:
        """Returns the combinations whose tests reach the change; all if none is known to reach
        it.
        """
        reach = [
            one.name for one in ready if (await CombinationRun(one, self.site).select_tests()).reach
        ]
        return reach or [one.name for one in ready]

    async def _run_one(self, one: Combination, share: Share, waiting: int) -> CombinationReport:
        """Runs one combination; in a matrix, one that cannot run does not stop the others."""
        run = CombinationRun(one, self.site)
        report = CombinationReport(
            combination=one.name, target=one.target, engine=one.engine, outcome="fuzzed",
            given_ms=share.ms,
        )  # fmt: skip
        try:
            await self._fuzz(run, report, waiting)
        except BuildLost:
            if not one.name:
                raise
            report.outcome, report.why = "lost", LOST
            self._reasons[one.name] = LOST
            self.site.notify(f"{one.name}: {LOST}")
            return report
        except (EngineFailed, InvalidInput) as error:
            if not one.name:
                raise
            report.outcome, report.why = "unhealthy", str(error)
            self._reasons[one.name] = report.why
            self.site.notify(f"{one.name}: {error}")
        if one.name:
            await record_combination(self.site.pipeline, self.site.commit, one.name, report.why)
        return report

    async def _fuzz(self, run: CombinationRun, report: CombinationReport, waiting: int) -> None:
        began = self.site.pipeline.now_ms()
        session = await run.set_up()
        own_ms = self.site.pipeline.now_ms() - began
        self.setup_ms += own_ms
        known = [*self.seed_problems, *session.seeds.problems]
        self.seed_problems = list(dict.fromkeys(known))
        self.tests = max(self.tests, len(session.selection.tests))
        self.chosen_by = self.chosen_by or session.selection.why
        early = run.while_fuzzing(self._reserve_left() // waiting // EARLY)
        left_ms = max(report.given_ms - own_ms, MIN_MS)
        report.statistics = await run.fuzz(session, left_ms, early)
        self._saved_ms += max(began + report.given_ms - self.site.pipeline.now_ms(), 0)
        if early is not None:
            self._spent_ms += early.spent_ms
            self._note_found(report, early.found, [])
        report.why = sickness_of(report.statistics, run.combination.solver.health)
        report.outcome = "unhealthy" if report.why else "fuzzed"
        await self._examine(run, session, report, waiting)
        if waiting == 1:
            await self._finish()
        count = len(combinations_of(self.solver))
        report.reached = await run.measure(session, self.limits.measuring_ms // count)
        report.corpus = await run.save_corpus(session, PRUNE_MS // count)

    async def _examine(
        self, run: CombinationRun, session: Session, report: CombinationReport, waiting: int
    ) -> None:
        """Checks known findings and triages failures, in a fair part of that time."""
        assert report.statistics is not None
        began = self.site.pipeline.now_ms()
        deadline = began + self._reserve_left() // waiting
        works = bool(report.statistics.tests_fine)
        seen = await run.examine(session, deadline, works, report.why, self._catalogue())
        self._done.append(Done(run, session, seen, report))
        self.reopened += seen.reopened
        elsewhere = [  # by jobs of the role triage
            one for one in seen.known.catalogue.findings.values()
            if one.found_in == self.site.commit and one.found_at_ms >= self._began_ms
            and one.combination == run.combination.name
        ]  # fmt: skip
        self._note_found(report, [*elsewhere, *seen.found], seen.reopened)
        report.untriaged = len(seen.left)
        if run.combination.name:
            await seen.triage.dating.date_again(self.site.commit)
        self._spent_ms += self.site.pipeline.now_ms() - began

    async def _finish(self) -> None:
        """Closes what is fixed with all combinations, and records why others stay open.

        Then it dates the others on their branches, and triages inputs that earlier runs of other
        commits left.
        """
        if self._finished or not self._done:
            return
        self._finished = True
        deadline = self.site.pipeline.now_ms() + self._reserve_left()
        sighted = {one.key for one in self.found}
        last = self._done[-1].seen
        self.closed = await last.close_fixed(self.site.commit, sighted, self._reasons)
        for run, session, seen, report in self._done:
            builds = session.builds
            if run.combination.name:
                # A later combination has replaced the files of these builds.
                builds = run.builds("waiting-builds")
            else:
                deadline = seen.triage.dating.deadline_ms
                await seen.triage.dating.date_again(self.site.commit)
            handling = run.findings(builds, self._catalogue())
            await handling.date_on_branches(seen.known.catalogue, deadline)
            self._note_found(report, await handling.triage_waiting(self.site.commit, deadline), [])
        await self._search_fixes(deadline)
        names = {one.name for one in combinations_of(self.solver)}
        await forget_orphans(self.site.pipeline, names)

    async def _search_fixes(self, deadline_ms: int) -> None:
        """Searches for the fixes of closed findings, those of this run first."""
        catalogue = self._done[-1].seen.known.catalogue
        fresh = {finding.key for finding in self.closed}
        order = sorted(catalogue.findings.values(), key=lambda one: one.key not in fresh)
        await fix_search([one.run for one in self._done], catalogue, deadline_ms).run(order)

    def _note_found(
        self, report: CombinationReport, found: list[Finding], reopened: list[str]
    ) -> None:
        self.found += found
        keys = [*reopened, *(one.key for one in found)]
        report.findings = list(dict.fromkeys([*report.findings, *keys]))
        fresh = {one.key for one in found if one.found_at_ms >= self._began_ms}
        report.new_findings += len(fresh - self._counted)
        self._counted |= fresh

    def _catalogue(self) -> Catalogue | None:
        return self._done[-1].seen.known.catalogue if self._done else None

    def _reserve_left(self) -> int:
        """Returns the time for triage: also what engines that ended early have saved."""
        saved_ms = min(self._saved_ms, self.solver.findings.triage_ms - self.limits.reserved_ms)
        return max(self.limits.reserved_ms + saved_ms - self._spent_ms, 0)

    @property
    def statistics(self) -> Statistics | None:
        """Returns the sum over all combinations; None if nothing ran."""
        counts = [one.statistics for one in self.reports if one.statistics is not None]
        if not counts:
            return None
        total = counts[0]
        for count in counts[1:]:
            total = added(total, count)
        return total

    @property
    def sickness(self) -> str:
        """Says why the run does not count; "" if one combination is healthy."""
        if any(one.outcome == "fuzzed" for one in self.reports):
            return ""
        said = [f"{one.combination}: {one.why}" if one.combination else one.why
                for one in self.reports]  # fmt: skip
        return "; ".join(said)

    @property
    def findings(self) -> list[str]:
        """Returns the keys of findings that came back or were seen."""
        return list(dict.fromkeys([*self.reopened, *(one.key for one in self.found)]))

    @property
    def new_findings(self) -> int:
        return sum(one.new_findings for one in self.reports)

    @property
    def untriaged(self) -> int:
        return sum(one.untriaged for one in self.reports)

    @property
    def corpus(self) -> int:
        """Returns the number of inputs of all corpora; combinations of a target share one."""
        shared = {one.name: one.corpus for one in combinations_of(self.solver)}
        sizes = {shared[one.combination]: one.corpus for one in self.reports if one.corpus}
        return sum(sizes.values())

    @property
    def reached(self) -> RunReach | None:
        """Returns what the only combination reached; with a matrix, each combination reports its
        own.
        """
        return self.reports[0].reached if [r.combination for r in self.reports] == [""] else None
