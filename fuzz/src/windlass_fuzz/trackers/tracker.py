"""The tracker protocol: how issues are found, opened, closed and reopened."""

from typing import Any, NamedTuple, Protocol

import msgspec


class IssueText(msgspec.Struct, frozen=True, kw_only=True):
    """An issue to write. `mark` is a line of its body by which it is found again.

    `document` is data for programs; only webhooks send it.
    """

    mark: str
    title: str
    body: str
    labels: list[str]
    private: bool = False
    document: dict[str, Any] = {}


class Note(NamedTuple):
    """A note about a changed state of a finding; posted once per `mark`."""

    mark: str
    text: str
    document: dict[str, Any]


class Tracker(Protocol):
    """One project at an issue tracker.

    Each call raises `NotFound` if the issue was deleted, and another `WindlassError` if the
    tracker refuses or does not answer. Calling it again after that does no harm.
    """

    async def find(self, mark: str, private: bool) -> str | None:
        """Returns the address of the issue with this mark, open or closed."""
        ...

    async def open(self, issue: IssueText) -> str:
        """Opens an issue and returns its address."""
        ...

    async def rewrite(self, address: str, issue: IssueText) -> None:
        """Replaces the title and the text of an issue."""
        ...

    async def comment(self, address: str, note: Note) -> None:
        """Comments on an issue, which stays as it is."""
        ...

    async def close(self, address: str, note: Note) -> None:
        """Comments with the reason, and closes an issue."""
        ...

    async def reopen(self, address: str, note: Note) -> None:
        """Comments with the reason, and reopens an issue."""
        ...

    async def disconnect(self) -> None:
        """Closes the connections."""
        ...
