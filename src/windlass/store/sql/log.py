"""The event log and the counters beside it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from windlass.domain.rows.events import Event
from windlass.store.sql.session import Role


class LogRead(Role, ABC):
    """Reads the event log and the counters beside it."""

    __slots__ = ()

    async def read(self, after: int, count: int) -> list[Event]:
        return await self._session.rows(Event, "read_events", after, count)

    async def newest(self) -> int:
        """Returns the number of the newest event, 0 before the first."""
        return int(await self._session.fetch_value("newest_event_seq"))

    async def times(self, numbers: Sequence[int]) -> dict[int, int]:
        """Returns the times of these events and of the oldest one; missing events are left out."""
        return dict(await self._session.fetch("event_times", self._session.integers(numbers)))

    async def counters(self) -> dict[str, int]:
        """Returns every counter, added up."""
        return dict(await self._session.fetch("counters"))

    @abstractmethod
    async def of_job(self, job: int) -> list[Event]: ...


class Log(LogRead):
    """The event log and the counters beside it."""

    __slots__ = ()

    async def jump(self, event: Event) -> None:
        """Writes an event under its own number; later events get higher ones."""
        await self._session.execute("insert_event_at", *event)

    @abstractmethod
    async def append(self, events: Sequence[Event]) -> None:
        """Numbers and writes these events, in order. This must be the last statement of a
        transaction.
        """

    @abstractmethod
    async def bump(self, deltas: Mapping[str, int]) -> None:
        """Adds to the named counters."""

    async def fold(self) -> None:
        """Adds up the changes of counters that the store keeps, where it keeps them apart."""
