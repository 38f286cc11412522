"""The protocol through which the manager finds new commits."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Commit(NamedTuple):
    """One commit on the branch's first-parent line; `at_ms` is its commit time."""

    hash: str
    at_ms: int


class History(NamedTuple):
    """The new commits of a branch, oldest first.

    `fresh` says why there was no commit to continue from; the newest few are listed instead.
    `last_ms` is the time of the commit from which the list continues.
    """

    head: str
    commits: tuple[Commit, ...]
    fresh: str = ""
    last_ms: int | None = None


class Head(NamedTuple):
    """A branch, its newest commit, and that commit's time, if known."""

    name: str
    commit: str
    at_ms: int = 0


class Watched(NamedTuple):
    """The branches to watch, in the order of the solver file.

    `left_out` match too, but their newest commits are older; `missing` are named but do not exist.
    """

    heads: tuple[Head, ...]
    left_out: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(head.name for head in self.heads)


class CommitSource(Protocol):
    """The commits of one branch along first parents, so that a merge counts as one commit."""

    async def watched(self, wanted: Sequence[str]) -> Watched:
        """Returns the branches that match these names and patterns; raises without the first."""
        ...

    def on(self, head: Head) -> "CommitSource":
        """Returns the current commits of another branch."""
        ...

    async def since(self, last: str | None, newest: int) -> History:
        """Returns the commits after `last`, or the `newest` few if `last` is not on the branch."""
        ...

    async def files(self, commit: str) -> Sequence[str]:
        """Returns the files a commit changed against its first parent; both names of a rename."""
        ...

    async def time_of(self, commit: str) -> int:
        """Returns the commit time of any commit in ms; 0 if the repository does not have it."""
        ...

    async def resolve(self, commit: str) -> str:
        """Returns the full hash; raises `NotFound` if there is no such commit."""
        ...

    async def close(self) -> None: ...


NO_LAST = "no commit was checked before"
UNKNOWN_LAST = "the last checked commit is no longer in the repository"
LEFT_LAST = "the branch was moved and no longer contains the last checked commit"
