"""Rows of `templates`, `schedules`, `schedule_runs` and `reactions`."""

from collections.abc import Sequence
from typing import Any

import apsw

from windlass.domain.schedules import ReactionRow, RunRow, ScheduleRow, TemplateRow
from windlass.store.sqlite.rows import as_reaction, as_run, as_schedule, as_template
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES

_NEWEST = 2**62


class SqliteTemplates:
    """`TemplatesWrite` over one connection."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._execute = connection.execute

    async def insert(self, row: TemplateRow) -> bool:
        return bool(self._execute(QUERIES["insert_template"], row).fetchall())

    async def newest(self, namespace: str, name: str) -> TemplateRow | None:
        rows = self._execute(QUERIES["newest_template"], (namespace, name)).fetchall()
        return as_template(rows[0]) if rows else None

    async def version(self, namespace: str, name: str, version: int) -> TemplateRow | None:
        wanted = (namespace, name, version)
        rows = self._execute(QUERIES["template_version"], wanted).fetchall()
        return as_template(rows[0]) if rows else None

    async def all(self, namespace: str | None) -> list[TemplateRow]:
        return list(map(as_template, self._execute(QUERIES["all_newest_templates"], (namespace,))))

    async def remove(self, namespace: str, name: str, at: int) -> bool:
        return bool(self._execute(QUERIES["remove_template"], (namespace, name, at)).fetchall())


class SqliteSchedules:
    """`SchedulesWrite` over one connection."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._sequences = sequences

    async def insert(self, row: ScheduleRow) -> int:
        if await self.lock_name(row.namespace, row.name) is not None:
            return 0
        (schedule,) = self._sequences.take("schedule")
        self._execute(QUERIES["insert_schedule"], (schedule, *row[1:]))
        return schedule

    async def lock(self, schedule: int) -> ScheduleRow | None:
        rows = self._execute(QUERIES["schedule"], (schedule,)).fetchall()
        return as_schedule(rows[0]) if rows else None

    async def named(self, namespace: str, name: str) -> ScheduleRow | None:
        rows = self._execute(QUERIES["schedule_by_name"], (namespace, name)).fetchall()
        return as_schedule(rows[0]) if rows else None

    async def lock_name(self, namespace: str, name: str) -> ScheduleRow | None:
        """Transactions run one after another: there is nothing to lock."""
        return await self.named(namespace, name)

    async def update(self, row: ScheduleRow) -> None:
        self._execute(QUERIES["update_schedule"], (row.id, *row[3:]))

    async def remove(self, schedule: int) -> None:
        self._execute(QUERIES["remove_schedule"], (schedule,))
        self._execute(QUERIES["remove_runs_of_schedule"], (schedule,))

    async def all(self, namespace: str | None) -> list[ScheduleRow]:
        if namespace is None:
            return list(map(as_schedule, self._execute(QUERIES["all_schedules_by_name"])))
        rows = self._execute(QUERIES["schedules_of_namespace"], (namespace,))
        return list(map(as_schedule, rows))

    async def due(self, now: int, count: int) -> list[int]:
        return [row[0] for row in self._execute(QUERIES["due_schedules"], (now, count))]

    async def next_due(self) -> int | None:
        rows: list[Any] = self._execute(QUERIES["next_due_schedule"]).fetchall()
        return rows[0][0] if rows else None

    async def add_runs(self, rows: Sequence[RunRow]) -> list[RunRow]:
        added: list[RunRow] = []
        for row in rows:
            if self._execute(QUERIES["run_of_slot"], (row.schedule, row.slot)).fetchall():
                continue
            (number,) = self._sequences.take("run")
            added.append(row._replace(id=number))
            self._execute(QUERIES["insert_run"], added[-1])
        return added

    async def update_runs(self, rows: Sequence[RunRow]) -> None:
        for row in rows:
            changed = (row.id, row.state, row.workflow, row.changed_at, row.reason)
            self._execute(QUERIES["update_run"], changed)

    async def waiting(self, after: int, count: int) -> list[int]:
        return [row[0] for row in self._execute(QUERIES["waiting_schedules"], (after, count))]

    async def open_runs(self, schedule: int, count: int) -> list[RunRow]:
        return list(map(as_run, self._execute(QUERIES["open_runs"], (schedule, count))))

    async def runs(self, schedule: int, below: int, count: int) -> list[RunRow]:
        wanted = (schedule, below or _NEWEST, count)
        return list(map(as_run, self._execute(QUERIES["runs_of_schedule"], wanted)))

    async def trim_runs(self, before: int, count: int) -> int:
        self._execute(QUERIES["trim_runs"], (before, count))
        return self._connection.changes()


class SqliteReactions:
    """`ReactionsWrite` over one connection."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._sequences = sequences

    async def add(self, rows: Sequence[ReactionRow]) -> None:
        for row in rows:
            if self._execute(QUERIES["same_reaction"], row[1:5]).fetchall():
                continue
            (number,) = self._sequences.take("reaction")
            self._execute(QUERIES["insert_reaction"], (number, *row[1:]))

    async def due(self, now: int, webhooks: bool, count: int) -> list[ReactionRow]:
        rows = self._execute(QUERIES["due_reactions"], (now, int(webhooks), count))
        return list(map(as_reaction, rows))

    async def ended(self, since: int, count: int) -> list[ReactionRow]:
        return list(map(as_reaction, self._execute(QUERIES["ended_reactions"], (since, count))))

    async def read(self, reaction: int) -> ReactionRow | None:
        rows = self._execute(QUERIES["reaction"], (reaction,)).fetchall()
        return as_reaction(rows[0]) if rows else None

    async def lock(self, reaction: int) -> ReactionRow | None:
        """Transactions run one after another: there is nothing to lock."""
        return await self.read(reaction)

    async def update(self, row: ReactionRow) -> None:
        changed = (row.state, row.tries, row.next_at, row.finished_at, row.result, row.message)
        self._execute(QUERIES["update_reaction"], (row.id, *changed))

    async def of_workflow(self, workflow: int) -> list[ReactionRow]:
        return list(map(as_reaction, self._execute(QUERIES["reactions_of_workflow"], (workflow,))))

    async def trim(self, before: int, count: int) -> int:
        self._execute(QUERIES["trim_reactions"], (before, count))
        return self._connection.changes()
