"""New commits from the repository itself, through a mirror on this machine."""

from collections.abc import Sequence

from windlass.domain.values.errors import NotFound, WindlassError
from windlass.fuzzing.checkout import GitFailed, Mirror
from windlass.fuzzing.commits import LEFT_LAST, NO_LAST, UNKNOWN_LAST, Commit, History


class GitCommits:
    """`Commits` of a branch, by git."""

    def __init__(self, mirror: Mirror, branch: str, repository: str) -> None:
        self._mirror = mirror
        self._branch = branch
        self._repository = repository

    async def since(self, last: str | None, newest: int) -> History:
        await self._mirror.fetch()
        head = await self._head()
        fresh = await self._why_fresh(last, head)
        if fresh:
            found = await self._log("--max-count", str(newest), head)
            return History(head, found, fresh)
        found = await self._log(head, f"^{last}")
        (start,) = await self._log("--max-count", "1", str(last))
        return History(head, found, last_ms=start.at_ms)

    async def files(self, commit: str) -> Sequence[str]:
        parent = await self._mirror.parent(commit)
        named = ("-z", "-r", "-M", "--no-commit-id", "--name-status", "--no-ext-diff")
        if parent is None:
            said = await self._mirror.git("diff-tree", "--root", *named, commit)
        else:
            said = await self._mirror.git("diff-tree", *named, parent, commit)
        return _names(said.split("\0"))

    async def resolve(self, commit: str) -> str:
        await self._mirror.fetch()
        return await self._mirror.require(commit)

    async def close(self) -> None:
        """The mirror is kept for the next run."""

    async def _head(self) -> str:
        try:
            ref = f"refs/heads/{self._branch}^{{commit}}"
            return (await self._mirror.git("rev-parse", "--verify", "--quiet", ref)).strip()
        except GitFailed:
            raise WindlassError(
                f"expected a branch {self._branch} in {self._repository}, there is none; if it "
                "was renamed or removed, change `branch` in the solver's file"
            ) from None

    async def _why_fresh(self, last: str | None, head: str) -> str:
        if last is None:
            return NO_LAST
        try:
            await self._mirror.require(last)
        except NotFound:
            return UNKNOWN_LAST
        return "" if await self._mirror.is_ancestor(last, head) else LEFT_LAST

    async def _log(self, *words: str) -> tuple[Commit, ...]:
        """Oldest first."""
        said = await self._mirror.git("log", "--first-parent", "--format=%H %ct", *words, "--")
        lines = [line.split() for line in said.splitlines() if line]
        return tuple(Commit(name, int(at) * 1000) for name, at in reversed(lines))


def _names(parts: list[str]) -> list[str]:
    """Of `M\\0path\\0R100\\0old\\0new\\0`: the paths, two of them for renames and copies."""
    names: list[str] = []
    place = 0
    while place < len(parts) and parts[place]:
        count = 2 if parts[place][0] in "RC" else 1
        names.extend(parts[place + 1 : place + 1 + count])
        place += 1 + count
    return names
