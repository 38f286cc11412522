"""Runs many inputs with one coverage build and reads what they reach together.

All runs add to the same counts, so that reading them costs the same for one input as for ten
thousand.
"""

import asyncio
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from windlass_fuzz.coverage.reach import Reach
from windlass_fuzz.coverage.reports import lcov_names, reach_by_gcov, reach_by_lcov
from windlass_fuzz.coverage.tools import POOLED, CoverageTools
from windlass_fuzz.processes.environment import inherited_environment
from windlass_fuzz.processes.runner import Limits, run

PROBES: Final = 5  # a build whose first inputs write no counts will never write any

Command = Sequence[str]


@dataclass(slots=True)
class Collector:
    """Collects into a folder of its own; `limits` apply to each run."""

    tools: CoverageTools
    folder: Path
    limits: Limits
    cores: int = 1

    async def run(self, commands: Sequence[Command], until_ms: int) -> bool:
        """Runs the commands; returns whether all of them ran in time and any wrote counts."""
        probes, rest = commands[:PROBES], commands[PROBES:]
        if not await self._run_all(probes, until_ms) or not self.wrote():
            return False
        return await self._run_all(rest, until_ms)

    def wrote(self) -> bool:
        """Returns whether any run wrote counts; one that a signal ended writes none."""
        return any(self.folder.glob("profile-*.raw")) or any(self.folder.rglob("*.gcda"))

    async def read(self) -> Reach:
        """Returns what all runs so far reached."""
        root = self.tools.build.root
        profile = await self.tools.profile(self.folder)
        if profile is None:
            return reach_by_gcov(await self.tools.gcov(self.folder), root)
        text = (await self.tools.export(profile, "--format=lcov")).decode(errors="replace")
        names = await self.tools.names(lcov_names(text), self.folder)
        return reach_by_lcov(text, root, names)

    async def _run_all(self, commands: Sequence[Command], until_ms: int) -> bool:
        waiting = list(enumerate(commands))

        async def work() -> None:
            while waiting and self.tools.clock.now_ms() < until_ms:
                number, argv = waiting.pop(0)
                if not await self._run_one(number, argv, until_ms):
                    waiting.append((number, argv))

        await asyncio.gather(*(work() for _ in range(max(self.cores, 1))))
        return not waiting

    async def _run_one(self, number: int, argv: Command, until_ms: int) -> bool:
        """Runs a command; returns whether it had its full time limit."""
        left = max(until_ms - self.tools.clock.now_ms(), 1)
        limits = replace(self.limits, timeout_ms=min(left, self.limits.timeout_ms))
        folder = self.folder / f"run-{number}"
        folder.mkdir(parents=True)
        env = {**inherited_environment(), **self.tools.variables(self.folder, POOLED)}
        try:
            ended = await run(
                argv, cwd=folder, log=folder / "log", limits=limits, clock=self.tools.clock,
                env=env,
            )  # fmt: skip
            return ended.reason != "timeout" or limits == self.limits
        finally:
            shutil.rmtree(folder, ignore_errors=True)
