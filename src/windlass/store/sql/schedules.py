"""Rows of `templates`, `schedules`, `schedule_runs` and `reactions`.

Where a store has locks, a schedule is locked before everything else, and a reaction too:
nobody who holds another row asks for one of them.
"""

from collections.abc import Sequence

from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.store.sql.session import Role, query

_NEWEST = 2**62


class Templates(Role):
    """Reads and writes rows of `templates`: one for each version, which never changes."""

    __slots__ = ()

    newest = query("newest_template", str, str).row(TemplateRow)
    """Returns the newest version of a namespace's template, whether it was removed or not."""

    version = query("template_version", str, str, int).row(TemplateRow)
    """Returns a template by namespace, name and version."""

    async def all(self, namespace: str | None) -> list[TemplateRow]:
        """Returns the newest version of each that was not removed, of one namespace or of all."""
        return await self._session.rows(TemplateRow, "all_newest_templates", namespace)

    async def insert(self, row: TemplateRow) -> bool:
        """Adds a version; returns False if another transaction has just added one with this
        number.
        """
        return bool(await self._session.fetch("insert_template", *row))

    remove = query("remove_template", str, str, int).found()
    """Marks every version of a namespace's template as removed at a time.

    Returns False if all were removed already.
    """


class Schedules(Role):
    """Reads and writes rows of `schedules` and `schedule_runs`."""

    __slots__ = ()

    named = query("read_schedule_name", str, str).row(ScheduleRow)
    """Returns the schedule of a namespace with this name, not locked."""

    async def all(self, namespace: str | None) -> list[ScheduleRow]:
        """Returns the schedules of one namespace or of all, by namespace and name."""
        if namespace is None:
            return await self._session.rows(ScheduleRow, "all_schedules_by_name")
        return await self._session.rows(ScheduleRow, "schedules_of_namespace", namespace)

    due = query("due_schedules", int, int).column()
    """Returns schedules that are due by now and not paused, up to a number, not locked."""

    next_due = query("next_due_schedule").optional()
    """Returns the earliest `next_at` of the schedules that are not paused."""

    waiting = query("waiting_schedules", int, int).column()
    """Returns the next schedules above an id that have waiting runs, ascending, up to a number."""

    open_runs = query("open_runs", int, int).rows(RunRow)
    """Returns the waiting runs of a schedule, then the started ones, each ascending, up to a
    number.
    """

    async def runs(self, schedule: int, below: int, count: int) -> list[RunRow]:
        """Returns the newest runs with an id below `below` (0: all), descending."""
        wanted = (schedule, below or _NEWEST, count)
        return await self._session.rows(RunRow, "runs_of_schedule", *wanted)

    unstarted = query("unstarted_runs", int, int).rows(RunRow)
    """Returns runs that were skipped or could not start since a time, newest first, up to a
    number.
    """

    insert = query("insert_schedule").insert(ScheduleRow)
    """Inserts with a fresh id (the row's own `id` is ignored); 0 if the name is taken."""

    lock = query("lock_schedule", int).row(ScheduleRow)
    lock_name = query("lock_schedule_name", str, str).row(ScheduleRow)
    """Locks and reads the schedule of a namespace with this name."""

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

    trim_runs = query("trim_runs", int, int).count()
    """Removes runs that ended before a time, up to a number; returns how many."""


class Reactions(Role):
    """Reads and writes rows of `reactions`: what the end of a workflow triggers."""

    __slots__ = ()

    due = query("due_reactions", int, bool, int).rows(ReactionRow)
    """Returns reactions due by now, webhooks (True) or others, earliest first, not locked."""

    ended = query("ended_reactions", int, int).rows(ReactionRow)
    """Returns reactions that were done or given up since a time, newest first, up to a number."""

    read = query("read_reaction", int).row(ReactionRow)
    """Returns a reaction, not locked."""

    of_workflow = query("reactions_of_workflow", int).rows(ReactionRow)
    """Returns all of one workflow, ascending by id."""

    async def add(self, rows: Sequence[ReactionRow]) -> None:
        """Adds intents (their `id` is ignored) that are not there yet."""
        for row in rows:
            await self._session.insert("insert_reaction", row[1:])

    lock = query("lock_reaction", int).row(ReactionRow)

    async def update(self, row: ReactionRow) -> None:
        """Writes state, tries, next_at, finished_at, result and message."""
        changed = (row.state, row.tries, row.next_at, row.finished_at, row.result, row.message)
        await self._session.execute("update_reaction", row.id, *changed)

    trim = query("trim_reactions", int, int).count()
    """Removes reactions that ended before a time, up to a number; returns how many."""
