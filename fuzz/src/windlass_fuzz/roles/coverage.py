"""The coverage role: gets a coverage build and maps which tests reach which functions.

Several machines can each map a shard of the tests. The last one to finish merges all shards into
the map that fuzzers use.
"""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass_fuzz.buckets.layout import coverage_key, plain_ending, report_prefix
from windlass_fuzz.builds.archive import unpack
from windlass_fuzz.builds.build_cache import BuildCache, LocalBuild
from windlass_fuzz.builds.build_runner import BuildFailed, BuildRunner
from windlass_fuzz.config.combinations import (
    Combination,
    combinations_of,
    for_coverage,
    one_of_each_target,
)
from windlass_fuzz.config.coverage_settings import CoverageOptions, coverage_options
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.coverage.coverage_map import CoverageMap, decode, encode
from windlass_fuzz.coverage.mapper import MappedTest, Mapper
from windlass_fuzz.coverage.tools import CoverageBuild
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.findings.untriaged import Untriaged
from windlass_fuzz.processes.runner import Limits, tail
from windlass_fuzz.reach.html_report import ReportMaker, TargetInputs
from windlass_fuzz.reach.html_store import HtmlStore, ReportInfo
from windlass_fuzz.roles.corpus import Corpus
from windlass_fuzz.roles.engine_factory import fresh_folder
from windlass_fuzz.roles.seed_selection import find_tests, name_of
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.pipeline import Pipeline

TROUBLES: Final = 20  # how many tests without coverage the report lists


class CoverageReport(msgspec.Struct, kw_only=True):
    """The result of a run; `merged` means that a map was written."""

    commit: str
    tests: int
    functions: int
    merged: bool
    missing: list[str] = []
    troubles: list[str] = []
    crashed: list[str] = []
    html: ReportInfo | None = None


class HtmlResult(msgspec.Struct, kw_only=True):
    """The HTML report that was made, and the folder that it was also written to."""

    report: ReportInfo
    folder: str = ""


class CoveragePlan(msgspec.Struct, kw_only=True):
    """What a run would do; without a build in the bucket it would make one first."""

    commit: str
    why: str
    in_bucket: bool
    tests: int
    shard: str
    cores: int
    timeout_ms: int
    replaces_map: bool
    writes: list[str]


@dataclass(slots=True)
class CoverageRole:
    """One run; `notify` gets messages, `on_progress` the number of finished tests.

    It maps tests for `time_ms` at most, if given.
    """

    solver: Solver
    pipeline: Pipeline
    work: Path
    notify: Callable[[str], None] = lambda _: None
    on_progress: Callable[[int, int], None] = lambda *_: None
    cores: int = 1
    time_ms: int | None = None

    async def run_once(
        self, commit: str | None = None, shard: tuple[int, int] = (1, 1)
    ) -> CoverageReport:
        """Maps the tests of the given commit, or of the newest one with a coverage build.

        In a matrix, each target runs its own tests, and all are in one map.
        """
        parts = one_of_each_target(self.solver)
        html = coverage_options(parts[0].solver).html
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        builds = BuildCache(self.pipeline, self.work / "builds")
        commit = await self._commit(mirror, builds, commit)
        build = await builds.fetch(commit, "coverage") or await self._make(mirror, commit)
        troubles: list[str] = []
        crashed: list[str] = []
        found = CoverageMap(commit, {})
        count = 0
        for part in parts:
            files = await self._tests(mirror, commit, shard, part.solver)
            count += len(files)
            own = await self._map(part, commit, build, files, troubles, crashed)
            found = found.merged(own.with_target(part.names.target))
        if not found.functions:
            raise WindlassError(f"no test wrote any coverage: {'; '.join(troubles[:3])}")
        report = await self._write(found, count, shard, troubles)
        report.crashed = crashed
        if report.merged and html:
            report.html = await self._try_report(mirror, commit, build, report)
        return report

    async def _map(
        self, part: Combination, commit: str, build: LocalBuild, files: Mapping[str, Path],
        troubles: list[str], crashed: list[str],
    ) -> CoverageMap:  # fmt: skip
        """Maps the tests of one target."""
        options = coverage_options(part.solver)
        mapper = self._mapper(build, options)
        tests = _commands(files, options, build.folder)

        def on_test_done(done: int, trouble: str) -> None:
            self.on_progress(done, len(tests))
            if trouble:
                troubles.append(trouble)

        mapper.on_test_done = on_test_done
        name = f" of {part.names.target}" if part.names.target else ""
        self.notify(f"{commit[:12]}: mapping {count_of(len(tests), 'test')}{name}")
        found = await mapper.run_all(commit, tests, self.cores)
        await self._keep_crashed(commit, [files[test] for test in mapper.crashed], part.name)
        crashed += mapper.crashed
        return found

    async def make_html(self, commit: str | None = None, into: Path | None = None) -> HtmlResult:
        """Makes the HTML report from tests and corpus, and stores it, without mapping tests."""
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        builds = BuildCache(self.pipeline, self.work / "builds")
        commit = await self._commit(mirror, builds, commit)
        build = await builds.fetch(commit, "coverage") or await self._make(mirror, commit)
        info = await self._report(mirror, commit, build, into)
        return HtmlResult(report=info, folder="" if into is None else str(into))

    async def _try_report(
        self, mirror: Mirror, commit: str, build: LocalBuild, report: CoverageReport
    ) -> ReportInfo | None:
        """Makes the report; if that fails, the map remains."""
        try:
            return await self._report(mirror, commit, build)
        except WindlassError as error:
            report.troubles.append(f"no HTML report: {error}")
            return None

    async def _report(
        self, mirror: Mirror, commit: str, build: LocalBuild, into: Path | None = None
    ) -> ReportInfo:
        sources = self.work / "checkout" / "tests"
        await mirror.checkout(commit, sources)
        targets = await self._inputs(sources)
        scratch, pages = fresh_folder(self.work / "report"), fresh_folder(self.work / "pages")
        maker = ReportMaker(self.pipeline, build, sources, scratch, self.cores, self.notify)
        info = await maker.make(commit, targets, pages)
        if into is not None:
            shutil.copytree(pages, into, dirs_exist_ok=True)
        return await HtmlStore(self.pipeline).save(pages, info)

    async def _inputs(self, sources: Path) -> list[TargetInputs]:
        """Returns the tests of each target, and the corpora of all its input formats."""
        folder = fresh_folder(self.work / "corpus")
        corpora: dict[str, set[str]] = {}
        for one in combinations_of(self.solver):
            corpora.setdefault(one.names.target, set()).add(one.corpus)
        found = []
        for part in one_of_each_target(self.solver):
            inputs = list(find_tests(sources, part.solver.tests).values())
            for name in sorted(corpora[part.names.target]):
                own = fresh_folder(folder / (name or "all"))
                await Corpus(self.pipeline, name).fetch(own)
                inputs += sorted(own.iterdir())
            found.append(TargetInputs(part.target, part.solver, inputs))
        return found

    async def _keep_crashed(
        self, commit: str, tests: Sequence[Path], combination: str = ""
    ) -> None:
        """Leaves tests that crash to the next fuzzer's run, which triages them."""
        if not tests:
            return
        folder = fresh_folder(self.work / "crashed")
        for number, path in enumerate(tests):
            self.notify(f"{name_of(Path(path.name))} crashes with the coverage build")
            shutil.copyfile(path, folder / f"{number}{plain_ending(path.name)}")
        if await self.pipeline.has_build(commit, ("production",)):
            await Untriaged(self.pipeline, combination).keep(commit, folder)

    async def plan(
        self, commit: str | None = None, shard: tuple[int, int] = (1, 1)
    ) -> CoveragePlan:
        """Returns what `run_once` would do, without making a build or running a test."""
        parts = one_of_each_target(self.solver)
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        named = commit is not None
        commit = await self._commit(mirror, BuildCache(self.pipeline, self.work / "builds"), commit)
        key = coverage_key(self.solver.name)
        own = [self._shard_key(commit, *shard)] if shard[1] > 1 else []
        options = coverage_options(parts[0].solver)
        pages = [f"{report_prefix(self.solver.name)}/"] if options.html else []
        return CoveragePlan(
            commit=commit,
            why="you named it" if named else "the newest with a coverage build in the bucket",
            in_bucket=await self.pipeline.has_build(commit, ("coverage",)),
            tests=sum([len(await self._tests(mirror, commit, shard, p.solver)) for p in parts]),
            shard=f"{shard[0]}/{shard[1]}", cores=self.cores,
            timeout_ms=options.timeout_ms,
            replaces_map=await self.pipeline.bucket.exists(key), writes=[*own, key, *pages],
        )  # fmt: skip

    async def _commit(self, mirror: Mirror, builds: BuildCache, commit: str | None) -> str:
        """Returns the given commit, or the newest one with a coverage build."""
        if commit is None:
            known = await mirror.in_order(await builds.commits("coverage"))
            if not known:
                raise InvalidSetting(
                    "commit",
                    "no commit has a coverage build in the bucket; run the builder, or name a "
                    "commit with --commit",
                )
            commit = known[-1]
        return await mirror.resolve(commit)

    async def _tests(
        self, mirror: Mirror, commit: str, shard: tuple[int, int], solver: Solver
    ) -> Mapping[str, Path]:
        """Returns the tests of a commit that belong to this shard."""
        sources = self.work / "checkout" / "tests"
        await mirror.checkout(commit, sources)
        found = list(find_tests(sources, solver.tests).items())[shard[0] - 1 :: shard[1]]
        if not found:
            patterns = ", ".join(solver.tests) or "none given"
            raise InvalidSetting("tests", f"no test matches the patterns in tests ({patterns})")
        return dict(found)

    async def _make(self, mirror: Mirror, commit: str) -> LocalBuild:
        self.notify(f"{commit[:12]}: coverage build")
        solver = for_coverage(self.solver)
        runner = BuildRunner(solver, mirror, self.work, self.pipeline.runtime.clock)
        log = self.work / "build.log"
        log.write_bytes(b"")
        try:
            archive = await runner.build(commit, "coverage", log)
        except BuildFailed as error:
            raise WindlassError(f"{error}; output: {tail(log, 2_000)}") from None
        folder = self.work / "builds" / "made"
        return LocalBuild(folder, unpack(archive, folder))

    def _mapper(self, build: LocalBuild, options: CoverageOptions) -> Mapper:
        limits = Limits(options.timeout_ms, memory=self.solver.memory_bytes)
        made = CoverageBuild(build.folder, Path(build.metadata.root), options.binary)
        mapper = Mapper(made, self.work / "mapping", self.pipeline.runtime.clock, limits)
        if self.time_ms is not None:
            mapper.deadline_ms = self.pipeline.now_ms() + self.time_ms
        return mapper

    async def _write(
        self, found: CoverageMap, tests: int, shard: tuple[int, int], troubles: list[str]
    ) -> CoverageReport:
        missing: list[str] = []
        merged: CoverageMap | None = found
        if shard[1] > 1:
            merged, missing = await self._merge_shards(found, shard)
        if merged is not None:
            await self.pipeline.bucket.put(coverage_key(self.solver.name), encode(merged))
        return CoverageReport(
            commit=found.commit, tests=tests, functions=len((merged or found).functions),
            merged=merged is not None, missing=missing, troubles=troubles[:TROUBLES],
        )  # fmt: skip

    async def _merge_shards(
        self, found: CoverageMap, shard: tuple[int, int]
    ) -> tuple[CoverageMap | None, list[str]]:
        """Stores this shard, and merges all shards once they are complete."""
        number, count = shard
        await self.pipeline.bucket.put(self._shard_key(found.commit, number, count), encode(found))
        missing = []
        for other in range(1, count + 1):
            stored = await self.pipeline.bucket.get(self._shard_key(found.commit, other, count))
            if stored is None:
                missing.append(f"{other}/{count}")
            else:
                found = found.merged(decode(stored.body))
        return (None if missing else found), missing

    def _shard_key(self, commit: str, number: int, count: int) -> str:
        folder = coverage_key(self.solver.name).rpartition("/")[0]
        return f"{folder}/shards/{commit}/{number}-of-{count}.json.gz"


def parse_shard(text: str) -> tuple[int, int]:
    """Parses `2/4`, the second of four shards."""
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise InvalidInput("shard", "a part such as 2/4 (the second of four)", text)
    return int(match[1]), int(match[2])


def _commands(
    tests: Mapping[str, Path], options: CoverageOptions, binaries: Path
) -> Sequence[MappedTest]:
    return [MappedTest(name, options.command(binaries, path)) for name, path in tests.items()]
