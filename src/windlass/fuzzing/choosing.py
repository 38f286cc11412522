"""The tests of a solver, and which of them a commit is fuzzed from."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from windlass.fuzzing.coverage.mapping import Changed, CoverageMap


class Chosen(NamedTuple):
    """The tests to begin with, the most telling first, and why these."""

    tests: list[Path]
    why: str


def tests_in(sources: Path, patterns: Sequence[str]) -> dict[str, Path]:
    """The files that the patterns name, by their path from the top of the repository."""
    found = {path for pattern in patterns for path in sources.glob(pattern) if path.is_file()}
    return {path.relative_to(sources).as_posix(): path for path in sorted(found)}


def choose_tests(
    tests: dict[str, Path], coverage: CoverageMap | None, changed: Sequence[Changed]
) -> Chosen:
    """Those that reach what changed, the rarest first; all of them when none is known to."""
    everything = list(tests.values())
    if coverage is None:
        return Chosen(everything, "all, for there is no coverage map")
    reaching = [name for name in coverage.reaching(changed) if name in tests]
    if not reaching:
        return Chosen(everything, "all, for none is known to reach what changed")
    why = f"{len(reaching)} of {len(everything)} reach what changed"
    return Chosen([tests[name] for name in reaching], why)
