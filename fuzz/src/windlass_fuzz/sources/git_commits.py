"""Finds new commits in the repository itself, through a local mirror."""

from collections.abc import Sequence

from windlass.domain.values.errors import NotFound, WindlassError
from windlass_fuzz.sources.branches import choose
from windlass_fuzz.sources.commits import (
    LEFT_LAST,
    NO_LAST,
    UNKNOWN_LAST,
    Commit,
    Head,
    History,
    Watched,
)
from windlass_fuzz.sources.mirror import GitFailed, Mirror


class GitCommitSource:
    """A `CommitSource` that uses git; `head` is known if the mirror was already fetched."""

    def __init__(self, mirror: Mirror, branch: str, repository: str, head: str = "") -> None:
        self._mirror = mirror
        self._branch = branch
        self._repository = repository
        self._known_head = head

    async def watched(self, wanted: Sequence[str]) -> Watched:
        await self._mirror.fetch()
        found = choose(wanted, await self._mirror.heads())
        if wanted[0] in found.missing:
            raise self._no_branch(wanted[0])
        return found

    def on(self, head: Head) -> "GitCommitSource":
        return GitCommitSource(self._mirror, head.name, self._repository, head.commit)

    async def since(self, last: str | None, newest: int) -> History:
        if not self._known_head:
            await self._mirror.fetch()
        head = self._known_head or await self._head()
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
            output = await self._mirror.git("diff-tree", "--root", *named, commit)
        else:
            output = await self._mirror.git("diff-tree", *named, parent, commit)
        return _names(output.split("\0"))

    async def time_of(self, commit: str) -> int:
        try:
            return int(await self._mirror.git("show", "-s", "--format=%ct", commit, "--")) * 1000
        except GitFailed:
            return 0

    async def resolve(self, commit: str) -> str:
        await self._mirror.fetch()
        return await self._mirror.resolve(commit)

    async def close(self) -> None:
        """Does nothing: the mirror is kept for the next run."""

    async def _head(self) -> str:
        try:
            ref = f"refs/heads/{self._branch}^{{commit}}"
            return (await self._mirror.git("rev-parse", "--verify", "--quiet", ref)).strip()
        except GitFailed:
            raise self._no_branch(self._branch) from None

    def _no_branch(self, name: str) -> WindlassError:
        return WindlassError(
            f"branch {name} does not exist in {self._repository}; if it was renamed or deleted, "
            "change `branch` in the solver file"
        )

    async def _why_fresh(self, last: str | None, head: str) -> str:
        if last is None:
            return NO_LAST
        try:
            await self._mirror.require(last)
        except NotFound:
            return UNKNOWN_LAST
        return "" if await self._mirror.is_ancestor(last, head) else LEFT_LAST

    async def _log(self, *words: str) -> tuple[Commit, ...]:
        """Returns commits, oldest first."""
        output = await self._mirror.git("log", "--first-parent", "--format=%H %ct", *words, "--")
        lines = [line.split() for line in output.splitlines() if line]
        return tuple(Commit(name, int(at) * 1000) for name, at in reversed(lines))


def _names(parts: list[str]) -> list[str]:
    """Parses the paths of `M\\0path\\0R100\\0old\\0new\\0`; renames and copies have two."""
    names: list[str] = []
    place = 0
    while place < len(parts) and parts[place]:
        count = 2 if parts[place][0] in "RC" else 1
        names.extend(parts[place + 1 : place + 1 + count])
        place += 1 + count
    return names
