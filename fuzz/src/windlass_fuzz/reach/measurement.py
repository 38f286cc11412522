"""Runs inputs with the coverage build of a commit and returns what they reach."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from windlass.ports.clock import Clock
from windlass_fuzz.builds.build_cache import LocalBuild
from windlass_fuzz.config.coverage_settings import CoverageOptions, coverage_options
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.coverage.collector import Collector
from windlass_fuzz.coverage.html import MadePages, make_html
from windlass_fuzz.coverage.reach import News, Reach
from windlass_fuzz.coverage.tools import TOOL_MS, CoverageBuild, CoverageTools
from windlass_fuzz.processes.runner import Limits


@dataclass(frozen=True, slots=True)
class Measurement:
    """The inputs that ran so far with one build add up in `collector`."""

    options: CoverageOptions
    build: LocalBuild
    collector: Collector

    async def add(self, inputs: Sequence[Path], until_ms: int) -> bool:
        """Runs inputs; returns whether all of them ran in time and any wrote counts."""
        commands = [self.options.command(self.build.folder, path) for path in inputs]
        return await self.collector.run(commands, until_ms)

    async def read(self) -> Reach:
        """Returns what all inputs so far reach."""
        return await self.collector.read()

    async def make_html(
        self, reach: Reach, sources: Path, into: Path, first: int | None = None
    ) -> MadePages:
        """Writes the pages of the report; for one target of several, from number `first` on."""
        collector = self.collector
        return await make_html(collector.tools, collector.folder, reach, sources, into, first)


def measurement_of(
    solver: Solver,
    build: LocalBuild,
    folder: Path,
    clock: Clock,
    cores: int,
    tool_ms: int = TOOL_MS,
) -> Measurement:
    """Returns a measurement in an empty folder; raises if the solver does not say how tests run."""
    options = coverage_options(solver)
    made = CoverageBuild(build.folder, Path(build.metadata.root), options.binary)
    limits = Limits(options.timeout_ms, memory=solver.memory_bytes)
    tools = CoverageTools(made, clock, tool_ms)
    return Measurement(options, build, Collector(tools, folder, limits, cores))


async def news_of(
    measurement: Measurement, before: Sequence[Path], fresh: Sequence[Path], until_ms: int
) -> News | None:
    """Returns what `fresh` inputs reach that those `before` do not, with the same build.

    Returns None if unknown: the time was too short, or the build counts nothing.
    """
    if not fresh:
        return News([], 0)
    if not await measurement.add(before, until_ms):
        return None
    known = await measurement.read()
    if not known.files or not await measurement.add(fresh, until_ms):
        return None
    return (await measurement.read()).beyond(known)
