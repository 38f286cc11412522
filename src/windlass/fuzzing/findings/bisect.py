"""Runs an input under builds of several commits, to find where a bug began or ended."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from windlass.fuzzing.builds.build_cache import BuildCache
from windlass.fuzzing.engines.engine import Engine, Verdict
from windlass.fuzzing.sources.mirror import Mirror

TRIES: Final = 5


class Reproduction(NamedTuple):
    """How often an input failed in the same way, and the last verdict."""

    shown: int
    tried: int
    verdict: Verdict | None


class Origin(NamedTuple):
    """The first bad build, and the last good one before it (None if all are bad)."""

    first_bad: str | None
    last_good: str | None


async def reproduce(engine: Engine, path: Path, title: str, tries: int = TRIES) -> Reproduction:
    """Runs an input several times and counts the failures with this title."""
    shown = 0
    last = None
    for _ in range(tries):
        verdict = await engine.classify(path)
        if verdict.kind == "bug" and verdict.title == title:
            shown += 1
            last = verdict
    return Reproduction(shown, tries, last)


class Bisector:
    """Runs an input with the builds of other commits."""

    def __init__(
        self, builds: BuildCache, mirror: Mirror, engine_for: Callable[[Path], Engine], tries: int
    ) -> None:
        self._builds = builds
        self._mirror = mirror
        self._engine_for = engine_for
        self._tries = tries

    async def fails(self, commit: str, path: Path, title: str) -> bool | None:
        """Returns whether the build of a commit shows the bug; None if there is no such build."""
        build = await self._builds.fetch(commit)
        if build is None:
            return None
        engine = self._engine_for(build.folder)
        return (await reproduce(engine, path, title, self._tries)).shown > 0

    async def origin(self, commit: str, path: Path, title: str) -> Origin:
        """Bisects the builds before `commit`, which is known to be bad.

        The previous build is tried first: usually it is good, which ends the search.
        """
        line = [c for c in await self.built_ancestors(commit) if c != commit]
        first_bad = commit
        last_good: str | None = None
        index = len(line) - 1
        while line:
            verdict = await self.fails(line[index], path, title)
            if verdict is None:
                del line[index]
            elif verdict:
                first_bad = line[index]
                line = line[:index]
            else:
                last_good = line[index]
                line = line[index + 1 :]
            index = len(line) // 2
        return Origin(first_bad, last_good)

    async def built_ancestors(self, commit: str) -> list[str]:
        """Returns the ancestors of a commit that have a build, oldest first."""
        known = await self._mirror.in_order(await self._builds.commits())
        return [c for c in known if await self._mirror.is_ancestor(c, commit)]

    async def subject(self, commit: str) -> str:
        """Returns author, date and first line of a commit."""
        return await self._mirror.subject(commit)

    async def comes_after(self, commit: str, later: str) -> bool:
        """Returns whether `later` is a descendant of `commit`."""
        return commit != later and await self._mirror.is_ancestor(commit, later)
