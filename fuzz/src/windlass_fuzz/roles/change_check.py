"""Checks a change before it is merged: fuzzes what it reaches, and refuses it for new bugs.

A bug is new if the change's build shows it and the base's does not. The check reads the corpus and
the coverage map from the bucket if there is one, and writes nothing there. Without a map it makes
one, since pull requests of strangers have no bucket.
"""

import re
import shutil
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass_fuzz.buckets.bucket import Bucket
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.buckets.layout import (
    build_key,
    combinations_key,
    corpus_prefix,
    coverage_key,
)
from windlass_fuzz.builds.build_cache import BuildCache, LocalBuild
from windlass_fuzz.builds.build_runner import errors_in
from windlass_fuzz.config.alarm_settings import AlarmSettings
from windlass_fuzz.config.combinations import (
    Combination,
    combination_names,
    combinations_of,
)
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.engine import Statistics
from windlass_fuzz.findings.evidence import inputs_of
from windlass_fuzz.findings.judge import Reproduction, Slow, tries_for
from windlass_fuzz.findings.known import TRIES
from windlass_fuzz.findings.markdown import code, code_block, count_of
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.report import input_name, render
from windlass_fuzz.findings.sarif import Place, place_of, sarif
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.processes.runner import tail
from windlass_fuzz.roles.builder import LOG_KEPT, OUTPUT_CHARS, Builder, CannotBuild
from windlass_fuzz.roles.combinations.combination_run import CombinationReport
from windlass_fuzz.roles.corpus import FILE as CORPUS
from windlass_fuzz.roles.coverage import CoverageRole
from windlass_fuzz.roles.engine_factory import EngineFactory, cores_of, fresh_folder
from windlass_fuzz.roles.fuzzer import Fuzzer
from windlass_fuzz.roles.known_bugs import FixedFinding, KnownBugs, RunWith, shown_by
from windlass_fuzz.sources.branches import choose
from windlass_fuzz.sources.commits import Head
from windlass_fuzz.sources.harmless import only_documents
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.rules import touches_code
from windlass_fuzz.state.state_file import Runtime

Age = Literal["new", "old", "flaky"]
COMPARED: Final = 100  # inputs of a finding that are compared with the base, at most
FIXED: Final = 10  # this fraction of the budget is added to find what the change fixes
KNOWN_MS: Final = 60_000  # at least so long for the inputs of fixed bugs
MAPPING: Final = 4  # this fraction of the budget is added to map tests
BUILD: Final = "== production-"  # heading of a combination's build log
_BUILDS: Final = re.compile(rf"^(?={BUILD})", re.MULTILINE)
FAILS_TOO: Final = "fails too"
FINE: Final = "runs it fine"
UNBUILT: Final = "it changes no file that builds and tests depend on"
RESULT: Final = "result.json"
RESULTS: Final = ("summary.md", "report.sarif", RESULT)
MAX_SUMMARY: Final = 60_000  # characters; GitHub shows at most a megabyte


class CheckedFinding(msgspec.Struct, kw_only=True):
    """A finding of a check; `base` says how the base's build handles its input.

    If the base fails in another way, `base_title` names it.
    """

    key: str
    title: str
    kind: str
    age: Age
    base: str
    input: str
    size: int
    base_title: str = ""


class Told(NamedTuple):
    """How the base's build handles an input, and its title if it fails in another way."""

    said: str
    title: str = ""


class CheckReport(msgspec.Struct, kw_only=True):
    """The result of a check; only `passed` accepts a change, `why` explains it.

    `branch` is the solver's branch that the change goes to, unless a base was given. `output` is
    the output of the change's failed builds, `base_why` says why the base cannot be built. `known`
    is the finding of a fixed bug that the change brings back: the check ended there.
    """

    outcome: Literal["passed", "refused", "unhealthy"]
    base: str
    head: str
    why: str = ""
    tests: int = 0
    chosen_by: str = ""
    statistics: Statistics | None = None
    findings: list[CheckedFinding] = []
    combinations: list[CombinationReport] = []
    branch: str = ""
    output: str = ""
    base_why: str = ""
    fixed: list[FixedFinding] = []
    known: str = ""


@dataclass(slots=True)
class ChangeCheck:
    """One check. `stored` is the bucket of the pipeline, if it can be read."""

    solver: Solver
    runtime: Runtime
    holder: str
    work: Path
    output: Path
    stored: Bucket | None = None
    notify: Callable[[str], None] = lambda _: None
    on_progress: Callable[[Statistics], None] = lambda _: None
    budget_ms: int = 0
    findings: list[Finding] = field(default_factory=list)

    async def run_once(self, base: str | None = None, head: str = "HEAD") -> CheckReport:
        """Checks a change; `base` defaults to the point where it left the nearest branch of the
        solver.
        """
        self._remove_results()
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        head = await _resolve(mirror, head, "head")
        nearest = None if base else await self._nearest(mirror, head)
        base = base or (nearest.commit if nearest else self.solver.branch)
        base = await mirror.merge_base(await _resolve(mirror, base, "base"), head)
        if base == head:
            raise InvalidInput("head", f"a commit after the base {base[:12]}", head)
        kept = msgspec.structs.replace(self.solver.findings, inputs=COMPARED)
        solver = msgspec.structs.replace(
            self.solver, issues={}, alarms=AlarmSettings(), bisect="builds", findings=kept
        )
        changed = await mirror.changed_files(base, head)
        if self._only_documents(changed):
            report = CheckReport(
                outcome="passed", base=base, head=head, why=UNBUILT,
                branch=nearest.name if nearest else "",
            )  # fmt: skip
            await self._write(self._local(), report, changed)
            return report
        local = self._local()
        await self._copy_known(local.bucket, base)
        solver = await self._with_closed_inputs(solver)
        unbuilt = await self._build(solver, local, base)
        if unbuilt is not None:
            self.notify(f"the base {base[:12]} cannot be built: {unbuilt.why}")
        broken = await self._build(solver, local, head)
        printed = self._printed_by((await local.built(head)).failed)
        report = CheckReport(
            outcome="unhealthy", base=base, head=head, branch=nearest.name if nearest else "",
            base_why="" if unbuilt is None else unbuilt.why,
        )  # fmt: skip
        back = await self._brought_back(local, report) if broken is None else None
        if back is not None:
            report = back
        elif broken is None:
            if any(map(self._is_code, changed)):
                await self._map_tests(solver, local, head)
            report = await self._fuzz(solver, local, report)
            report.output = printed if report.outcome == "unhealthy" else ""
        else:
            report.why, report.output = f"it does not build: {broken.why}", broken.output
        await self._write(local, report, [c for c in changed if self._is_code(c)] or changed)
        return report

    async def _fuzz(self, solver: Solver, local: Pipeline, report: CheckReport) -> CheckReport:
        """Fuzzes the change, and runs what breaks it with the base."""
        base, head = report.base, report.head
        fuzzer = Fuzzer(
            solver, local, self.work, self.notify, self.on_progress, budget_ms=self.budget_ms,
            base=base,
        )  # fmt: skip
        fuzzed = await fuzzer.campaign(head)
        found = [one async for one in FindingStore(local).all(self.notify) if one.live]
        checked = [await self._compare(local, one, base, head) for one in found]
        why = fuzzed.why or await self._lost(local, base, fuzzed.combinations)
        fixed: list[FixedFinding] = []
        async for known, run in self._run_known(local, base, head):
            fixed = await known.fixed(run, local.now_ms() + self.budget_ms // FIXED)
        return msgspec.structs.replace(
            report, outcome=_outcome(why, checked), why=why, tests=fuzzed.tests,
            chosen_by=fuzzed.chosen_by, statistics=fuzzed.statistics, findings=checked,
            combinations=fuzzed.combinations, fixed=fixed,
        )  # fmt: skip

    async def _run_known(
        self, local: Pipeline, base: str, head: str
    ) -> AsyncIterator[tuple[KnownBugs, RunWith]]:
        """Yields the findings of the bucket, and what runs their inputs; nothing without one."""
        if self.stored is None:
            return
        stored = self._pipeline(self.stored)

        async def run(finding: Finding, which: Literal["base", "change"]) -> Reproduction | None:
            known = [c for c in combinations_of(self.solver) if c.name == finding.combination]
            if not known:
                return None
            folder = fresh_folder(self.work / "builds")
            build = await BuildCache(local, folder, known[0].name).fetch(
                base if which == "base" else head
            )
            return None if build is None else await self._run(stored, known[0], build, finding)

        yield KnownBugs(self.solver, stored, self.notify), run

    async def _brought_back(self, local: Pipeline, report: CheckReport) -> CheckReport | None:
        """Returns the report if the change brings a fixed bug back: then it ends there."""
        until_ms = local.now_ms() + max(self.budget_ms // FIXED, KNOWN_MS)
        async for known, run in self._run_known(local, report.base, report.head):
            self.notify("running the inputs of fixed bugs")
            path = self.work / "known-input"
            found = await known.brought_back(run, until_ms, path)
            if found is None:
                continue
            found = msgspec.structs.replace(found, found_in=report.head, output_in=report.head)
            await FindingStore(local).put_input(
                found.key, path.read_bytes(), Path(found.input).suffix
            )
            self.findings.append(found)
            return msgspec.structs.replace(
                report,
                outcome="refused",
                known=found.key,
                findings=[_checked(found, "new", Told(FINE))],
            )
        return None

    async def _map_tests(self, solver: Solver, local: Pipeline, head: str) -> None:
        """Maps which tests reach which functions, unless that is known; may fail."""
        if not solver.health.coverage or await local.bucket.exists(coverage_key(solver.name)):
            return
        plain = msgspec.structs.replace(solver, coverage={**solver.coverage, "html": False})
        role = CoverageRole(
            plain, local, self.work, self.notify, cores=cores_of(solver),
            time_ms=self.budget_ms // MAPPING,
        )  # fmt: skip
        try:
            await role.run_once(head)
        except WindlassError as error:
            self.notify(f"all tests count, as they cannot be mapped: {error}")

    async def _build(self, solver: Solver, local: Pipeline, commit: str) -> CannotBuild | None:
        """Builds a commit unless that was done; returns why if it cannot be built."""
        if await self._has_all(local, commit):
            return None
        try:
            builder = Builder(solver, local, self.work, self.notify, says_keys=False)
            await builder.make(commit, ("production",))
        except CannotBuild as error:
            return error
        except InvalidInput as error:
            return CannotBuild(error.message, "")
        return None

    def _printed_by(self, failed: Collection[str]) -> str:
        """Returns the output of the failed builds of combinations."""
        log = self.work / "build.log"
        if not failed or not log.exists():
            return ""
        parts = _BUILDS.split(tail(log, LOG_KEPT))
        own = [part for part in parts if any(part.startswith(f"{BUILD}{n} ") for n in failed)]
        return "\n".join(errors_in(part, OUTPUT_CHARS // len(own)) for part in own)

    async def _has_all(self, local: Pipeline, commit: str) -> bool:
        """Returns whether there is a build of every combination that can be built."""
        if not await local.has_build(commit, ("production",)):
            return False
        made = await local.built(commit)
        return {*made.built, *made.failed} >= set(local.matrix)

    async def _lost(self, local: Pipeline, base: str, combinations: list[CombinationReport]) -> str:
        """Returns which combinations work with the base, but not with the change."""
        built = (await local.built(base)).built
        lost = [one for one in combinations if one.outcome != "fuzzed" and one.combination in built]
        return "; ".join(f"{one.combination}: {one.why}" for one in lost)

    async def _nearest(self, mirror: Mirror, head: str) -> Head | None:
        """Returns the watched branch with the fewest commits between it and the change.

        Branches that already have the change do not count; None if the solver has only one.
        """
        if not self.solver.has_branches:
            return None
        own: dict[Head, int] = {}
        for branch in choose(self.solver.watched, await mirror.heads()).heads:
            count = len(await mirror.between(branch.commit, head))
            if count:
                own[branch] = count
        return min(own, key=own.__getitem__, default=None)

    def _only_documents(self, changed: list[str]) -> bool:
        """Returns whether neither a build nor a run depends on these files."""
        tests = [test for one in combinations_of(self.solver) for test in one.solver.tests]
        folders = self.solver.seeds.corpora
        inputs = [*tests, *folders, *(f"{folder.rstrip('/')}/*" for folder in folders)]
        return only_documents(changed, self.solver.commits.extensions, inputs)

    def _is_code(self, path: str) -> bool:
        return touches_code([path], self.solver.commits.extensions)

    def _local(self) -> Pipeline:
        """Returns a pipeline in a temporary folder: a check leaves no trace."""
        return self._pipeline(DirectoryBucket(fresh_folder(self.work / "check")))

    def _pipeline(self, bucket: Bucket) -> Pipeline:
        matrix = combination_names(self.solver)
        return Pipeline(bucket, self.solver.name, self.runtime, self.holder, matrix)

    async def _copy_known(self, local: Bucket, base: str) -> None:
        """Copies useful data from the bucket; an unresponsive bucket stops nothing."""
        if self.stored is None:
            return
        name = self.solver.name
        known = combinations_of(self.solver)
        keys = [
            *dict.fromkeys(f"{corpus_prefix(name, one.corpus)}/{CORPUS}" for one in known),
            f"{corpus_prefix(name)}/{CORPUS}", coverage_key(name),
            *(build_key(name, "production", base, one.name) for one in known),
            *([combinations_key(name, base)] if self.solver.matrix is not None else []),
        ]  # fmt: skip
        for key in keys:
            try:
                found = await self.stored.get(key)
            except WindlassError as error:
                self.notify(f"fuzzing without what is in the bucket: {error}")
                self.stored = None  # asking again would only take time
                return
            if found is not None:
                await local.put(key, found.body)

    async def _with_closed_inputs(self, solver: Solver) -> Solver:
        """Adds the inputs of closed findings to the seeds."""
        folder = fresh_folder(self.work / "closed-inputs")
        if self.stored is None:
            return solver
        known = KnownBugs(solver, self._pipeline(self.stored), self.notify)
        if not await known.fetch_closed_inputs(folder):
            return solver
        corpora = (*solver.seeds.corpora, str(folder))
        seeds = msgspec.structs.replace(solver.seeds, corpora=corpora)
        return msgspec.structs.replace(solver, seeds=seeds)

    async def _compare(
        self, local: Pipeline, finding: Finding, base: str, head: str
    ) -> CheckedFinding:
        """Runs the inputs of a finding with the base's build of the combination it broke.

        Two bugs may fail in the same way: one input that the base runs fine makes it new.
        """
        one = next(c for c in combinations_of(self.solver) if c.name == finding.combination)
        builds = BuildCache(local, fresh_folder(self.work / "builds"), one.name)
        before, after = await builds.fetch(base), await builds.fetch(head)
        told = Told(f"cannot tell: {one.name or 'it'} could not be built")
        if before is not None:
            told = await self._ask(local, one, before, finding)
        if before is not None and after is not None and told.said == FAILS_TOO:
            for other in inputs_of(finding):
                path = self.work / "compared"
                await FindingStore(local).fetch_input(finding, path, other.name)
                changed = shown_by(finding, other, path.read_bytes())
                now = await self._ask(local, one, before, changed)
                if now.said != FAILS_TOO and await self._always_fails(local, one, after, changed):
                    finding, told = changed, now
                    break
        self.findings.append(finding)
        age: Age = "old" if told.said == FAILS_TOO else "new"
        if age == "new" and finding.state == "flaky":
            age = "flaky"
        return _checked(finding, age, told)

    async def _ask(
        self, local: Pipeline, one: Combination, build: LocalBuild, finding: Finding
    ) -> Told:
        result = await self._run(local, one, build, finding)
        if result.shown:
            titles = [signature.title for signature in result.signatures]
            another = bool(titles) and finding.names.isdisjoint(titles)
            return Told(FAILS_TOO, titles[0] if another else "")
        return Told(FINE if result.fine else f"cannot tell: the input {result.unclear}")

    async def _always_fails(
        self, local: Pipeline, one: Combination, build: LocalBuild, finding: Finding
    ) -> bool:
        result = await self._run(local, one, build, finding)
        return 0 < result.shown == result.tried

    async def _run(
        self, local: Pipeline, one: Combination, build: LocalBuild, finding: Finding
    ) -> Reproduction:
        """Runs the representative input of a finding with a build, as often as its kind needs."""
        path = self.work / input_name(finding)
        await FindingStore(local).fetch_input(finding, path)
        judge = EngineFactory(one.solver, local, self.work, one.env).judge(build.folder)
        tries = tries_for(finding.shown, finding.tried, TRIES)
        return await judge.reproduce(path, tries, finding.kind in Slow)

    def _remove_results(self) -> None:
        """Removes what an earlier check left: a failing one must not show the results of another.

        Its inputs are removed when there are others.
        """
        for name in RESULTS:
            (self.output / name).unlink(missing_ok=True)

    async def _write(self, local: Pipeline, report: CheckReport, changed: list[str]) -> None:
        """Writes the summary, the SARIF file, the result and the inputs."""
        inputs = fresh_folder(self.output / "inputs")
        for one in self.findings:
            await FindingStore(local).fetch_input(one, inputs / input_name(one))
        sources = self.work / "checkout"
        places = {one.key: place_of(one, sources, changed) for one in self.findings}
        new = {one.key for one in report.findings if one.age == "new"}
        document = sarif(self.findings, places, new)
        page = summary_page(report, self.findings, places, self.solver.name)
        contents = (page.encode(), msgspec.json.encode(document), msgspec.json.encode(report))
        for name, content in zip(RESULTS, contents, strict=True):
            (self.output / name).write_bytes(content)
        shutil.rmtree(self.work / "check", ignore_errors=True)


def summary_page(
    report: CheckReport, findings: list[Finding], places: dict[str, Place], solver: str
) -> str:
    """Returns the Markdown summary of a check."""
    verdict = {
        "passed": f"the change was not fuzzed, as {report.why}" if report.why else "no new bug",
        "refused": "the change brings a fixed bug back"
        if report.known
        else "the change introduces a bug",
        "unhealthy": f"the change could not be fuzzed: {code(report.why)}",
    }[report.outcome]
    base = f"`{report.base[:12]}`" + (f" on {code(report.branch)}" if report.branch else "")
    lines = [
        f"# {solver}: {verdict}", "",
        f"`{report.head[:12]}` against {base}{_what_ran(report)}.", "",
    ]  # fmt: skip
    if report.base_why:
        told = f"The base cannot be built: {code(report.base_why)}. So every bug counts as new."
        lines += [told, ""]
    lines += code_block("Output of the build", report.output)
    if report.known:
        said = f"The input of finding `{report.known}` fails again, so that nothing was fuzzed."
        lines += [said, ""]
    for known in report.fixed:
        lines += [f"It runs the input of finding `{known.key}` fine: {code(known.title)}.", ""]
    if report.findings:
        lines += ["| age | kind | finding | place | input | the base |", "|---" * 6 + "|"]
        for one in report.findings:
            place = code("{0.file}:{0.line}".format(places[one.key]))
            lines.append(
                f"| {one.age} | {one.kind.replace('_', ' ')} | {code(one.title)} | "
                f"{place} | `{one.input}` ({count_of(one.size, 'byte')}) | {_base_text(one)} |"
            )
        lines.append("")
    ages = {one.key: one.age for one in report.findings}
    new = [one for one in findings if ages[one.key] == "new"]
    return "\n".join([*lines, *_reports(new, solver, MAX_SUMMARY - sum(map(len, lines)))])


def _reports(findings: list[Finding], solver: str, room: int) -> list[str]:
    """Returns the reports of these findings, as many as there is room for."""
    shown: list[str] = []
    for number, finding in enumerate(findings):
        page = render(finding, solver, f"inputs/{input_name(finding)}", "check")
        room -= len(page)
        if room < 0:
            left = count_of(len(findings) - number, "more new finding")
            return [*shown, f"There is no room here for the reports of {left}.", ""]
        shown += [page, ""]
    return shown


def _base_text(one: CheckedFinding) -> str:
    return f"{one.base}, as {code(one.base_title)}" if one.base_title else one.base


def _checked(finding: Finding, age: Age, told: Told) -> CheckedFinding:
    return CheckedFinding(
        key=finding.key, title=finding.title, kind=finding.kind, age=age, base=told.said,
        input=f"inputs/{input_name(finding)}", size=finding.size, base_title=told.title,
    )  # fmt: skip


def _what_ran(report: CheckReport) -> str:
    count = report.statistics
    if count is None:
        return ""
    ran = f"{count_of(count.executions, 'execution')} from {count_of(report.tests, 'test')}"
    return f": {ran} ({report.chosen_by})"


def _outcome(
    sickness: str, findings: list[CheckedFinding]
) -> Literal["passed", "refused", "unhealthy"]:
    if any(one.age == "new" for one in findings):
        return "refused"
    return "unhealthy" if sickness else "passed"


async def _resolve(mirror: Mirror, name: str, field_name: str) -> str:
    if name.startswith("-"):
        raise InvalidInput(field_name, "a commit or a branch", name)
    return await mirror.resolve(name)
