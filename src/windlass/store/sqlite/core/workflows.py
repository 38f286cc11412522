"""Rows of `workflows` and `cascades`: what spans several jobs."""

from collections.abc import Mapping, Sequence

import apsw

from windlass.domain.lifecycle.workflow_state import COUNTS, FORGIVEN
from windlass.domain.rows.records import Cascade, JobFacts, WorkflowAbout, WorkflowRow
from windlass.store.sqlite.bulk import BulkInsert
from windlass.store.sqlite.rows import (
    Row,
    as_about,
    as_cascade,
    as_facts,
    as_workflow,
    counts_text,
    integers,
)
from windlass.store.sqlite.sequences import Sequences
from windlass.store.sqlite.statements import QUERIES

_INSERT = BulkInsert(QUERIES["insert_workflows"])
_INTENTS = BulkInsert(QUERIES["insert_cascades"])


class SqliteWorkflows:
    """`WorkflowsWrite` over one connection. Unknown workflows are passed over."""

    def __init__(self, connection: apsw.Connection, sequences: Sequences) -> None:
        self._connection = connection
        self._execute = connection.execute
        self._executemany = connection.executemany
        self._sequences = sequences

    async def allocate(self, count: int) -> Sequence[int]:
        return self._sequences.take("workflow", count)

    async def insert(self, rows: Sequence[WorkflowRow]) -> None:
        _INSERT.run(self._connection, [(*row[:-1], counts_text(row.counts)) for row in rows])

    async def read(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        if not ids:
            return {}
        rows = self._execute(QUERIES["workflows"], (integers(sorted(ids)),))
        return {row[0]: as_workflow(row) for row in rows}

    async def lock(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        """Transactions run one after another: there is nothing to lock."""
        return await self.read(ids)

    async def bump(self, deltas: Mapping[int, Mapping[int, int]]) -> list[WorkflowRow]:
        known = await self.lock(list(deltas))
        changed = [_bumped(row, deltas[row.id]) for row in known.values()]
        texts = [(row.id, counts_text(row.counts)) for row in changed if deltas[row.id]]
        self._executemany(QUERIES["set_counts"], texts)
        return changed

    async def set_state(self, rows: Sequence[tuple[int, int, int, int | None]]) -> None:
        self._executemany(QUERIES["set_workflow_state"], rows)

    async def add_cascades(self, rows: Sequence[Cascade]) -> None:
        ids = self._sequences.take("cascade", len(rows))
        numbered = [(cascade, *row[1:]) for cascade, row in zip(ids, rows, strict=True)]
        _INTENTS.run(self._connection, numbered)

    async def pull_cascade(self) -> Cascade | None:
        rows = self._execute(QUERIES["oldest_cascade"]).fetchall()
        return as_cascade(rows[0]) if rows else None

    async def advance_cascade(self, cascade: int, cursor: int | None) -> None:
        if cursor is None:
            self._execute(QUERIES["remove_cascade"], (cascade,))
        else:
            self._execute(QUERIES["advance_cascade"], (cascade, cursor))

    async def cascades_of(
        self, jobs: Sequence[int] = (), workflows: Sequence[int] = ()
    ) -> list[Cascade]:
        found: list[Cascade] = []
        for name, ids in ("cascades_of_jobs", jobs), ("cascades_of_workflows", workflows):
            if ids:
                wanted = integers(sorted(set(ids)))
                found += map(as_cascade, self._execute(QUERIES[name], (wanted,)))
        return sorted(found)

    async def describe(self, row: WorkflowAbout) -> None:
        self._execute(QUERIES["describe_workflow"], row)

    async def about(self, ids: Sequence[int]) -> dict[int, WorkflowAbout]:
        if not ids:
            return {}
        rows = self._execute(QUERIES["workflow_about"], (integers(sorted(ids)),))
        return {row[0]: as_about(row) for row in rows}

    async def set_reason(self, workflow: int, reason: str) -> None:
        self._execute(QUERIES["set_workflow_reason"], (workflow, reason))

    async def claim_key(self, namespace: str, key: str, workflow: int, instead_of: int = 0) -> int:
        self._execute(QUERIES["claim_workflow_key"], (namespace, key, workflow, instead_of))
        rows: list[Row] = self._execute(QUERIES["workflow_key"], (namespace, key)).fetchall()
        return int(rows[0][0])

    async def jobs_of(self, workflow: int, after: int, count: int) -> list[JobFacts]:
        rows = self._execute(QUERIES["jobs_of_workflow"], (workflow, after, count))
        return list(map(as_facts, rows))

    async def last_job(self, workflow: int) -> int:
        rows: list[Row] = self._execute(QUERIES["last_job_of_workflow"], (workflow,)).fetchall()
        return int(rows[0][0])

    async def open_jobs(self, workflow: int, after: int, count: int) -> list[int]:
        rows = self._execute(QUERIES["open_jobs_of_workflow"], (workflow, after, count))
        return [job for (job,) in rows]

    async def outside(self, workflow: int, jobs: Sequence[int]) -> list[int]:
        if not jobs:
            return []
        wanted = integers(sorted(set(jobs)))
        return [job for (job,) in self._execute(QUERIES["jobs_outside"], (workflow, wanted))]

    async def unfinished(self, after: int, count: int) -> list[WorkflowRow]:
        return list(
            map(as_workflow, self._execute(QUERIES["unfinished_workflows"], (after, count)))
        )

    async def newest(self, below: int, count: int) -> list[WorkflowRow]:
        return list(map(as_workflow, self._execute(QUERIES["newest_workflows"], (below, count))))

    async def recount(self, workflow: int) -> tuple[int, ...]:
        counts = [0] * COUNTS
        for state, forgiven, jobs in self._execute(QUERIES["recount_workflow"], (workflow,)):
            counts[state] += jobs
            counts[FORGIVEN] += jobs if forgiven else 0
        return tuple(counts)


def _bumped(row: WorkflowRow, deltas: Mapping[int, int]) -> WorkflowRow:
    counts = list(row.counts)
    for state, delta in deltas.items():
        counts[state] += delta
    return row._replace(counts=tuple(counts))
