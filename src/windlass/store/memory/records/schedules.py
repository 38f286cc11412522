"""Rows of `templates`, `schedules`, `schedule_runs` and `reactions`."""

from collections.abc import Iterator, Sequence

from windlass.domain.schedules import (
    ReactionKind,
    ReactionRow,
    ReactionState,
    RunRow,
    RunState,
    ScheduleRow,
    TemplateRow,
)
from windlass.store.memory.tables import Tables

_OPEN = (RunState.WAITING, RunState.STARTED)


class MemoryTemplates:
    """`TemplatesWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._templates = tables.templates

    async def insert(self, row: TemplateRow) -> bool:
        key = (row.namespace, row.name, row.version)
        if key in self._templates:
            return False
        self._templates.insert(key, row)
        return True

    async def newest(self, namespace: str, name: str) -> TemplateRow | None:
        return max(self._versions(namespace, name), default=None)

    async def version(self, namespace: str, name: str, version: int) -> TemplateRow | None:
        return self._templates.get((namespace, name, version))

    async def all(self, namespace: str | None) -> list[TemplateRow]:
        newest: dict[tuple[str, str], TemplateRow] = {}
        for row in sorted(self._templates):
            if row.removed_at is None and namespace in (None, row.namespace):
                newest[row.namespace, row.name] = row
        return list(newest.values())

    async def remove(self, namespace: str, name: str, at: int) -> bool:
        standing = [row for row in self._versions(namespace, name) if row.removed_at is None]
        for row in standing:
            key = (row.namespace, row.name, row.version)
            self._templates.put(key, row._replace(removed_at=at))
        return bool(standing)

    def _versions(self, namespace: str, name: str) -> Iterator[TemplateRow]:
        wanted = (namespace, name)
        return (row for row in list(self._templates) if (row.namespace, row.name) == wanted)


class MemorySchedules:
    """`SchedulesWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._schedules = tables.schedules
        self._runs = tables.schedule_runs

    async def insert(self, row: ScheduleRow) -> int:
        if await self.lock_name(row.namespace, row.name) is not None:
            return 0
        (schedule,) = self._tables.number("schedule")
        self._schedules.insert(schedule, row._replace(id=schedule))
        return schedule

    async def lock(self, schedule: int) -> ScheduleRow | None:
        return self._schedules.get(schedule)

    async def named(self, namespace: str, name: str) -> ScheduleRow | None:
        wanted = (namespace, name)
        return next((r for r in self._schedules if (r.namespace, r.name) == wanted), None)

    async def lock_name(self, namespace: str, name: str) -> ScheduleRow | None:
        """Transactions run one after another: there is nothing to lock."""
        return await self.named(namespace, name)

    async def update(self, row: ScheduleRow) -> None:
        old = self._schedules.get(row.id)
        if old is not None:
            kept = row._replace(namespace=old.namespace, name=old.name)
            self._schedules.put(row.id, kept)

    async def remove(self, schedule: int) -> None:
        self._schedules.pop(schedule)
        for run in self._runs.between((), None):
            if run.schedule == schedule:
                self._runs.pop(run.id)

    async def all(self, namespace: str | None) -> list[ScheduleRow]:
        rows = (row for row in self._schedules if namespace in (None, row.namespace))
        return sorted(rows, key=lambda row: (row.namespace, row.name))

    async def due(self, now: int, count: int) -> list[int]:
        return [number for at, number in self._active() if at <= now][:count]

    async def next_due(self) -> int | None:
        return next((at for at, _ in self._active()), None)

    def _active(self) -> list[tuple[int, int]]:
        return sorted(
            (r.next_at, r.id) for r in self._schedules if not r.paused and r.next_at is not None
        )

    async def add_runs(self, rows: Sequence[RunRow]) -> list[RunRow]:
        taken = {(run.schedule, run.slot) for run in self._runs if run.slot is not None}
        added: list[RunRow] = []
        for row in rows:
            if (row.schedule, row.slot) not in taken:
                (number,) = self._tables.number("run")
                added.append(row._replace(id=number))
                self._runs.insert(number, added[-1])
                taken |= {(row.schedule, row.slot)} if row.slot is not None else set()
        return added

    async def update_runs(self, rows: Sequence[RunRow]) -> None:
        for row in rows:
            old = self._runs.get(row.id)
            if old is not None:
                changed = old._replace(
                    state=row.state,
                    workflow=row.workflow,
                    changed_at=row.changed_at,
                    reason=row.reason,
                )
                self._runs.put(row.id, changed)

    async def waiting(self, after: int, count: int) -> list[int]:
        waits = {run.schedule for run in self._runs if run.state == RunState.WAITING}
        return sorted(schedule for schedule in waits if schedule > after)[:count]

    async def open_runs(self, schedule: int, count: int) -> list[RunRow]:
        mine = [r for r in self._runs if r.schedule == schedule and r.state in _OPEN]
        return sorted(mine, key=lambda r: (r.state, r.id))[:count]

    async def runs(self, schedule: int, below: int, count: int) -> list[RunRow]:
        runs = reversed(self._runs.between((), (below,) if below else None))
        return [run for run in runs if run.schedule == schedule][:count]

    async def trim_runs(self, before: int, count: int) -> int:
        old = [r for r in self._runs if r.state not in _OPEN and r.changed_at < before]
        for run in sorted(old, key=lambda r: (r.changed_at, r.id))[:count]:
            self._runs.pop(run.id)
        return min(len(old), count)


class MemoryReactions:
    """`ReactionsWrite` over the tables."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._reactions = tables.reactions

    async def add(self, rows: Sequence[ReactionRow]) -> None:
        taken = {row[1:5] for row in self._reactions}
        for row in rows:
            if row[1:5] not in taken:
                taken.add(row[1:5])
                (number,) = self._tables.number("reaction")
                self._reactions.insert(number, row._replace(id=number))

    async def due(self, now: int, webhooks: bool, count: int) -> list[ReactionRow]:
        wanted = (r for r in self._reactions if (r.kind == ReactionKind.WEBHOOK) == webhooks)
        pending = (r for r in wanted if r.state == ReactionState.PENDING)
        ripe = sorted((r for r in pending if r.next_at <= now), key=lambda r: (r.next_at, r.id))
        return ripe[:count]

    async def ended(self, since: int, count: int) -> list[ReactionRow]:
        rows = [
            (row.finished_at, row.id, row)
            for row in self._reactions
            if row.state > ReactionState.PENDING and row.finished_at is not None
        ]
        recent = sorted((row for row in rows if row[0] >= since), reverse=True)
        return [row for _, _, row in recent[:count]]

    async def read(self, reaction: int) -> ReactionRow | None:
        return self._reactions.get(reaction)

    async def lock(self, reaction: int) -> ReactionRow | None:
        """Transactions run one after another: there is nothing to lock."""
        return await self.read(reaction)

    async def update(self, row: ReactionRow) -> None:
        old = self._reactions.get(row.id)
        if old is not None:
            changed = old._replace(
                state=row.state,
                tries=row.tries,
                next_at=row.next_at,
                finished_at=row.finished_at,
                result=row.result,
                message=row.message,
            )
            self._reactions.put(row.id, changed)

    async def of_workflow(self, workflow: int) -> list[ReactionRow]:
        return [row for row in self._reactions.between((), None) if row.workflow == workflow]

    async def trim(self, before: int, count: int) -> int:
        done = [
            r
            for r in self._reactions
            if r.state != ReactionState.PENDING and (r.finished_at or before) < before
        ]
        for row in sorted(done, key=lambda r: (r.finished_at or 0, r.id))[:count]:
            self._reactions.pop(row.id)
        return min(len(done), count)
