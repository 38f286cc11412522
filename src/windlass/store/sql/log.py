"""The event log and the counters beside it."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from windlass.domain.lifecycle.states import NEW_CODE, State
from windlass.domain.rows.events import Event, EventKind
from windlass.store.sql.session import Role, query

# States of a job without a lease. Its transition there is among the unusual events, or
# is its first event.
UNLEASED: Final = frozenset(
    state.code for state in (State.BLOCKED, State.QUEUED, State.RETRYING, State.SUSPENDED)
)


def standing_states(state: int | None) -> frozenset[int]:
    """Returns the states that a job may be in whose outcome or lease has this state, if any."""
    return UNLEASED if state is None else frozenset({state})


def is_whole(events: Iterable[Event], standing: frozenset[int], trimmed: bool = False) -> bool:
    """Returns whether the transitions lead from a new job to one of the states in `standing`.

    `trimmed`: the first ones, or all of them, may be missing.
    """
    moves = [event for event in events if event.kind == EventKind.JOB]
    if not moves:
        return trimmed
    if (moves[0].source != NEW_CODE and not trimmed) or moves[-1].to not in standing:
        return False
    return all(before.to == after.source for before, after in pairwise(moves))


class Log(Role, ABC):
    """The event log and the counters beside it."""

    __slots__ = ()

    read = query("read_events", int, int).rows(Event)
    """Returns the events after a number, ascending, up to a number of them."""

    newest = query("newest_event_seq").number()
    """Returns the number of the newest event, 0 before the first."""

    async def times(self, numbers: Sequence[int]) -> dict[int, int]:
        """Returns the times of these events and of the oldest one; missing events are left out."""
        return dict(await self._session.fetch("event_times", self._session.integers(numbers)))

    counters = query("counters").pairs(str, int)
    """Returns every counter, added up."""

    @abstractmethod
    async def of_job(self, job: int, /) -> list[Event]: ...

    jump = query("insert_event_at").record(Event)
    """Writes an event under its own number; later events get higher ones."""

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
