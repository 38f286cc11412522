"""Tries out a new build: does it fuzz, and do its counters count?"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from windlass.ports.clock import Clock
from windlass_fuzz.builds.build_cache import LocalBuild
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.engines.engine import Campaign, Engine, EngineFailed
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.reach.measurement import measurement_of

FUZZ_MS: Final = 2_000
SLOW_MS: Final = 3_000  # time limit for a test
MEASURE_MS: Final = 60_000


async def production_trouble(
    engine: Engine, tests: Sequence[Path], corpus: Path, crashes: Path, took_ms: int
) -> str:
    """Fuzzes briefly, if the engine counts coverage; returns a complaint if it reaches no code.

    A build that fails at once can be fuzzed: inputs that break it are in `crashes` then. A build
    that needs long for a test would barely start in that time, so it is not tried.
    """
    if not getattr(engine, "counts_coverage", False) or took_ms > SLOW_MS:
        return ""
    fine = [path for path in tests if (await engine.classify(path)).kind == "fine"]
    if not fine:
        return ""  # an engine that starts from failing inputs may count nothing
    corpus.mkdir(parents=True)
    try:
        count = await engine.fuzz(Campaign(fine[:1], corpus, crashes, FUZZ_MS, 1, True))
    except EngineFailed as error:
        return f"the new build cannot be fuzzed: {error}"
    if count.coverage == 0 and not count.bugs:  # a build that fails at once has reached code
        return "the new build covers no code: is it built for this engine?"
    return ""


async def coverage_trouble(
    solver: Solver, build: LocalBuild, tests: Sequence[Path], folder: Path, clock: Clock
) -> str:
    """Runs tests with the coverage build; returns a complaint if they reach no function."""
    folder.mkdir(parents=True)
    try:
        measurement = measurement_of(solver, build, folder, clock, 1, MEASURE_MS)
    except InvalidSetting:
        return ""  # an engine without a command for one input
    until_ms = clock.now_ms() + MEASURE_MS
    if not await measurement.add(tests, until_ms):
        if measurement.collector.wrote() or clock.now_ms() >= until_ms:
            return ""
        return "the new coverage build writes no counts: is it built for coverage?"
    if not any((await measurement.read()).functions()):
        return "the tests reach no function of the new coverage build"
    return ""
