"""The role that keeps concurrency limits."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from windlass.domain.rows.records import (
    LimitRow,
)


class LimitsRead(Protocol):
    """Reads rows of `limits`: concurrency keys."""

    async def parked(self) -> list[int]:
        """Returns the limits under which jobs are parked."""
        ...

    async def read(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        """Returns these limits, not locked; unknown ids are absent."""
        ...


class LimitsWrite(LimitsRead, Protocol):
    """Reads and writes rows of `limits`: concurrency keys."""

    async def intern(self, rows: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], int]:
        """Returns ids of limits given as (namespace, key, max); existing ones get the new `max`."""
        ...

    async def lock(self, ids: Sequence[int]) -> dict[int, LimitRow]: ...

    async def lock_free(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        """Returns the same without waiting: limits another transaction holds are absent."""
        ...

    async def bump(self, deltas: Mapping[int, int]) -> None:
        """Adds to `leased` of these limits, which the caller has locked."""
        ...
