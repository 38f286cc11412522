"""Where new commits come from: what the manager asks, whoever answers."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Commit(NamedTuple):
    """One commit of a branch's own line; `at_ms` is when it was committed."""

    hash: str
    at_ms: int


class History(NamedTuple):
    """What is new on a branch, oldest first.

    `fresh` says why there was nothing to go on from, so that the newest few are told instead.
    `last_ms` is when the commit was made from which it went on.
    """

    head: str
    commits: tuple[Commit, ...]
    fresh: str = ""
    last_ms: int | None = None


class CommitSource(Protocol):
    """The commits of one branch by first parents: what was merged counts as its merge."""

    async def since(self, last: str | None, newest: int) -> History:
        """What came after `last`; the `newest` few if it is unknown or was left behind."""
        ...

    async def files(self, commit: str) -> Sequence[str]:
        """What a commit changed against its first parent; of a rename, both names."""
        ...

    async def resolve(self, commit: str) -> str:
        """The full hash; raises `NotFound` if there is no such commit."""
        ...

    async def close(self) -> None: ...


NO_LAST = "nothing was checked before"
UNKNOWN_LAST = "the commit checked last is not in the repository any more"
LEFT_LAST = "the branch was moved and the commit checked last is no part of it"
