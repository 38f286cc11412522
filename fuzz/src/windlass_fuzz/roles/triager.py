"""The triager: triages and files failures while fuzzers run, each run one of several at a time.

Fuzzers upload the inputs that break a build at once. A run takes the bugs that no other run is
working on, so a fleet triages and dates several bugs in parallel.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from windlass_fuzz.config.combinations import combinations_of
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.signature import Signature
from windlass_fuzz.findings.claims import Claims
from windlass_fuzz.findings.evidence import inputs_of, was_run
from windlass_fuzz.findings.known import Catalogue, waiting_for
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.report import time_line
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.findings.untriaged import Untriaged, count_untriaged
from windlass_fuzz.roles.combinations.combination_run import CombinationRun, RunSite, fix_search
from windlass_fuzz.roles.combinations.recheck import recheck_findings
from windlass_fuzz.roles.findings_run import FindingsRun
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.leases import is_live
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.statistics.history import history_file
from windlass_fuzz.trackers.filing import update_issues

RECENT: Final = 8  # runs among whose commits is the newest one
PARTS: Final = 4  # of the second half of its time: check, search for fixes, triage, close
CLOSING_MS: Final = 15_000  # time for closing what is fixed, however late it is


class TriageReport(msgspec.Struct, kw_only=True):
    """The result of a run: keys of findings, addresses of issues, and how many inputs wait.

    It searched for the origins or fixes of those that are `dated`. `times` are the time lines of
    the findings that it found or filed.
    """

    findings: list[str] = []
    dated: list[str] = []
    issues: list[str] = []
    untriaged: int = 0
    times: dict[str, list[str]] = {}


@dataclass(slots=True)
class Triager:
    """One run, of at most `budget_ms`; 0 stands for what the solver file says."""

    solver: Solver
    pipeline: Pipeline
    work: Path
    notify: Callable[[str], None] = lambda _: None
    budget_ms: int = 0
    _issues: list[str] = field(default_factory=list)
    _waiting: list[Signature] = field(default_factory=list)

    async def run_once(self) -> TriageReport:
        """Does what fuzzers had no time for: searches, checks of known findings, triage, issues.

        A bug that only has to be dated before it is filed comes first.
        """
        deadline_ms = self.pipeline.now_ms() + (self.budget_ms or self.solver.findings.triage_ms)
        store = FindingStore(self.pipeline)
        known = [one async for one in store.all(self.notify)]
        undated = [one for one in known if _wants_search(one)]
        found: list[Finding] = []
        fuzzed = await self._fuzzed()
        unchecked = any(_wants_check(known, commit) for commit in fuzzed[-1:])
        ends = any(_wants_end(one) for one in known)
        if undated or unchecked or ends or await count_untriaged(self.pipeline):
            mirror = Mirror(self.solver.repository, self.work / "mirror.git")
            await mirror.fetch()
            newest = (await mirror.in_order(fuzzed))[-1:]
            half_ms = (self.pipeline.now_ms() + deadline_ms) // 2
            left_ms = deadline_ms - half_ms
            undated = [one for one in undated if await self._date(mirror, one, half_ms)]
            waiting = await Untriaged(self.pipeline).commits()
            await self._check(mirror, newest, half_ms + left_ms // PARTS, unseen=set(waiting))
            undated += await self._date_ends(mirror, store, half_ms + 2 * left_ms // PARTS)
            await self._file()
            found = await self._triage(mirror, deadline_ms - left_ms // PARTS)
            end_ms = max(deadline_ms, self.pipeline.now_ms() + CLOSING_MS)
            await self._check(mirror, newest, end_ms)
            undated += await self._date_ends(mirror, store, end_ms)
        await self._file()
        touched = [finding.key for finding in (*found, *undated)]
        told = [one async for one in store.all(self.notify)
                if one.key in touched or one.issue in self._issues]  # fmt: skip
        return TriageReport(
            findings=[one.key for one in found], dated=[one.key for one in undated],
            issues=list(dict.fromkeys(self._issues)),
            untriaged=await count_untriaged(self.pipeline),
            times={one.key: time_line(one) for one in told},
        )  # fmt: skip

    async def _triage(self, mirror: Mirror, deadline_ms: int) -> list[Finding]:
        """Triages inputs of all commits; those that are fuzzed now come first."""
        found: list[Finding] = []
        running = (await self.pipeline.leases.read()).fuzz
        for one in combinations_of(self.solver):
            waiting = await Untriaged(self.pipeline, one.name).commits()
            now_ms = self.pipeline.now_ms()
            fuzzed = [commit for commit in waiting if is_live(running.get(commit), now_ms)]
            handling = self._handling(mirror, one.name)
            for commit in dict.fromkeys([*fuzzed, *waiting]):
                if self.pipeline.now_ms() >= deadline_ms:
                    return found
                looked = set[str]() if commit in fuzzed else None
                fresh = await handling.triage_commit(commit, deadline_ms, looked)
                self._waiting += handling.waiting.get(commit, [])
                found += fresh
                if fresh:
                    await self._file()
        return found

    async def _date(self, mirror: Mirror, finding: Finding, deadline_ms: int) -> bool:
        """Continues the search for an origin, unless another run does; returns whether it did."""
        origin = finding.current_origin
        name = finding.combination if origin is None else origin.combination
        known = [one.name for one in combinations_of(self.solver)]
        if self.pipeline.now_ms() >= deadline_ms or name not in known:
            return False
        async with Claims(self.pipeline, deadline_ms).of(finding.key) as ours:
            if ours:
                catalogue = Catalogue({finding.key: finding})
                searching = self._handling(mirror, name).searches_until(catalogue, deadline_ms)
                await searching.again(finding)
        return ours

    async def _fuzzed(self) -> list[str]:
        """Returns the commits of the last runs that have builds and are not fuzzed now.

        With a matrix, only a fuzzer checks known findings: not every combination of a commit has a
        build.
        """
        if self.solver.matrix is not None:
            return []
        running = (await self.pipeline.leases.read()).fuzz
        runs = (await history_file(self.pipeline).read()).runs[-RECENT:]
        return [
            commit for commit in dict.fromkeys(one.commit for one in runs if one.healthy)
            if not is_live(running.get(commit), self.pipeline.now_ms())
            and await self.pipeline.has_build(commit, ("production",))
        ]  # fmt: skip

    async def _check(
        self, mirror: Mirror, commits: list[str], deadline_ms: int, unseen: Collection[str] = ()
    ) -> None:
        """Runs inputs of known findings that a run had no time for; closes what is fixed.

        While inputs of the commit are `unseen`, nothing is closed.
        """
        for commit in commits:
            known = [one async for one in FindingStore(self.pipeline).all(self.notify)]
            async with Claims(self.pipeline, deadline_ms).of(f"check {commit}") as ours:
                late = self.pipeline.now_ms() >= deadline_ms
                if ours and not late and _wants_check(known, commit):
                    await recheck_findings(
                        self.solver, self.pipeline, self.work, mirror, commit, self.notify,
                        deadline_ms, again=False, unseen=commit in unseen, waiting=self._waiting,
                    )  # fmt: skip

    async def _date_ends(
        self, mirror: Mirror, store: FindingStore, deadline_ms: int
    ) -> list[Finding]:
        """Searches for fixes, and since when bugs are on their branches; returns those findings."""
        catalogue = Catalogue()
        await catalogue.add_new(store, self.notify)
        wanted = [one for one in catalogue.findings.values() if _wants_end(one)]
        runs = self._runs(mirror)
        searching = fix_search(runs, catalogue, deadline_ms)
        done = []
        for finding in wanted:
            async with Claims(self.pipeline, deadline_ms).of(finding.key) as ours:
                if not ours or self.pipeline.now_ms() >= deadline_ms:
                    continue
                if finding.live:
                    one = Catalogue({finding.key: finding})
                    handling = runs[0].findings(runs[0].builds("builds"))
                    await handling.date_on_branches(one, deadline_ms)
                else:
                    await searching.run([finding])
                done.append(finding)
        return done

    def _runs(self, mirror: Mirror) -> list[CombinationRun]:
        site = RunSite(
            self.pipeline, self.work, mirror, self.work / "checkout", "", notify=self.notify
        )
        return [CombinationRun(one, site) for one in combinations_of(self.solver)]

    def _handling(self, mirror: Mirror, combination: str) -> FindingsRun:
        run = next(one for one in self._runs(mirror) if one.combination.name == combination)
        return run.findings(run.builds("builds"))

    async def _file(self) -> None:
        self._issues += await update_issues(self.solver, self.pipeline, self.notify)


def _wants_check(known: list[Finding], commit: str) -> bool:
    """Returns whether inputs of findings were not run with a commit, or waited for others."""
    return any(
        one.unsure == waiting_for(commit)
        or not all(was_run(kept, commit) for kept in inputs_of(one))
        for one in known
        if one.live
    )


def _wants_search(finding: Finding) -> bool:
    """Returns whether the search for a bug's origin was not made, or ran out of time."""
    origin = finding.current_origin
    return finding.live and (origin is None or origin.cut_short)


def _wants_end(finding: Finding) -> bool:
    """Returns whether nobody had time to search for its fix, or since when a branch has it."""
    if finding.live:
        return any(
            one.watched and one.state == "alive" and one.since is None for one in finding.branches
        )
    return any(at not in finding.ends or finding.ends[at].cut_short for at in finding.fixes)
