"""Measures what one run reached that neither tests nor corpus had reached before.

Both sides run with the same coverage build, the fuzzed commit's, so the difference comes from this
run and not from the commit's changes.
"""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from windlass_fuzz.builds.build_cache import BuildCache
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.reach.measurement import measurement_of, news_of
from windlass_fuzz.reach.records import MAX_NAME, ReachRecords
from windlass_fuzz.state.pipeline import Pipeline

SHOWN: Final = 20  # functions that the report of a run names
TOOL_MS: Final = 60_000


class RunReach(msgspec.Struct, frozen=True, kw_only=True):
    """What a run was the first to reach: some functions as path:signature, and how many."""

    functions: list[str]
    function_count: int
    line_count: int


@dataclass(frozen=True, slots=True)
class RunMeasure:
    """Measures runs of one solver in an empty folder."""

    solver: Solver
    pipeline: Pipeline
    builds: BuildCache
    folder: Path
    cores: int

    async def run(
        self, commit: str, target: str, tests: Sequence[Path], corpus: Path,
        fetched: Collection[str], length_ms: int,
    ) -> RunReach | None:  # fmt: skip
        """Measures the inputs of the corpus that were not `fetched`, and records the result.

        Returns None if unknown: there is no coverage build, it counts nothing, or the time is too
        short.
        """
        before, fresh = _split(tests, corpus, fetched)
        clock = self.pipeline.runtime.clock
        until_ms = clock.now_ms() + length_ms
        build = await self.builds.fetch(commit, "coverage") if fresh else None
        if fresh and build is None:
            return None
        if build is None:
            return RunReach(functions=[], function_count=0, line_count=0)
        try:
            measurement = measurement_of(
                self.solver, build, self.folder, clock, self.cores, TOOL_MS
            )
        except InvalidSetting:
            return None  # an engine without a command for one input
        news = await news_of(measurement, before, fresh, until_ms)
        if news is None:
            return None
        if news.lines or news.functions:
            await ReachRecords(self.pipeline).add(commit, target, news)
        names = [f"{one.path}:{one.signature}"[:MAX_NAME] for one in news.functions[:SHOWN]]
        return RunReach(functions=names, function_count=len(news.functions), line_count=news.lines)


def _split(
    tests: Sequence[Path], corpus: Path, fetched: Collection[str]
) -> tuple[list[Path], list[Path]]:
    """Returns the earlier inputs and the new ones, each content once."""
    known = {_digest(path): path for path in tests}
    fresh: dict[str, Path] = {}
    for path in sorted(corpus.iterdir()):
        (known if path.name in fetched else fresh).setdefault(_digest(path), path)
    return list(known.values()), [path for digest, path in fresh.items() if digest not in known]


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
