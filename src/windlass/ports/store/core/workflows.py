"""The role of a transaction that knows workflows, and intents that outlive a crash."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from windlass.domain.rows.records import Cascade, JobFacts, WorkflowAbout, WorkflowRow


class WorkflowsRead(Protocol):
    """Reads rows of `workflows`, `limits` and `cascades`: what spans several jobs."""

    async def cascades_of(
        self, jobs: Sequence[int] = (), workflows: Sequence[int] = ()
    ) -> list[Cascade]:
        """Returns the intents about these jobs and about these workflows, ascending by id."""
        ...

    async def about(self, ids: Sequence[int]) -> dict[int, WorkflowAbout]: ...

    async def jobs_of(self, workflow: int, after: int, count: int) -> list[JobFacts]:
        """Returns the next jobs of a workflow behind the id `after`, ascending, not locked."""
        ...

    async def last_job(self, workflow: int) -> int:
        """Returns the newest job of a workflow; 0 if it has none."""
        ...

    async def open_jobs(self, workflow: int, after: int, count: int) -> list[int]:
        """Returns the same for those that have not ended; their ids only."""
        ...

    async def outside(self, workflow: int, jobs: Sequence[int]) -> list[int]:
        """Returns those of these jobs that belong to no or another workflow, ascending."""
        ...

    async def unfinished(self, after: int, count: int) -> list[WorkflowRow]:
        """Returns the next workflows behind `after` that have not ended, ascending, not locked."""
        ...

    async def newest(self, below: int, count: int) -> list[WorkflowRow]:
        """Returns the newest workflows with an id below `below`, descending, not locked."""
        ...

    async def recount(self, workflow: int) -> tuple[int, ...]:
        """Returns what `counts` should be, by a walk over all jobs and places of the workflow."""
        ...

    async def read(self, ids: Sequence[int]) -> dict[int, WorkflowRow]:
        """Returns these workflows, not locked; unknown ids are absent."""
        ...


class WorkflowsWrite(WorkflowsRead, Protocol):
    """Reads and writes rows of `workflows`, `limits` and `cascades`: what spans several jobs."""

    async def allocate(self, count: int) -> Sequence[int]: ...

    async def insert(self, rows: Sequence[WorkflowRow]) -> None: ...

    async def lock(self, ids: Sequence[int]) -> dict[int, WorkflowRow]: ...

    async def bump(self, deltas: Mapping[int, Mapping[int, int]]) -> list[WorkflowRow]:
        """Adds to the counts (workflow → state code → delta), ascending; returns the new rows."""
        ...

    async def set_state(self, rows: Sequence[tuple[int, int, int, int | None]]) -> None:
        """Writes (workflow, state, run, finished_at)."""
        ...

    async def add_cascades(self, rows: Sequence[Cascade]) -> None:
        """Records intents (their `id` is ignored)."""
        ...

    async def pull_cascade(self) -> Cascade | None:
        """Locks and reads the oldest intent no other transaction works on."""
        ...

    async def advance_cascade(self, cascade: int, cursor: int | None) -> None:
        """Moves the intent's cursor, or removes it when `cursor` is None."""
        ...

    async def describe(self, row: WorkflowAbout) -> None:
        """Inserts what a workflow was submitted with."""
        ...

    async def set_reason(self, workflow: int, reason: str) -> None: ...

    async def claim_key(self, namespace: str, key: str, workflow: int, instead_of: int = 0) -> int:
        """Lets a key name this workflow, if it is new or names `instead_of`; whom it names now."""
        ...
