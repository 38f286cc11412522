"""The roles of a transaction that keep what attempts took, and until when jobs may wait."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from windlass.domain.rows.statistics import StatisticsRow, Usage, WorkKind


class Taken(NamedTuple):
    """What one completed attempt took; `peak_memory` is 0 where nobody measured it."""

    shape: int
    run_ms: int
    peak_memory: int
    spec: bytes


class Looked(NamedTuple):
    """The number of the last event that was looked at, and what completed among them."""

    upto: int
    taken: list[Taken]


class StatisticsRead(Protocol):
    """Reads rows of `statistics` and `usage`, and the completed attempts they are made of."""

    async def completed(self, after: int, before: int, count: int) -> Looked:
        """Looks at up to `count` events behind number `after` that are not newer than `before`.

        Jobs that completed in them are told, in the order of the events, unless their rows
        have been removed since.
        """
        ...

    async def position(self) -> int:
        """Returns how far events are accounted for."""
        ...

    async def of_kinds(self, kinds: Sequence[WorkKind]) -> list[StatisticsRow]:
        """Returns them ascending by namespace, queue, kind and measure."""
        ...

    async def usage(self, jobs: Sequence[int]) -> dict[int, Usage]: ...


class StatisticsWrite(StatisticsRead, Protocol):
    """Reads and writes rows of `statistics` and `usage`, from completed attempts."""

    async def move_on(self, source: int, to: int) -> bool:
        """Records that events up to `to` are counted.

        Returns False if another server has advanced it past `source`. True means that this
        transaction holds it until it ends.
        """
        ...

    async def put(self, rows: Sequence[StatisticsRow]) -> None:
        """Inserts or replaces, by namespace, queue, kind and measure."""
        ...

    async def forget(self, before: int, keep: int) -> int:
        """Removes rows not updated since `before`, and the oldest beyond `keep`.

        Returns how many.
        """
        ...

    async def put_usage(self, row: Usage) -> None:
        """Inserts or replace, by job: the newest attempt's counts."""
        ...


class DeadlinesRead(Protocol):
    """Reads rows of `deadlines`: jobs that have to start or to end before a time."""

    async def passed(self, now: int, count: int) -> list[tuple[int, int]]:
        """Returns (at, job) with `at <= now`, earliest first, without locking."""
        ...


class DeadlinesWrite(DeadlinesRead, Protocol):
    """Reads and writes rows of `deadlines`: jobs that have to start or to end before a time."""

    async def add(self, rows: Sequence[tuple[int, int]]) -> None:
        """Adds (at, job); a job may have two."""
        ...

    async def drop(self, rows: Sequence[tuple[int, int]]) -> None: ...
