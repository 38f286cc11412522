"""Runs each test alone under the coverage build and collects the functions it reached.

A gcov build includes its `.gcno` files; each run writes its counters into its own folder,
wherever the build was made. An LLVM build writes a profile per run. The files that a run
writes show which of the two it is.
"""

import asyncio
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import WindlassError
from windlass.fuzzing.coverage.coverage_map import CoverageMap, Function
from windlass.fuzzing.coverage.reports import llvm_names, reached_by_gcov, reached_by_llvm
from windlass.fuzzing.errors import InvalidSetting
from windlass.fuzzing.processes.runner import Limits, run, tail
from windlass.ports.clock import Clock

TOOL_SECONDS: Final = 600
NAMES_AT_ONCE: Final = 1_000


@dataclass(frozen=True, slots=True)
class CoverageBuild:
    """A coverage build on this machine; `root` is where its sources were when it was made."""

    binaries: Path
    root: Path
    binary: str


@dataclass(frozen=True, slots=True)
class MappedTest:
    """A test's name, and the command that runs it."""

    name: str
    argv: Sequence[str]


@dataclass(slots=True)
class Mapper:
    """Runs tests under one build; `on_test_done` gets the number done and any error.

    `crashed` lists the tests that a signal ended.
    """

    build: CoverageBuild
    scratch: Path
    clock: Clock
    limits: Limits
    on_test_done: Callable[[int, str], None] = lambda *_: None
    crashed: list[str] = field(default_factory=list)

    async def run_all(self, commit: str, tests: Sequence[MappedTest], cores: int) -> CoverageMap:
        """Runs all tests, `cores` at a time, and returns the map."""
        reached: dict[Function, set[str]] = {}
        waiting = list(enumerate(tests))
        done = 0

        async def work() -> None:
            nonlocal done
            while waiting:
                number, test = waiting.pop(0)
                trouble = ""
                try:
                    for function in await self._reached(number, test):
                        reached.setdefault(function, set()).add(test.name)
                except WindlassError as error:
                    trouble = f"{test.name}: {error}"
                done += 1
                self.on_test_done(done, trouble)

        await asyncio.gather(*(work() for _ in range(max(cores, 1))))
        return CoverageMap(commit, {f: frozenset(names) for f, names in reached.items()})

    async def _reached(self, number: int, test: MappedTest) -> set[Function]:
        folder = self.scratch / f"test-{number}"
        folder.mkdir(parents=True)
        try:
            env = {**os.environ, **self._variables(folder)}
            ended = await run(
                test.argv, cwd=folder, log=folder / "log", limits=self.limits, clock=self.clock,
                env=env,
            )  # fmt: skip
            if ended.code < 0 and ended.reason == "exited":
                self.crashed.append(test.name)
            found = await self._read(folder)
            if not found:
                raise WindlassError(f"wrote no coverage; it {ended.describe(self.limits)}")
            return found
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _variables(self, folder: Path) -> dict[str, str]:
        strip = len(self.build.root.parts) - 1
        return {
            "GCOV_PREFIX": str(folder / "counts"),
            "GCOV_PREFIX_STRIP": str(strip),
            "LLVM_PROFILE_FILE": str(folder / "profile-%p.raw"),
        }

    async def _read(self, folder: Path) -> set[Function]:
        profiles = sorted(folder.glob("profile-*.raw"))
        if profiles:
            return set(await self._read_llvm(folder, profiles))
        return set(await self._read_gcov(folder / "counts"))

    async def _read_gcov(self, counts: Path) -> Iterable[Function]:
        """Runs `gcov`, which needs the build's notes next to the counters."""
        found = sorted(counts.rglob("*.gcda"))
        for path in found:
            notes = self.build.binaries / path.relative_to(counts).with_suffix(".gcno")
            if not notes.exists():
                message = f"the coverage build does not include its notes file {notes.name}"
                raise InvalidSetting("coverage build", message, notes.name)
            shutil.copyfile(notes, path.with_suffix(".gcno"))
        if not found:
            return []
        report = await self._tool(["gcov", "--json-format", "--stdout", *map(str, found)], counts)
        return reached_by_gcov(report, self.build.root)

    async def _read_llvm(self, folder: Path, profiles: list[Path]) -> Iterable[Function]:
        merged = folder / "profile.data"
        await self._tool(
            ["llvm-profdata", "merge", "--sparse", *map(str, profiles), "-o", str(merged)], folder
        )
        binary = self.build.binaries / self.build.binary
        export = await self._tool(
            ["llvm-cov", "export", str(binary), f"--instr-profile={merged}"], folder
        )
        return reached_by_llvm(export, self.build.root, await self._names(export, folder))

    async def _names(self, export: bytes, folder: Path) -> dict[str, str]:
        mangled = llvm_names(export)
        names: dict[str, str] = {}
        for start in range(0, len(mangled), NAMES_AT_ONCE):
            batch = mangled[start : start + NAMES_AT_ONCE]
            output = await self._tool(["c++filt", *batch], folder)
            names.update(zip(batch, output.decode().splitlines(), strict=True))
        return names

    async def _tool(self, argv: Sequence[str], folder: Path) -> bytes:
        if shutil.which(argv[0]) is None:
            raise InvalidSetting("coverage tool", f"{argv[0]} is not installed", argv[0])
        output, errors = folder / "tool.log", folder / "tool.errors"
        output.unlink(missing_ok=True)
        limits = Limits(TOOL_SECONDS * 1000, output=0)
        ended = await run(
            argv, cwd=folder, log=output, errors=errors, limits=limits, clock=self.clock
        )
        if not ended.ok:
            raise WindlassError(f"{argv[0]} {ended.describe(limits)}: {tail(errors, 500).strip()}")
        return output.read_bytes()
