"""Rows of `workflows` and `cascades`: what spans several jobs."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from windlass.domain.lifecycle.workflow_state import COUNTS, FORGIVEN
from windlass.domain.rows.records import Cascade, JobFacts, WorkflowAbout, WorkflowRow
from windlass.store.sql.session import Role, Session, of_ids, query

_encode = msgspec.json.encode


class Workflows(Role, ABC):
    """Reads and writes rows of `workflows`, `limits` and `cascades`: what spans several jobs.

    Unknown workflows are ignored.
    """

    __slots__ = ()

    async def read(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        """Returns these workflows, not locked; unknown ids are absent."""
        return await self._by_id("read_workflows", ids)

    async def _by_id(self, query: str, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        if not ids:
            return {}
        rows = await self._session.fetch(query, self._session.ids(ids))
        return {row.id: row for row in workflows_of(self._session, rows)}

    async def cascades_of(
        self, jobs: Sequence[int] = (), workflows: Sequence[int] = ()
    ) -> list[Cascade]:
        """Returns the cascades of these jobs and workflows, ascending by id."""
        wanted = self._session.ids(jobs), self._session.ids(workflows)
        return await self._session.rows(Cascade, "cascades_of", *wanted)

    about = of_ids("workflow_about").by_id(WorkflowAbout)

    jobs_of = query("jobs_of_workflow", int, int, int).rows(JobFacts)
    """Returns the next jobs of a workflow above an id, ascending, up to a number, not locked."""

    last_job = query("last_job_of_workflow", int).number()
    """Returns the newest job of a workflow; 0 if it has none."""

    open_jobs = query("open_jobs_of_workflow", int, int, int).column()
    """Returns the ids of the open ones, by the same parameters."""

    async def outside(self, workflow: int, jobs: Sequence[int]) -> list[int]:
        """Returns the jobs that belong to no workflow or another one, ascending."""
        if not jobs:
            return []
        rows = await self._session.fetch("jobs_outside", workflow, self._session.ids(jobs))
        return [row[0] for row in rows]

    async def unfinished(self, after: int, count: int) -> list[WorkflowRow]:
        """Returns the next workflows after `after` that have not ended, ascending, not locked."""
        rows = await self._session.fetch("unfinished_workflows", after, count)
        return workflows_of(self._session, rows)

    async def newest(self, below: int, count: int) -> list[WorkflowRow]:
        """Returns the newest workflows with an id below `below`, descending, not locked."""
        rows = await self._session.fetch("newest_workflows", below, count)
        return workflows_of(self._session, rows)

    async def recount(self, workflow: int) -> tuple[int, ...]:
        """Returns what `counts` should be: scans all jobs and places of the workflow."""
        counts = [0] * COUNTS
        for state, forgiven, jobs in await self._session.fetch("recount_workflow", workflow):
            counts[state] += jobs
            counts[FORGIVEN] += jobs if forgiven else 0
        return tuple(counts)

    async def allocate(self, count: int) -> Sequence[int]:
        return await self._session.numbers("workflow_numbers", count)

    async def insert(self, rows: Sequence[WorkflowRow]) -> None:
        values = [(*row[:-1], _encode(row.counts).decode()) for row in rows]
        await self._session.many("insert_workflows", "iooiiiiio", values)

    async def lock(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        return await self._by_id("lock_workflows", ids)

    set_state = query("set_workflow_states").many("iiii", tuple[int, int, int, int | None])
    """Writes (workflow, state, run, finished_at)."""

    async def add_cascades(self, rows: Sequence[Cascade]) -> None:
        """Records cascades (their `id` is ignored)."""
        values = [row[1:] for row in rows]
        await self._session.number_many("cascade", "add_cascades", "iiiio", values)

    pull_cascade = query("pull_cascade").row(Cascade)
    """Locks and reads the oldest cascade that no other transaction works on."""

    async def advance_cascade(self, cascade: int, cursor: int | None) -> None:
        """Moves the cascade's cursor, or removes the cascade if `cursor` is None."""
        if cursor is None:
            await self._session.execute("remove_cascade", cascade)
        else:
            await self._session.execute("advance_cascade", cascade, cursor)

    describe = query("describe_workflow").record(WorkflowAbout)
    """Stores what a workflow was submitted with."""

    set_reason = query("set_workflow_reason", int, str).run()

    async def claim_key(self, namespace: str, key: str, workflow: int, instead_of: int = 0) -> int:
        """Lets a key name this workflow, if the key is new or names `instead_of`; returns the
        workflow that it names now.
        """
        await self._session.execute("claim_workflow_key", namespace, key, workflow, instead_of)
        return int(await self._session.fetch_value("workflow_key", namespace, key))

    @abstractmethod
    async def bump(self, deltas: Mapping[int, Mapping[int, int]]) -> list[WorkflowRow]:
        """Adds to the counts (workflow → state code → delta), ascending; returns the new rows."""


def workflows_of(session: Session, rows: list[Any]) -> list[WorkflowRow]:
    """Returns workflows from rows whose last column is the list of counts."""
    unpack = session.unpack_integers
    return [WorkflowRow._make((*row[:8], unpack(row[8]))) for row in rows]
