"""Rows of `workflows` and `cascades`: what spans several jobs."""

from collections.abc import Mapping, Sequence

from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import COUNTS, ENDED, FORGIVEN, ended_badly
from windlass.domain.rows.records import Cascade, JobFacts, WorkflowAbout, WorkflowRow
from windlass.store.memory.tables import Tables

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code


class MemoryWorkflows:
    """`WorkflowsWrite` over the tables. Unknown workflows are passed over."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._workflows = tables.workflows
        self._cascades = tables.cascades

    async def allocate(self, count: int) -> Sequence[int]:
        return self._tables.number("workflow", count)

    async def insert(self, rows: Sequence[WorkflowRow]) -> None:
        for row in rows:
            self._workflows.insert(row.id, row)

    async def read(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        return {row.id: row for row in self._known(ids)}

    async def lock(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        """Transactions run one after another: there is nothing to lock."""
        return await self.read(ids)

    async def bump(self, deltas: Mapping[int, Mapping[int, int]]) -> list[WorkflowRow]:
        changed = [_bumped(row, deltas[row.id]) for row in self._known(list(deltas))]
        for row in changed:
            self._workflows.put(row.id, row)
        return changed

    async def set_state(self, rows: Sequence[tuple[int, int, int, int | None]]) -> None:
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

    async def cascades_of(
        self, jobs: Sequence[int] = (), workflows: Sequence[int] = ()
    ) -> list[Cascade]:
        return [
            row
            for row in self._cascades.between((), None)
            if row.job in jobs or row.workflow in workflows
        ]

    async def describe(self, row: WorkflowAbout) -> None:
        self._tables.workflow_about.insert(row.workflow, row)

    async def about(self, ids: Sequence[int]) -> dict[int, WorkflowAbout]:
        found = ((number, self._tables.workflow_about.get(number)) for number in sorted(ids))
        return {number: row for number, row in found if row is not None}

    async def set_reason(self, workflow: int, reason: str) -> None:
        row = self._tables.workflow_about.get(workflow)
        if row is not None:
            self._tables.workflow_about.put(workflow, row._replace(reason=reason))

    async def claim_key(self, namespace: str, key: str, workflow: int, instead_of: int = 0) -> int:
        named = self._tables.workflow_keys.get((namespace, key))
        if named is None or named[2] == instead_of:
            named = (namespace, key, workflow)
            self._tables.workflow_keys.put((namespace, key), named)
        return named[2]

    async def jobs_of(self, workflow: int, after: int, count: int) -> list[JobFacts]:
        rows = self._tables.grouped.between((workflow, after + 1), (workflow + 1,), count)
        return [self._tables.jobs[job].facts for _, job in rows]

    async def last_job(self, workflow: int) -> int:
        rows = self._tables.grouped.between((workflow,), (workflow + 1,))
        return max((job for _, job in rows), default=0)

    async def open_jobs(self, workflow: int, after: int, count: int) -> list[int]:
        found: list[int] = []
        while len(found) < count:
            page = await self.jobs_of(workflow, after, count)
            if not page:
                break
            found += [facts.id for facts in page if facts.is_open]
            after = page[-1].id
        return found[:count]

    async def outside(self, workflow: int, jobs: Sequence[int]) -> list[int]:
        rows = ((job, self._tables.jobs.get(job)) for job in sorted(set(jobs)))
        return [job for job, row in rows if row is not None and row.facts.workflow != workflow]

    async def unfinished(self, after: int, count: int) -> list[WorkflowRow]:
        open_rows = (row for row in self._workflows if row.state not in ENDED)
        return sorted((row for row in open_rows if row.id > after), key=lambda r: r.id)[:count]

    async def newest(self, below: int, count: int) -> list[WorkflowRow]:
        rows = sorted((row for row in self._workflows if row.id < below), key=lambda r: -r.id)
        return rows[:count]

    async def recount(self, workflow: int) -> tuple[int, ...]:
        counts = [0] * COUNTS
        for _, job in self._tables.grouped.between((workflow,), (workflow + 1,)):
            facts = self._tables.jobs[job].facts
            if facts.superseded_by:
                continue
            counts[self._place(facts) if facts.state is None else facts.state] += 1
            if ended_badly(facts.state or 0) and facts.flags & ALLOW_FAILURE:
                counts[FORGIVEN] += 1
        return tuple(counts)

    def _place(self, facts: JobFacts) -> int:
        """Returns the state of an open job, by where it stands; blocked if it stands nowhere."""
        tables = self._tables
        lease, due = tables.leases.get(facts.id), tables.due.get(facts.id)
        if lease is not None:
            return lease.state
        if due is not None:
            return due.state
        here = (facts.shape, facts.rank, facts.id)
        parked = facts.limit is not None and (facts.limit, *here) in tables.parked
        queued = here in tables.ready or parked
        return QUEUED if queued else BLOCKED

    def _known(self, ids: Sequence[int]) -> list[WorkflowRow]:
        return [self._workflows[row] for row in sorted(ids) if row in self._workflows]


def _bumped(row: WorkflowRow, deltas: Mapping[int, int]) -> WorkflowRow:
    counts = list(row.counts)
    for state, delta in deltas.items():
        counts[state] += delta
    return row._replace(counts=tuple(counts))
