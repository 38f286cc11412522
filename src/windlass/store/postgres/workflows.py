"""Rows of `workflows` and `cascades`: what spans several jobs."""

from collections.abc import Mapping, Sequence

from windlass.domain.records import Cascade, WorkflowRow
from windlass.domain.states import STATE_BY_CODE
from windlass.store.postgres.columns import ascending, integers
from windlass.store.postgres.session import Rows, Session

WIDTH = len(STATE_BY_CODE)


class PostgresWorkflows:
    """`WorkflowsTx` over one transaction."""

    __slots__ = ("_session",)

    def __init__(self, session: Session) -> None:
        self._session = session

    async def allocate(self, count: int) -> Sequence[int]:
        numbers: list[int] = await self._session.fetch_value("workflow_numbers", count)
        return numbers

    async def insert(self, rows: Sequence[WorkflowRow]) -> None:
        if rows:
            ids, namespaces, names, *columns, counts = zip(*rows, strict=True)
            args = [*map(integers, columns), list(map(integers, counts))]
            await self._session.execute("insert_workflows", integers(ids), namespaces, names, *args)

    async def lock(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        if not ids:
            return {}
        rows = workflows_of(await self._session.fetch("lock_workflows", ascending(ids)))
        return {row.id: row for row in rows}

    async def bump(self, deltas: Mapping[int, Mapping[int, int]]) -> list[WorkflowRow]:
        if not deltas:
            return []
        ids = sorted(deltas)
        flat = [deltas[workflow].get(state, 0) for workflow in ids for state in range(WIDTH)]
        rows = await self._session.fetch("bump_workflows", integers(ids), integers(flat), WIDTH)
        return workflows_of(rows)

    async def set_state(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        if rows:
            columns = map(integers, zip(*sorted(rows), strict=True))
            await self._session.execute("set_workflow_states", *columns)

    async def add_cascades(self, rows: Sequence[Cascade]) -> None:
        if rows:
            _, jobs, kinds, cursors, reasons = zip(*rows, strict=True)
            columns = map(integers, (jobs, kinds, cursors))
            await self._session.execute("add_cascades", *columns, reasons)

    async def pull_cascade(self) -> Cascade | None:
        rows = await self._session.fetch("pull_cascade")
        return Cascade._make(rows[0]) if rows else None

    async def advance_cascade(self, cascade: int, cursor: int | None) -> None:
        if cursor is None:
            await self._session.execute("remove_cascade", cascade)
        else:
            await self._session.execute("advance_cascade", cascade, cursor)

    async def cascades_of(self, jobs: Sequence[int]) -> list[Cascade]:
        rows = await self._session.fetch("cascades_of", ascending(jobs))
        return list(map(Cascade._make, rows))


def workflows_of(rows: Rows) -> list[WorkflowRow]:
    return [WorkflowRow._make((*row[:8], tuple(row[8]))) for row in rows]
