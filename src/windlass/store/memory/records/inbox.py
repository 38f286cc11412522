"""Rows of `inbox` and `job_aliases`."""

from collections.abc import Sequence

from windlass.domain.rows.records import InboxRow, JobAlias
from windlass.store.memory.tables import Tables


class MemoryInbox:
    """`InboxWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    async def waiting(self, after: int, count: int) -> list[InboxRow]:
        return list(self._tables.inbox.between((after + 1,), None))[:count]

    async def oldest(self) -> int | None:
        first = await self.waiting(0, 1)
        return first[0].at if first else None

    async def alias(self, job: int) -> int | None:
        row = self._tables.job_aliases.get(job)
        return None if row is None else row.became

    async def put(self, rows: Sequence[InboxRow]) -> None:
        for number, row in zip(self._tables.number("inbox", len(rows)), rows, strict=True):
            self._tables.inbox.insert(number, row._replace(id=number))

    async def take(self, ids: Sequence[int]) -> list[int]:
        found = [number for number in sorted(ids) if self._tables.inbox.get(number) is not None]
        for number in found:
            self._tables.inbox.pop(number)
        return found

    async def add_aliases(self, rows: Sequence[JobAlias]) -> None:
        for row in rows:
            self._tables.job_aliases.insert(row.job, row)

    async def trim_aliases(self, before: int, count: int) -> int:
        old = [row for row in self._tables.job_aliases.between((), None) if row.at < before]
        old.sort(key=lambda row: (row.at, row.job))
        for row in old[:count]:
            self._tables.job_aliases.pop(row.job)
        return min(len(old), count)
