"""Rows of `templates`, `schedules`, `schedule_runs` and `reactions`."""

from collections.abc import Sequence

from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.store.sql.session import Role

_NEWEST = 2**62


class Templates(Role):
    """`TemplatesWrite`."""

    __slots__ = ()

    async def insert(self, row: TemplateRow) -> bool:
        return bool(await self._session.fetch("insert_template", *row))

    async def newest(self, namespace: str, name: str) -> TemplateRow | None:
        return await self._session.row(TemplateRow, "newest_template", namespace, name)

    async def version(self, namespace: str, name: str, version: int) -> TemplateRow | None:
        return await self._session.row(TemplateRow, "template_version", namespace, name, version)

    async def all(self, namespace: str | None) -> list[TemplateRow]:
        return await self._session.rows(TemplateRow, "all_newest_templates", namespace)

    async def remove(self, namespace: str, name: str, at: int) -> bool:
        return bool(await self._session.fetch("remove_template", namespace, name, at))


class Schedules(Role):
    """`SchedulesWrite`."""

    __slots__ = ()

    async def insert(self, row: ScheduleRow) -> int:
        return await self._session.insert("insert_schedule", row[1:])

    async def lock(self, schedule: int) -> ScheduleRow | None:
        return await self._session.row(ScheduleRow, "lock_schedule", schedule)

    async def lock_name(self, namespace: str, name: str) -> ScheduleRow | None:
        return await self._session.row(ScheduleRow, "lock_schedule_name", namespace, name)

    async def named(self, namespace: str, name: str) -> ScheduleRow | None:
        return await self._session.row(ScheduleRow, "read_schedule_name", namespace, name)

    async def update(self, row: ScheduleRow) -> None:
        await self._session.execute("update_schedule", row.id, *row[3:])

    async def remove(self, schedule: int) -> None:
        await self._session.execute("remove_schedule", schedule)
        await self._session.execute("remove_runs_of_schedule", schedule)

    async def all(self, namespace: str | None) -> list[ScheduleRow]:
        if namespace is None:
            return await self._session.rows(ScheduleRow, "all_schedules_by_name")
        return await self._session.rows(ScheduleRow, "schedules_of_namespace", namespace)

    async def due(self, now: int, count: int) -> list[int]:
        return [row[0] for row in await self._session.fetch("due_schedules", now, count)]

    async def next_due(self) -> int | None:
        found: int | None = await self._session.fetch_value("next_due_schedule")
        return found

    async def add_runs(self, rows: Sequence[RunRow]) -> list[RunRow]:
        numbers = [await self._session.insert("insert_run", row[1:]) for row in rows]
        pairs = zip(rows, numbers, strict=True)
        return [row._replace(id=number) for row, number in pairs if number]

    async def update_runs(self, rows: Sequence[RunRow]) -> None:
        for row in rows:
            changed = (row.state, row.workflow, row.changed_at, row.reason)
            await self._session.execute("update_run", row.id, *changed)

    async def waiting(self, after: int, count: int) -> list[int]:
        return [row[0] for row in await self._session.fetch("waiting_schedules", after, count)]

    async def open_runs(self, schedule: int, count: int) -> list[RunRow]:
        return await self._session.rows(RunRow, "open_runs", schedule, count)

    async def runs(self, schedule: int, below: int, count: int) -> list[RunRow]:
        wanted = (schedule, below or _NEWEST, count)
        return await self._session.rows(RunRow, "runs_of_schedule", *wanted)

    async def trim_runs(self, before: int, count: int) -> int:
        return await self._session.execute("trim_runs", before, count)


class Reactions(Role):
    """`ReactionsWrite`."""

    __slots__ = ()

    async def add(self, rows: Sequence[ReactionRow]) -> None:
        for row in rows:
            await self._session.insert("insert_reaction", row[1:])

    async def due(self, now: int, webhooks: bool, count: int) -> list[ReactionRow]:
        return await self._session.rows(ReactionRow, "due_reactions", now, webhooks, count)

    async def ended(self, since: int, count: int) -> list[ReactionRow]:
        return await self._session.rows(ReactionRow, "ended_reactions", since, count)

    async def lock(self, reaction: int) -> ReactionRow | None:
        return await self._session.row(ReactionRow, "lock_reaction", reaction)

    async def read(self, reaction: int) -> ReactionRow | None:
        return await self._session.row(ReactionRow, "read_reaction", reaction)

    async def update(self, row: ReactionRow) -> None:
        changed = (row.state, row.tries, row.next_at, row.finished_at, row.result, row.message)
        await self._session.execute("update_reaction", row.id, *changed)

    async def of_workflow(self, workflow: int) -> list[ReactionRow]:
        return await self._session.rows(ReactionRow, "reactions_of_workflow", workflow)

    async def trim(self, before: int, count: int) -> int:
        return await self._session.execute("trim_reactions", before, count)
