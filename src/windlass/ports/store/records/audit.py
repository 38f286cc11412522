"""The role of a transaction that keeps the audit log."""

from collections.abc import Sequence
from typing import Protocol

from windlass.domain.access.audit import AuditRow


class AuditRead(Protocol):
    """Reads rows of `audit`."""

    async def read(
        self, after: int, since: int, namespaces: Sequence[str], count: int
    ) -> list[AuditRow]:
        """Returns at most `count` rows above id `after` and not before `since`, ascending.

        With `namespaces`, only rows of these.
        """
        ...

    async def recent(self, before: int, count: int) -> list[AuditRow]:
        """Returns at most `count` rows below id `before` (0: all), descending."""
        ...


class AuditWrite(AuditRead, Protocol):
    """Reads and writes rows of `audit`."""

    async def append(self, rows: Sequence[AuditRow]) -> None:
        """Appends with fresh ids (the rows' own are ignored); readers meet them in order."""
        ...

    async def trim(self, before: int, count: int) -> int:
        """Removes at most so many rows from before this time, oldest first; returns how many."""
        ...
