"""The tests of a solver, and which of them a commit is fuzzed from."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from windlass.domain.values.errors import InvalidInput
from windlass.fuzzing.board import Board
from windlass.fuzzing.checkout import Mirror
from windlass.fuzzing.coverage.mapping import Changed, CoverageMap, decode
from windlass.fuzzing.layout import coverage_key
from windlass.fuzzing.rules import touches_code
from windlass.fuzzing.solver import Solver


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


class Chooser:
    """Chooses for commits of one solver, by the map that is in the bucket."""

    def __init__(self, solver: Solver, board: Board, told: Callable[[str], None]) -> None:
        self._solver = solver
        self._board = board
        self._told = told

    async def choose(self, mirror: Mirror, commit: str, sources: Path) -> Chosen:
        """The tests for a commit, whose files lie in `sources`."""
        tests = tests_in(sources, self._solver.tests)
        extensions = self._solver.commits.extensions
        changed = [c for c in await mirror.changed(commit) if touches_code([c.path], extensions)]
        return choose_tests(tests, await self._map(), changed)

    async def _map(self) -> CoverageMap | None:
        """A map that cannot be read is passed over, for the mapper will make it anew."""
        stored = await self._board.bucket.get(coverage_key(self._solver.name))
        try:
            return None if stored is None else decode(stored.body)
        except InvalidInput as error:
            self._told(f"the coverage map is of no use: {error}")
            return None
