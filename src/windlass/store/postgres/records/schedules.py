"""Rows of `templates`, `schedules`, `schedule_runs` and `reactions`."""

from collections.abc import Sequence

from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.store.postgres.session import Session

_NEWEST = 2**62


class PostgresTemplates:
    """`TemplatesWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def insert(self, row: TemplateRow) -> bool:
        return bool(await self._session.fetch("insert_template", *row))

    async def newest(self, namespace: str, name: str) -> TemplateRow | None:
        rows = await self._session.fetch("newest_template", namespace, name)
        return TemplateRow._make(rows[0]) if rows else None

    async def version(self, namespace: str, name: str, version: int) -> TemplateRow | None:
        rows = await self._session.fetch("template_version", namespace, name, version)
        return TemplateRow._make(rows[0]) if rows else None

    async def all(self, namespace: str | None) -> list[TemplateRow]:
        rows = await self._session.fetch("newest_templates", namespace)
        return list(map(TemplateRow._make, rows))

    async def remove(self, namespace: str, name: str, at: int) -> bool:
        return bool(await self._session.fetch("remove_template", namespace, name, at))


class PostgresSchedules:
    """`SchedulesWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def insert(self, row: ScheduleRow) -> int:
        rows = await self._session.fetch("insert_schedule", *row[1:])
        return int(rows[0][0]) if rows else 0

    async def lock(self, schedule: int) -> ScheduleRow | None:
        rows = await self._session.fetch("lock_schedule", schedule)
        return ScheduleRow._make(rows[0]) if rows else None

    async def lock_name(self, namespace: str, name: str) -> ScheduleRow | None:
        rows = await self._session.fetch("lock_schedule_name", namespace, name)
        return ScheduleRow._make(rows[0]) if rows else None

    async def named(self, namespace: str, name: str) -> ScheduleRow | None:
        rows = await self._session.fetch("read_schedule_name", namespace, name)
        return ScheduleRow._make(rows[0]) if rows else None

    async def update(self, row: ScheduleRow) -> None:
        await self._session.execute("update_schedule", row.id, *row[3:])

    async def remove(self, schedule: int) -> None:
        await self._session.execute("remove_schedule", schedule)

    async def all(self, namespace: str | None) -> list[ScheduleRow]:
        return list(map(ScheduleRow._make, await self._session.fetch("schedules", namespace)))

    async def due(self, now: int, count: int) -> list[int]:
        return [row[0] for row in await self._session.fetch("due_schedules", now, count)]

    async def next_due(self) -> int | None:
        rows = await self._session.fetch("next_due_schedule")
        return rows[0][0] if rows else None

    async def add_runs(self, rows: Sequence[RunRow]) -> list[RunRow]:
        added: list[RunRow] = []
        for row in rows:
            found = await self._session.fetch("insert_run", *row[1:])
            added += [row._replace(id=new[0]) for new in found]
        return added

    async def update_runs(self, rows: Sequence[RunRow]) -> None:
        for row in rows:
            changed = (row.state, row.workflow, row.changed_at, row.reason)
            await self._session.execute("update_run", row.id, *changed)

    async def waiting(self, after: int, count: int) -> list[int]:
        return [row[0] for row in await self._session.fetch("waiting_schedules", after, count)]

    async def open_runs(self, schedule: int, count: int) -> list[RunRow]:
        return list(map(RunRow._make, await self._session.fetch("open_runs", schedule, count)))

    async def runs(self, schedule: int, below: int, count: int) -> list[RunRow]:
        wanted = (schedule, below or _NEWEST, count)
        return list(map(RunRow._make, await self._session.fetch("runs_of_schedule", *wanted)))

    async def trim_runs(self, before: int, count: int) -> int:
        return _count(await self._session.execute("trim_runs", before, count))


class PostgresReactions:
    """`ReactionsWrite` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, rows: Sequence[ReactionRow]) -> None:
        for row in rows:
            await self._session.execute("insert_reaction", *row[1:])

    async def due(self, now: int, webhooks: bool, count: int) -> list[ReactionRow]:
        rows = await self._session.fetch("due_reactions", now, webhooks, count)
        return list(map(ReactionRow._make, rows))

    async def ended(self, since: int, count: int) -> list[ReactionRow]:
        rows = await self._session.fetch("ended_reactions", since, count)
        return list(map(ReactionRow._make, rows))

    async def lock(self, reaction: int) -> ReactionRow | None:
        rows = await self._session.fetch("lock_reaction", reaction)
        return ReactionRow._make(rows[0]) if rows else None

    async def read(self, reaction: int) -> ReactionRow | None:
        rows = await self._session.fetch("read_reaction", reaction)
        return ReactionRow._make(rows[0]) if rows else None

    async def update(self, row: ReactionRow) -> None:
        changed = (row.state, row.tries, row.next_at, row.finished_at, row.result, row.message)
        await self._session.execute("update_reaction", row.id, *changed)

    async def of_workflow(self, workflow: int) -> list[ReactionRow]:
        rows = await self._session.fetch("reactions_of_workflow", workflow)
        return list(map(ReactionRow._make, rows))

    async def trim(self, before: int, count: int) -> int:
        return _count(await self._session.execute("trim_reactions", before, count))


def _count(status: str) -> int:
    """Returns how many rows a statement removed, as its status tells."""
    return int(status.rpartition(" ")[2])
