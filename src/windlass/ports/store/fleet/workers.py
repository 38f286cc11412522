"""The role that keeps workers."""

from collections.abc import Sequence
from typing import Protocol

from windlass.domain.matching.workers import PastMetadata
from windlass.domain.rows.records import (
    Worker,
)


class WorkersRead(Protocol):
    """Reads rows of `workers`."""

    async def all(self) -> list[Worker]: ...

    async def read(self, ids: Sequence[int]) -> dict[int, Worker]:
        """Returns these workers, not locked; unknown ids are absent."""
        ...

    async def read_name(self, name: str) -> Worker | None:
        """Returns the worker of this name, not locked."""
        ...

    async def past(self, since: int) -> list[PastMetadata]:
        """Returns what workers reported until `since` or later, ascending by worker and digest."""
        ...

    async def silent_since(self, cutoff: int, statuses: Sequence[int]) -> list[Worker]:
        """Returns workers in one of `statuses` last seen before `cutoff`, not locked."""
        ...

    async def troubled(self) -> list[Worker]:
        """Returns workers that have `troubles`, ascending by id, not locked."""
        ...


class WorkersWrite(WorkersRead, Protocol):
    """Reads and writes rows of `workers`."""

    async def lock(self, ids: Sequence[int]) -> dict[int, Worker]:
        """Locks and reads, ascending; unknown ids are absent."""
        ...

    async def lock_name(self, name: str) -> Worker | None: ...

    async def insert(self, row: Worker) -> int:
        """Inserts with a fresh id (the row's own `id` is ignored) and returns its id.

        0 if another transaction has just inserted a worker of this name.
        """
        ...

    async def update(self, rows: Sequence[Worker]) -> None:
        """Writes every column of these rows."""
        ...

    async def beat(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        """Writes (worker, seq, last_seen, last_lease): all that a plain sync changes."""
        ...

    async def remove(self, worker: int) -> None: ...

    async def note_past(self, row: PastMetadata, since: int) -> None:
        """Keeps what a worker reported until now; of each worker the newest `KEPT_METADATA`.

        What it reported until before `since` is forgotten.
        """
        ...
