"""Runs each test alone with the coverage build and collects the functions it reached."""

import asyncio
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from windlass.domain.values.errors import WindlassError
from windlass.ports.clock import Clock
from windlass_fuzz.coverage.coverage_map import CoverageMap, Function
from windlass_fuzz.coverage.reports import llvm_names, reached_by_gcov, reached_by_llvm
from windlass_fuzz.coverage.tools import CoverageBuild, CoverageTools
from windlass_fuzz.processes.environment import inherited_environment
from windlass_fuzz.processes.runner import Limits, run


@dataclass(frozen=True, slots=True)
class MappedTest:
    """A test's name, and the command that runs it."""

    name: str
    argv: Sequence[str]


@dataclass(slots=True)
class Mapper:
    """Runs tests with one build; `on_test_done` gets the number done and any error.

    No test starts after `deadline_ms`. `crashed` lists the tests that a signal ended.
    """

    build: CoverageBuild
    scratch: Path
    clock: Clock
    limits: Limits
    on_test_done: Callable[[int, str], None] = lambda *_: None
    deadline_ms: int | None = None
    crashed: list[str] = field(default_factory=list)

    async def run_all(self, commit: str, tests: Sequence[MappedTest], cores: int) -> CoverageMap:
        """Runs all tests, `cores` at a time, and returns the map."""
        reached: dict[Function, set[str]] = {}
        waiting = list(enumerate(tests))
        done = 0

        async def work() -> None:
            nonlocal done
            while waiting and not self._late():
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

    def _late(self) -> bool:
        return self.deadline_ms is not None and self.clock.now_ms() >= self.deadline_ms

    async def _reached(self, number: int, test: MappedTest) -> set[Function]:
        folder = self.scratch / f"test-{number}"
        folder.mkdir(parents=True)
        tools = CoverageTools(self.build, self.clock)
        try:
            env = {**inherited_environment(), **tools.variables(folder)}
            ended = await run(
                test.argv, cwd=folder, log=folder / "log", limits=self.limits, clock=self.clock,
                env=env,
            )  # fmt: skip
            if ended.code < 0 and ended.reason == "exited":
                self.crashed.append(test.name)
            found = await self._read(tools, folder)
            if not found:
                raise WindlassError(f"wrote no coverage; it {ended.describe(self.limits)}")
            return found
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _read(self, tools: CoverageTools, folder: Path) -> set[Function]:
        profile = await tools.profile(folder)
        root = self.build.root
        if profile is None:
            return set(reached_by_gcov(await tools.gcov(folder), root))
        export = await tools.export(profile)
        names = await tools.names(llvm_names(export), folder)
        return set(reached_by_llvm(export, root, names))
