"""The roles of a transaction that keep templates, schedules and reactions.

Where a store has locks, a schedule is locked before everything else, and a reaction too:
nobody who holds another row asks for one of them.
"""

from collections.abc import Sequence
from typing import Protocol

from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow


class TemplatesRead(Protocol):
    """Reads rows of `templates`: one for each version, which never changes."""

    async def newest(self, namespace: str, name: str) -> TemplateRow | None:
        """Returns the newest version, whether it was removed or not."""
        ...

    async def version(self, namespace: str, name: str, version: int) -> TemplateRow | None: ...

    async def all(self, namespace: str | None) -> list[TemplateRow]:
        """Returns the newest version of each that was not removed, of one namespace or of all."""
        ...


class TemplatesWrite(TemplatesRead, Protocol):
    """Reads and writes rows of `templates`: one for each version, which never changes."""

    async def insert(self, row: TemplateRow) -> bool:
        """Adds a version; False if another transaction has just added one of this number."""
        ...

    async def remove(self, namespace: str, name: str, at: int) -> bool:
        """Marks every version as removed; returns whether there was one that was not."""
        ...


class SchedulesRead(Protocol):
    """Reads rows of `schedules` and `schedule_runs`."""

    async def all(self, namespace: str | None) -> list[ScheduleRow]:
        """Returns those of one namespace or of all, by namespace and name."""
        ...

    async def due(self, now: int, count: int) -> list[int]:
        """Returns schedules that are not paused and whose `next_at` has come, not locked."""
        ...

    async def next_due(self) -> int | None:
        """Returns the earliest `next_at` of the schedules that are not paused."""
        ...

    async def waiting(self, after: int, count: int) -> list[int]:
        """Returns the next schedules behind id `after` that have waiting runs, ascending."""
        ...

    async def open_runs(self, schedule: int, count: int) -> list[RunRow]:
        """Returns the waiting runs of a schedule, then the started ones, each ascending."""
        ...

    async def runs(self, schedule: int, below: int, count: int) -> list[RunRow]:
        """Returns the newest runs with an id below `below` (0: all), descending."""
        ...

    async def named(self, namespace: str, name: str) -> ScheduleRow | None:
        """Returns the schedule of this name, not locked."""
        ...


class SchedulesWrite(SchedulesRead, Protocol):
    """Reads and writes rows of `schedules` and `schedule_runs`."""

    async def insert(self, row: ScheduleRow) -> int:
        """Inserts with a fresh id (the row's own `id` is ignored); 0 if the name is taken."""
        ...

    async def lock(self, schedule: int) -> ScheduleRow | None: ...

    async def lock_name(self, namespace: str, name: str) -> ScheduleRow | None: ...

    async def update(self, row: ScheduleRow) -> None:
        """Writes every column but id, namespace and name."""
        ...

    async def remove(self, schedule: int) -> None:
        """Removes a schedule and what is known of its runs."""
        ...

    async def add_runs(self, rows: Sequence[RunRow]) -> list[RunRow]:
        """Adds runs (their `id` is ignored), but none for a slot that has one; the new ones."""
        ...

    async def update_runs(self, rows: Sequence[RunRow]) -> None:
        """Writes state, workflow, changed_at and reason of these runs."""
        ...

    async def trim_runs(self, before: int, count: int) -> int:
        """Removes at most so many runs that ended before this time; returns how many."""
        ...


class ReactionsRead(Protocol):
    """Reads rows of `reactions`."""

    async def due(self, now: int, webhooks: bool, count: int) -> list[ReactionRow]:
        """Returns webhooks or others whose `next_at` has come, earliest first, without locking."""
        ...

    async def ended(self, since: int, count: int) -> list[ReactionRow]:
        """Returns reactions that were done or given up since a time, newest first."""
        ...

    async def of_workflow(self, workflow: int) -> list[ReactionRow]:
        """Returns all of one workflow, ascending by id."""
        ...

    async def read(self, reaction: int) -> ReactionRow | None:
        """Returns a reaction, not locked."""
        ...


class ReactionsWrite(ReactionsRead, Protocol):
    """Reads and writes rows of `reactions`: what the end of a workflow sets off."""

    async def add(self, rows: Sequence[ReactionRow]) -> None:
        """Adds intents (their `id` is ignored), but none that is there already."""
        ...

    async def lock(self, reaction: int) -> ReactionRow | None: ...

    async def update(self, row: ReactionRow) -> None:
        """Writes state, tries, next_at, finished_at, result and message."""
        ...

    async def trim(self, before: int, count: int) -> int:
        """Removes at most so many that were done or given up before this time; returns how many."""
        ...
