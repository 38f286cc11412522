"""The role that keeps the event log and the counters beside it."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from windlass.domain.rows.events import Event


class LogRead(Protocol):
    """Reads: the event log and the counters beside it."""

    async def read(self, after: int, count: int) -> list[Event]: ...

    async def newest(self) -> int:
        """Returns the number of the newest event, 0 before the first."""
        ...

    async def times(self, numbers: Sequence[int]) -> dict[int, int]:
        """Returns when these events and the oldest one happened, of those that are there."""
        ...

    async def of_job(self, job: int) -> list[Event]: ...

    async def counters(self) -> dict[str, int]:
        """Returns every counter, summed over the shards."""
        ...


class LogWrite(LogRead, Protocol):
    """The event log and the counters beside it."""

    async def append(self, events: Sequence[Event]) -> None:
        """Numbers and writes these events, in order. The last statement of a transaction."""
        ...

    async def jump(self, event: Event) -> None:
        """Writes an event under the number it has; later ones follow it."""
        ...

    async def bump(self, deltas: Mapping[str, int]) -> None:
        """Adds to this engine's shard of the named counters."""
        ...
