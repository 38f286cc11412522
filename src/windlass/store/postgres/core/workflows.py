"""Rows of `workflows` and `cascades`: what spans several jobs."""

from collections.abc import Mapping, Sequence

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.lifecycle.workflow_state import COUNTS, FORGIVEN
from windlass.domain.rows.records import Cascade, JobFacts, WorkflowAbout, WorkflowRow
from windlass.store.postgres.columns import ascending, integers
from windlass.store.postgres.session import Rows, Session

WIDTH = len(STATE_BY_CODE)


class PostgresWorkflows:
    """`WorkflowsWrite` over one transaction."""

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
        return await self._rows("lock_workflows", ids)

    async def read(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        return await self._rows("read_workflows", ids)

    async def _rows(self, query: str, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        if not ids:
            return {}
        rows = workflows_of(await self._session.fetch(query, ascending(ids)))
        return {row.id: row for row in rows}

    async def bump(self, deltas: Mapping[int, Mapping[int, int]]) -> list[WorkflowRow]:
        if not deltas:
            return []
        ids = sorted(deltas)
        flat = [deltas[workflow].get(state, 0) for workflow in ids for state in range(WIDTH)]
        rows = await self._session.fetch("bump_workflows", integers(ids), integers(flat), WIDTH)
        return workflows_of(rows)

    async def set_state(self, rows: Sequence[tuple[int, int, int, int | None]]) -> None:
        if rows:
            columns = map(integers, zip(*sorted(rows), strict=True))
            await self._session.execute("set_workflow_states", *columns)

    async def add_cascades(self, rows: Sequence[Cascade]) -> None:
        if rows:
            _, jobs, workflows, kinds, cursors, reasons = zip(*rows, strict=True)
            columns = map(integers, (jobs, workflows, kinds, cursors))
            await self._session.execute("add_cascades", *columns, reasons)

    async def pull_cascade(self) -> Cascade | None:
        rows = await self._session.fetch("pull_cascade")
        return Cascade._make(rows[0]) if rows else None

    async def advance_cascade(self, cascade: int, cursor: int | None) -> None:
        if cursor is None:
            await self._session.execute("remove_cascade", cascade)
        else:
            await self._session.execute("advance_cascade", cascade, cursor)

    async def cascades_of(
        self, jobs: Sequence[int] = (), workflows: Sequence[int] = ()
    ) -> list[Cascade]:
        rows = await self._session.fetch("cascades_of", ascending(jobs), ascending(workflows))
        return list(map(Cascade._make, rows))

    async def describe(self, row: WorkflowAbout) -> None:
        await self._session.execute("describe_workflow", *row)

    async def about(self, ids: Sequence[int]) -> dict[int, WorkflowAbout]:
        if not ids:
            return {}
        rows = await self._session.fetch("workflow_about", ascending(ids))
        return {row[0]: WorkflowAbout._make(row) for row in rows}

    async def set_reason(self, workflow: int, reason: str) -> None:
        await self._session.execute("set_workflow_reason", workflow, reason)

    async def claim_key(self, namespace: str, key: str, workflow: int, instead_of: int = 0) -> int:
        await self._session.execute("claim_workflow_key", namespace, key, workflow, instead_of)
        return int(await self._session.fetch_value("workflow_key", namespace, key))

    async def jobs_of(self, workflow: int, after: int, count: int) -> list[JobFacts]:
        rows = await self._session.fetch("jobs_of_workflow", workflow, after, count)
        return list(map(JobFacts._make, rows))

    async def last_job(self, workflow: int) -> int:
        return int(await self._session.fetch_value("last_job_of_workflow", workflow))

    async def open_jobs(self, workflow: int, after: int, count: int) -> list[int]:
        rows = await self._session.fetch("open_jobs_of_workflow", workflow, after, count)
        return [row[0] for row in rows]

    async def outside(self, workflow: int, jobs: Sequence[int]) -> list[int]:
        if not jobs:
            return []
        rows = await self._session.fetch("jobs_outside", workflow, ascending(jobs))
        return [row[0] for row in rows]

    async def unfinished(self, after: int, count: int) -> list[WorkflowRow]:
        return workflows_of(await self._session.fetch("unfinished_workflows", after, count))

    async def newest(self, below: int, count: int) -> list[WorkflowRow]:
        return workflows_of(await self._session.fetch("newest_workflows", below, count))

    async def recount(self, workflow: int) -> tuple[int, ...]:
        counts = [0] * COUNTS
        for state, forgiven, jobs in await self._session.fetch("recount_workflow", workflow):
            counts[state] += jobs
            counts[FORGIVEN] += jobs if forgiven else 0
        return tuple(counts)


def workflows_of(rows: Rows) -> list[WorkflowRow]:
    return [WorkflowRow._make((*row[:8], tuple(row[8]))) for row in rows]
