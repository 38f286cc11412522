"""Checks a change before it is merged: fuzzes what it reaches, and refuses it for new bugs.

A bug is new if the change's build shows it and the base's does not. The check reads the corpus
and the coverage map from the bucket if there is one, and writes nothing there.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import msgspec

from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.fuzzing.buckets.bucket import Bucket
from windlass.fuzzing.buckets.directory import DirectoryBucket
from windlass.fuzzing.buckets.layout import build_key, corpus_prefix, coverage_key
from windlass.fuzzing.builds.build_cache import BuildCache, LocalBuild
from windlass.fuzzing.config.alarm_settings import AlarmSettings
from windlass.fuzzing.config.solver_file import Solver
from windlass.fuzzing.engines.engine import Statistics
from windlass.fuzzing.findings.judge import Slow, tries_for
from windlass.fuzzing.findings.known import TRIES
from windlass.fuzzing.findings.markdown import code
from windlass.fuzzing.findings.record import Finding
from windlass.fuzzing.findings.report import input_name, render
from windlass.fuzzing.findings.sarif import Place, place_of, sarif
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.roles.builder import Builder
from windlass.fuzzing.roles.corpus import FILE as CORPUS
from windlass.fuzzing.roles.engine_factory import EngineFactory, fresh_folder
from windlass.fuzzing.roles.fuzzer import Fuzzer
from windlass.fuzzing.sources.mirror import Mirror
from windlass.fuzzing.state.pipeline import Pipeline
from windlass.fuzzing.state.rules import touches_code
from windlass.fuzzing.state.state_file import Runtime

Age = Literal["new", "old", "flaky"]
LARGEST_REPORT: Final = 60_000  # characters of a summary; GitHub shows at most a megabyte


class CheckedFinding(msgspec.Struct, kw_only=True):
    """A finding of a check; `base` says how the base's build handles its input."""

    key: str
    title: str
    kind: str
    age: Age
    base: str
    input: str
    size: int


class CheckReport(msgspec.Struct, kw_only=True):
    """The result of a check; only `passed` lets a change through."""

    outcome: Literal["passed", "refused", "unhealthy"]
    base: str
    head: str
    why: str = ""
    tests: int = 0
    chosen_by: str = ""
    statistics: Statistics | None = None
    findings: list[CheckedFinding] = []


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
        """Checks a change; `base` defaults to where it left the solver's branch."""
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        head = await _resolve(mirror, head, "head")
        base = await mirror.merge_base(await _resolve(mirror, base or self.solver.branch, "base"),
                                       head)  # fmt: skip
        if base == head:
            raise InvalidInput("head", f"a commit after the base {base[:12]}", head)
        solver = msgspec.structs.replace(
            self.solver, issues={}, alarms=AlarmSettings(), bisect="builds"
        )
        local = self._local()
        await self._copy_known(local.bucket, base)
        for commit in (base, head):
            if not await local.has_build(commit, ("production",)):
                await Builder(solver, local, self.work, self.notify).make(commit, ("production",))
        fuzzer = Fuzzer(
            solver, local, self.work, self.notify, self.on_progress, budget_ms=self.budget_ms,
            base=base,
        )  # fmt: skip
        fuzzed = await fuzzer.campaign(head)
        self.findings = [one async for one in FindingStore(local).all(self.notify) if one.live]
        checked = [await self._compare(local, one, base) for one in self.findings]
        report = CheckReport(
            outcome=_outcome(fuzzed.why, checked), base=base, head=head, why=fuzzed.why,
            tests=fuzzed.tests, chosen_by=fuzzed.chosen_by, statistics=fuzzed.statistics,
            findings=checked,
        )  # fmt: skip
        changed = await mirror.changed_files(base, head)
        await self._write(local, report, [c for c in changed if self._is_code(c)] or changed)
        return report

    def _is_code(self, path: str) -> bool:
        return touches_code([path], self.solver.commits.extensions)

    def _local(self) -> Pipeline:
        """Returns a pipeline in a folder of its own: a check leaves no trace."""
        bucket = DirectoryBucket(fresh_folder(self.work / "check"))
        return Pipeline(bucket, self.solver.name, self.runtime, self.holder)

    async def _copy_known(self, local: Bucket, base: str) -> None:
        """Copies what helps from the bucket; a bucket that does not answer stops nothing."""
        if self.stored is None:
            return
        name = self.solver.name
        keys = [
            f"{corpus_prefix(name)}/{CORPUS}", coverage_key(name),
            build_key(name, "production", base),
        ]  # fmt: skip
        for key in keys:
            try:
                found = await self.stored.get(key)
            except WindlassError as error:
                self.notify(f"fuzzing without what is in the bucket: {error}")
                return
            if found is not None:
                await local.put(key, found.body)

    async def _compare(self, local: Pipeline, finding: Finding, base: str) -> CheckedFinding:
        """Runs the input of a finding with the base's build."""
        builds = BuildCache(local, fresh_folder(self.work / "builds"))
        build = await builds.fetch(base)
        assert build is not None  # it was made or copied above
        path = self.work / input_name(finding)
        await FindingStore(local).fetch_input(finding, path)
        said = await self._ask(local, build, finding, path)
        age: Age = "old" if said == "fails too" else "new"
        if age == "new" and finding.state == "flaky":
            age = "flaky"
        return CheckedFinding(
            key=finding.key, title=finding.title, kind=finding.kind, age=age, base=said,
            input=f"inputs/{input_name(finding)}", size=finding.size,
        )  # fmt: skip

    async def _ask(self, local: Pipeline, build: LocalBuild, finding: Finding, path: Path) -> str:
        judge = EngineFactory(self.solver, local, self.work).judge(build.folder)
        tries = tries_for(finding.shown, finding.tried, TRIES)
        result = await judge.reproduce(path, tries, finding.kind in Slow)
        if result.shown:
            return "fails too"
        return "runs it fine" if result.fine else f"does not tell: the input {result.unclear}"

    async def _write(self, local: Pipeline, report: CheckReport, changed: list[str]) -> None:
        """Writes the summary, the SARIF file, the result and the inputs."""
        inputs = fresh_folder(self.output / "inputs")
        for one in self.findings:
            await FindingStore(local).fetch_input(one, inputs / input_name(one))
        sources = self.work / "checkout"
        places = {one.key: place_of(one, sources, changed) for one in self.findings}
        new = {one.key for one in report.findings if one.age == "new"}
        document = sarif(self.findings, places, new)
        (self.output / "report.sarif").write_bytes(msgspec.json.encode(document))
        (self.output / "result.json").write_bytes(msgspec.json.encode(report))
        page = summary_page(report, self.findings, places, self.solver.name)
        (self.output / "summary.md").write_text(page)
        shutil.rmtree(self.work / "check", ignore_errors=True)


def summary_page(
    report: CheckReport, findings: list[Finding], places: dict[str, Place], solver: str
) -> str:
    """Returns the Markdown summary of a check."""
    verdict = {
        "passed": "no new bug was found",
        "refused": "it introduces a bug",
        "unhealthy": f"it could not be fuzzed: {report.why}",
    }[report.outcome]
    count = report.statistics
    ran = "" if count is None else f"{count.executions} executions from {report.tests} tests "
    lines = [
        f"# Fuzzing {solver}: {verdict}", "",
        f"`{report.head[:12]}` against `{report.base[:12]}`: {ran}({report.chosen_by}).", "",
    ]  # fmt: skip
    if report.findings:
        lines += ["| age | kind | finding | place | input | the base |", "|---" * 6 + "|"]
        for one in report.findings:
            place = code("{0.file}:{0.line}".format(places[one.key]))
            lines.append(
                f"| {one.age} | {one.kind.replace('_', ' ')} | {code(one.title)} | "
                f"{place} | `{one.input}` ({one.size} bytes) | {one.base} |"
            )
        lines.append("")
    ages = {one.key: one.age for one in report.findings}
    for finding in (one for one in findings if ages[one.key] == "new"):
        location = f"inputs/{input_name(finding)}"
        lines += [render(finding, solver, location, stored=False), ""]
    return "\n".join(lines)[:LARGEST_REPORT]


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
