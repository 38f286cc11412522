"""The coverage mapper as a role: takes or makes a coverage build, and maps its tests.

Several machines may map a shard of the tests each; whoever completes the last one merges
them all into the map that fuzzers use.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.domain.values.quantities import parse_duration_ms
from windlass.fuzzing.archives import unpack
from windlass.fuzzing.board import Board
from windlass.fuzzing.building import BuildFailed, Workshop
from windlass.fuzzing.builds import Builds, LocalBuild
from windlass.fuzzing.checkout import Mirror
from windlass.fuzzing.choosing import tests_in
from windlass.fuzzing.coverage.mapper import CoverageBuild, MappedTest, Mapper
from windlass.fuzzing.coverage.mapping import CoverageMap, decode, encode
from windlass.fuzzing.layout import coverage_key
from windlass.fuzzing.processes import Bounds, tail
from windlass.fuzzing.solver import Solver

TROUBLES: Final = 20  # tests without coverage that are named in the report


class CoverageOptions(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What the description says under `coverage`.

    `argv` runs one test with the coverage build (default: the engine's own `argv`, or its
    `binary` with one input), `binary` is the program that llvm-cov reads, `timeout` is for one
    test.
    """

    argv: list[str] = []
    binary: str = ""
    timeout: str = "60s"


class CoverageReport(msgspec.Struct, kw_only=True):
    """What a run of the mapper did; `merged` says that a map was written."""

    commit: str
    tests: int
    functions: int
    merged: bool
    missing: list[str] = []
    troubles: list[str] = []


class CoveragePlan(msgspec.Struct, kw_only=True):
    """What a run of the mapper would do; without a build `in_bucket` it would make one here."""

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
    """One run; `told` hears what is going on, `counted` how many tests are done."""

    solver: Solver
    board: Board
    work: Path
    told: Callable[[str], None] = lambda _: None
    counted: Callable[[int, int], None] = lambda *_: None
    cores: int = 1

    async def run_once(
        self, commit: str | None = None, shard: tuple[int, int] = (1, 1)
    ) -> CoverageReport:
        """Map the tests of the newest commit with a coverage build, or of this one."""
        options = coverage_options(self.solver)
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        builds = Builds(self.board, self.work / "builds")
        commit = await self._commit(mirror, builds, commit)
        build = await builds.fetch(commit, "coverage") or await self._make(mirror, commit)
        mapper = self._mapper(build, options)
        tests = _commands(await self._tests(mirror, commit, shard), options, build.folder)
        troubles: list[str] = []

        def told(done: int, trouble: str) -> None:
            self.counted(done, len(tests))
            if trouble:
                troubles.append(trouble)

        mapper.told = told
        self.told(f"{commit[:12]}: mapping {len(tests)} tests")
        found = await mapper.run_all(commit, tests, self.cores)
        if not found.functions:
            raise WindlassError(f"no test reached anything: {'; '.join(troubles[:3])}")
        return await self._write(found, len(tests), shard, troubles)

    async def foresee(
        self, commit: str | None = None, shard: tuple[int, int] = (1, 1)
    ) -> CoveragePlan:
        """What `run_once` would do, without a build and without running a test."""
        options = coverage_options(self.solver)
        mirror = Mirror(self.solver.repository, self.work / "mirror.git")
        await mirror.fetch()
        named = commit is not None
        commit = await self._commit(mirror, Builds(self.board, self.work / "builds"), commit)
        key = coverage_key(self.solver.name)
        own = [self._shard_key(commit, *shard)] if shard[1] > 1 else []
        return CoveragePlan(
            commit=commit,
            why="it was named" if named else "the newest with a coverage build in the bucket",
            in_bucket=await self.board.has_build(commit, ("coverage",)),
            tests=len(await self._tests(mirror, commit, shard)),
            shard=f"{shard[0]}/{shard[1]}", cores=self.cores,
            timeout_ms=parse_duration_ms(options.timeout, "coverage.timeout"),
            replaces_map=await self.board.bucket.exists(key), writes=[*own, key],
        )  # fmt: skip

    async def _commit(self, mirror: Mirror, builds: Builds, commit: str | None) -> str:
        """The newest commit with a coverage build, or the one that was named."""
        if commit is None:
            known = await mirror.in_order(await builds.commits("coverage"))
            if not known:
                raise InvalidInput(
                    "coverage build", "in the bucket (the builder makes one), or --commit", "none"
                )
            commit = known[-1]
        return await mirror.require(commit)

    async def _tests(
        self, mirror: Mirror, commit: str, shard: tuple[int, int]
    ) -> Mapping[str, Path]:
        """The tests of a commit that belong to this part."""
        sources = self.work / "checkout" / "tests"
        await mirror.checkout(commit, sources)
        found = list(tests_in(sources, self.solver.tests).items())[shard[0] - 1 :: shard[1]]
        if not found:
            raise InvalidInput("tests", "patterns that find files", list(self.solver.tests))
        return dict(found)

    async def _make(self, mirror: Mirror, commit: str) -> LocalBuild:
        self.told(f"{commit[:12]}: coverage build")
        workshop = Workshop(self.solver, mirror, self.work, self.board.around.clock)
        log = self.work / "build.log"
        log.write_bytes(b"")
        try:
            archive = await workshop.build(commit, "coverage", log)
        except BuildFailed as error:
            raise WindlassError(f"{error}; it said: {tail(log, 2_000)}") from None
        folder = self.work / "builds" / "made"
        return LocalBuild(folder, unpack(archive, folder))

    def _mapper(self, build: LocalBuild, options: CoverageOptions) -> Mapper:
        binary = options.binary or self.solver.binaries[0]
        timeout = parse_duration_ms(options.timeout, "coverage.timeout")
        return Mapper(
            CoverageBuild(build.folder, Path(build.facts.root), binary), self.work / "mapping",
            self.board.around.clock, Bounds(timeout, memory=self.solver.memory_bytes),
        )  # fmt: skip

    async def _write(
        self, found: CoverageMap, tests: int, shard: tuple[int, int], troubles: list[str]
    ) -> CoverageReport:
        missing: list[str] = []
        merged: CoverageMap | None = found
        if shard[1] > 1:
            merged, missing = await self._merge_shards(found, shard)
        if merged is not None:
            await self.board.bucket.put(coverage_key(self.solver.name), encode(merged))
        return CoverageReport(
            commit=found.commit, tests=tests, functions=len((merged or found).functions),
            merged=merged is not None, missing=missing, troubles=troubles[:TROUBLES],
        )  # fmt: skip

    async def _merge_shards(
        self, found: CoverageMap, shard: tuple[int, int]
    ) -> tuple[CoverageMap | None, list[str]]:
        """Keep this shard; once all are there, all of them as one."""
        number, count = shard
        await self.board.bucket.put(self._shard_key(found.commit, number, count), encode(found))
        missing = []
        for other in range(1, count + 1):
            stored = await self.board.bucket.get(self._shard_key(found.commit, other, count))
            if stored is None:
                missing.append(f"{other}/{count}")
            else:
                found = found.merged(decode(stored.body))
        return (None if missing else found), missing

    def _shard_key(self, commit: str, number: int, count: int) -> str:
        folder = coverage_key(self.solver.name).rpartition("/")[0]
        return f"{folder}/shards/{commit}/{number}-of-{count}.json.gz"


def coverage_options(solver: Solver) -> CoverageOptions:
    """The options, with the engine's command where they name none."""
    try:
        options = msgspec.convert(dict(solver.coverage), CoverageOptions)
    except msgspec.ValidationError as error:
        raise InvalidInput("coverage", f"options that fit ({error})", solver.coverage) from None
    own: Any = solver.engine.get("argv")
    target: Any = solver.engine.get("binary")
    if not options.argv and isinstance(own, list):
        options.argv = [str(word) for word in own]
    elif isinstance(target, str):
        options.argv = options.argv or ["{binaries}/" + target, "{input}"]
        options.binary = options.binary or target
    if not options.argv:
        raise InvalidInput("coverage.argv", "the command that runs one test", "nothing")
    return options


def parse_shard(text: str) -> tuple[int, int]:
    """`2/4`: the second of four."""
    number, _, count = text.partition("/")
    if not (number.isdigit() and count.isdigit() and 1 <= int(number) <= int(count)):
        raise InvalidInput("shard", "such as 2/4, the second of four", text)
    return int(number), int(count)


def _commands(
    tests: Mapping[str, Path], options: CoverageOptions, binaries: Path
) -> Sequence[MappedTest]:
    return [
        MappedTest(
            name,
            [
                word.replace("{binaries}", str(binaries))
                .replace("{input}", str(path))
                .replace("@@", str(path))
                for word in options.argv
            ],
        )
        for name, path in tests.items()
    ]
