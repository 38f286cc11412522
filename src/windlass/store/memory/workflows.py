"""Rows of `workflows` and `cascades`: what spans several jobs."""

from collections.abc import Mapping, Sequence

from windlass.domain.records import Cascade, WorkflowRow
from windlass.store.memory.tables import Tables


class MemoryWorkflows:
    """`WorkflowsTx` over the tables. Unknown workflows are passed over."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._workflows = tables.workflows
        self._cascades = tables.cascades

    async def allocate(self, count: int) -> Sequence[int]:
        return self._tables.number("workflow", count)

    async def insert(self, rows: Sequence[WorkflowRow]) -> None:
        for row in rows:
            self._workflows.insert(row.id, row)

    async def lock(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        return {row.id: row for row in self._known(ids)}

    async def bump(self, deltas: Mapping[int, Mapping[int, int]]) -> list[WorkflowRow]:
        changed = [_bumped(row, deltas[row.id]) for row in self._known(list(deltas))]
        for row in changed:
            self._workflows.put(row.id, row)
        return changed

    async def set_state(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        for workflow, state, run, finished_at in rows:
            row = self._workflows.get(workflow)
            if row is not None:
                row = row._replace(state=state, run=run, finished_at=finished_at)
                self._workflows.put(workflow, row)

    async def add_cascades(self, rows: Sequence[Cascade]) -> None:
        for row, cascade in zip(rows, self._tables.number("cascade", len(rows)), strict=True):
            self._cascades.insert(cascade, row._replace(id=cascade))

    async def pull_cascade(self) -> Cascade | None:
        first = self._cascades.between((), None, 1)
        return first[0] if first else None

    async def advance_cascade(self, cascade: int, cursor: int | None) -> None:
        row = self._cascades.get(cascade)
        if cursor is None:
            self._cascades.pop(cascade)
        elif row is not None:
            self._cascades.put(cascade, row._replace(cursor=cursor))

    async def cascades_of(self, jobs: Sequence[int]) -> list[Cascade]:
        """Ascending by id."""
        wanted = frozenset(jobs)
        return [row for row in self._cascades.between((), None) if row.job in wanted]

    def _known(self, ids: Sequence[int]) -> list[WorkflowRow]:
        return [self._workflows[row] for row in sorted(ids) if row in self._workflows]


def _bumped(row: WorkflowRow, deltas: Mapping[int, int]) -> WorkflowRow:
    counts = list(row.counts)
    for state, delta in deltas.items():
        counts[state] += delta
    return row._replace(counts=tuple(counts))
