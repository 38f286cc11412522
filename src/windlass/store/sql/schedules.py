"""Rows of `templates`, `schedules`, `schedule_runs` and `reactions`.

Where a store has locks, a schedule is locked before everything else, and a reaction too:
nobody who holds another row asks for one of them.
"""

from collections.abc import Sequence

from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.store.sql.session import Role

_NEWEST = 2**62


class TemplatesRead(Role):
    """Reads rows of `templates`: one for each version, which never changes."""

    __slots__ = ()

    async def newest(self, namespace: str, name: str) -> TemplateRow | None:
        """Returns the newest version, whether it was removed or not."""
        return await self._session.row(TemplateRow, "newest_template", namespace, name)

    async def version(self, namespace: str, name: str, version: int) -> TemplateRow | None:
        return await self._session.row(TemplateRow, "template_version", namespace, name, version)

    async def all(self, namespace: str | None) -> list[TemplateRow]:
        """Returns the newest version of each that was not removed, of one namespace or of all."""
        return await self._session.rows(TemplateRow, "all_newest_templates", namespace)


class Templates(TemplatesRead):
    """Reads and writes rows of `templates`: one for each version, which never changes."""

    __slots__ = ()

    async def insert(self, row: TemplateRow) -> bool:
        """Adds a version; returns False if another transaction has just added one with this
        number.
        """
        return bool(await self._session.fetch("insert_template", *row))

    async def remove(self, namespace: str, name: str, at: int) -> bool:
        """Marks every version as removed; returns False if all were removed already."""
        return bool(await self._session.fetch("remove_template", namespace, name, at))


class SchedulesRead(Role):
    """Reads rows of `schedules` and `schedule_runs`."""

    __slots__ = ()

    async def named(self, namespace: str, name: str) -> ScheduleRow | None:
        """Returns the schedule of this name, not locked."""
        return await self._session.row(ScheduleRow, "read_schedule_name", namespace, name)

    async def all(self, namespace: str | None) -> list[ScheduleRow]:
        """Returns the schedules of one namespace or of all, by namespace and name."""
        if namespace is None:
            return await self._session.rows(ScheduleRow, "all_schedules_by_name")
        return await self._session.rows(ScheduleRow, "schedules_of_namespace", namespace)

    async def due(self, now: int, count: int) -> list[int]:
        """Returns schedules that are not paused and are due, not locked."""
        return [row[0] for row in await self._session.fetch("due_schedules", now, count)]

    async def next_due(self) -> int | None:
        """Returns the earliest `next_at` of the schedules that are not paused."""
        found: int | None = await self._session.fetch_value("next_due_schedule")
        return found

    async def waiting(self, after: int, count: int) -> list[int]:
        """Returns the next schedules after id `after` that have waiting runs, ascending."""
        return [row[0] for row in await self._session.fetch("waiting_schedules", after, count)]

    async def open_runs(self, schedule: int, count: int) -> list[RunRow]:
        """Returns the waiting runs of a schedule, then the started ones, each ascending."""
        return await self._session.rows(RunRow, "open_runs", schedule, count)

    async def runs(self, schedule: int, below: int, count: int) -> list[RunRow]:
        """Returns the newest runs with an id below `below` (0: all), descending."""
        wanted = (schedule, below or _NEWEST, count)
        return await self._session.rows(RunRow, "runs_of_schedule", *wanted)

    async def unstarted(self, since: int, count: int) -> list[RunRow]:
        """Returns runs that were skipped or could not start since a time, newest first."""
        return await self._session.rows(RunRow, "unstarted_runs", since, count)


class Schedules(SchedulesRead):
    """Reads and writes rows of `schedules` and `schedule_runs`."""

    __slots__ = ()

    async def insert(self, row: ScheduleRow) -> int:
        """Inserts with a fresh id (the row's own `id` is ignored); 0 if the name is taken."""
        return await self._session.insert("insert_schedule", row[1:])

    async def lock(self, schedule: int) -> ScheduleRow | None:
        return await self._session.row(ScheduleRow, "lock_schedule", schedule)

    async def lock_name(self, namespace: str, name: str) -> ScheduleRow | None:
        return await self._session.row(ScheduleRow, "lock_schedule_name", namespace, name)

    async def update(self, row: ScheduleRow) -> None:
        """Writes every column but id, namespace and name."""
        await self._session.execute("update_schedule", row.id, *row[3:])

    async def remove(self, schedule: int) -> None:
        """Removes a schedule and its runs."""
        await self._session.execute("remove_schedule", schedule)
        await self._session.execute("remove_runs_of_schedule", schedule)

    async def add_runs(self, rows: Sequence[RunRow]) -> list[RunRow]:
        """Adds runs (their `id` is ignored) except for slots that have one; returns the new
        ones.
        """
        numbers = [await self._session.insert("insert_run", row[1:]) for row in rows]
        pairs = zip(rows, numbers, strict=True)
        return [row._replace(id=number) for row, number in pairs if number]

    async def update_runs(self, rows: Sequence[RunRow]) -> None:
        """Writes state, workflow, changed_at and reason of these runs."""
        for row in rows:
            changed = (row.state, row.workflow, row.changed_at, row.reason)
            await self._session.execute("update_run", row.id, *changed)

    async def trim_runs(self, before: int, count: int) -> int:
        """Removes up to `count` runs that ended before this time; returns how many."""
        return await self._session.execute("trim_runs", before, count)


class ReactionsRead(Role):
    """Reads rows of `reactions`."""

    __slots__ = ()

    async def due(self, now: int, webhooks: bool, count: int) -> list[ReactionRow]:
        """Returns due webhooks, or other due reactions, earliest first, not locked."""
        return await self._session.rows(ReactionRow, "due_reactions", now, webhooks, count)

    async def ended(self, since: int, count: int) -> list[ReactionRow]:
        """Returns reactions that were done or given up since a time, newest first."""
        return await self._session.rows(ReactionRow, "ended_reactions", since, count)

    async def read(self, reaction: int) -> ReactionRow | None:
        """Returns a reaction, not locked."""
        return await self._session.row(ReactionRow, "read_reaction", reaction)

    async def of_workflow(self, workflow: int) -> list[ReactionRow]:
        """Returns all of one workflow, ascending by id."""
        return await self._session.rows(ReactionRow, "reactions_of_workflow", workflow)


class Reactions(ReactionsRead):
    """Reads and writes rows of `reactions`: what the end of a workflow triggers."""

    __slots__ = ()

    async def add(self, rows: Sequence[ReactionRow]) -> None:
        """Adds intents (their `id` is ignored) that are not there yet."""
        for row in rows:
            await self._session.insert("insert_reaction", row[1:])

    async def lock(self, reaction: int) -> ReactionRow | None:
        return await self._session.row(ReactionRow, "lock_reaction", reaction)

    async def update(self, row: ReactionRow) -> None:
        """Writes state, tries, next_at, finished_at, result and message."""
        changed = (row.state, row.tries, row.next_at, row.finished_at, row.result, row.message)
        await self._session.execute("update_reaction", row.id, *changed)

    async def trim(self, before: int, count: int) -> int:
        """Removes up to `count` reactions that ended before this time; returns how many."""
        return await self._session.execute("trim_reactions", before, count)
