"""Finds the tests of a solver, and selects those that a commit is fuzzed from."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.buckets.layout import coverage_key
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.coverage.coverage_map import ChangedFunction, CoverageMap, decode
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.rules import touches_code


class SeedSelection(NamedTuple):
    """The tests to start from, the most relevant first, and why.

    `everything` lists all tests, those to start from first: all of them are run unmodified. `reach`
    says whether tests are known to reach the changes.
    """

    tests: list[Path]
    why: str
    everything: list[Path]
    reach: bool = False

    def with_more(self, inputs: Sequence[Path]) -> "SeedSelection":
        """Returns the selection with inputs from outside the repository after the tests."""
        if not inputs:
            return self
        why = f"{self.why}, and {len(inputs)} from outside"
        return SeedSelection([*self.tests, *inputs], why, [*self.everything, *inputs], self.reach)


def find_tests(sources: Path, patterns: Sequence[str]) -> dict[str, Path]:
    """Returns the files that match the patterns, by their path in the repository.

    Links that lead out of it are left out: other local files are not tests, and would end up in
    findings and issues.
    """
    top = sources.resolve()
    found = {
        path
        for pattern in patterns
        for path in sources.glob(pattern)
        if path.is_file() and path.resolve().is_relative_to(top)
    }
    return {name_of(path.relative_to(sources)): path for path in sorted(found)}


def name_of(path: Path) -> str:
    """Returns a path as one line that can be stored and printed; names may be any bytes."""
    text = os.fsencode(path.as_posix()).decode(errors="backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def select_tests(
    tests: dict[str, Path], coverage: CoverageMap | None, changed: Sequence[ChangedFunction]
) -> SeedSelection:
    """Returns the tests that reach the changes, the rarest first, or all tests if none does."""
    everything = list(tests.values())
    if coverage is None:
        return SeedSelection(everything, "all, as there is no coverage map", everything)
    reaching = [name for name in coverage.tests_reaching(changed) if name in tests]
    if not reaching:
        why = "all, as none is known to reach the changes"
        return SeedSelection(everything, why, everything)
    why = f"{len(reaching)} of {len(everything)} reach the changes"
    mapped = frozenset(coverage.tests)
    unmapped = [name for name in tests if name not in mapped]
    order = dict.fromkeys([*reaching, *unmapped, *tests])
    return SeedSelection(
        [tests[name] for name in reaching], why, [tests[name] for name in order], reach=True
    )


class SeedSelector:
    """Selects tests for commits of one solver with the coverage map in the bucket.

    With a matrix, it uses the tests of one `target`, and the part of the map for that target.
    """

    def __init__(
        self, solver: Solver, pipeline: Pipeline, notify: Callable[[str], None], target: str = ""
    ) -> None:
        self._solver = solver
        self._target = target
        self._pipeline = pipeline
        self._notify = notify

    async def select(
        self, mirror: Mirror, commit: str, sources: Path, base: str | None = None
    ) -> SeedSelection:
        """Selects the tests for a commit that is checked out in `sources`.

        Its changes are those since `base`, by default since its first parent.
        """
        tests = find_tests(sources, self._solver.tests)
        extensions = self._solver.commits.extensions
        changed = [
            c for c in await mirror.changed(commit, base) if touches_code([c.path], extensions)
        ]
        return select_tests(tests, await self._map(), changed)

    async def _map(self) -> CoverageMap | None:
        """Returns the map, or None if it cannot be read: the coverage role will write a new one."""
        stored = await self._pipeline.bucket.get(coverage_key(self._solver.name))
        try:
            return None if stored is None else decode(stored.body).of_target(self._target)
        except InvalidInput as error:
            self._notify(f"ignoring the coverage map: {error}")
            return None
