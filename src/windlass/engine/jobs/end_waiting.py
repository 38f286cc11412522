"""Ends jobs while they wait, many at once."""

from collections.abc import Sequence

from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import FORGIVEN, ended_badly
from windlass.domain.rows.records import Waited
from windlass.engine.jobs.inherit_rank import pass_on_ended
from windlass.engine.transaction.unit_of_work import Work

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code


async def note_ended(
    work: Work, ended: Sequence[Waited], to: int, reason: str, actor: str | None = None
) -> None:
    """Counts and records jobs that ended while they waited, equal ones together."""
    await work.catalog.know(work.tx, {row.shape for row in ended})
    alike: dict[int, list[Waited]] = {}
    counts: dict[tuple[int, int | None, int], int] = {}
    for row in ended:
        alike.setdefault(row.state, []).append(row)
        kind = row.shape, row.workflow, row.state
        counts[kind] = counts.get(kind, 0) + 1
        if row.flags & ALLOW_FAILURE and row.workflow is not None and ended_badly(to):
            work.count_in_workflow(row.workflow, FORGIVEN, 1)
        if row.limit and row.state == QUEUED:
            work.slots.refill(row.limit)
    for state, rows in alike.items():
        jobs, attempts = [row.job for row in rows], [row.attempt for row in rows]
        work.move_all(jobs, attempts, ((state, to),), reason=reason, actor=actor)
    for (shape, workflow, state), jobs_alike in counts.items():
        work.count_moves(shape, workflow, state, to, jobs_alike)
    pass_on_ended(work, ((row.job, row.flags) for row in ended if row.state == BLOCKED))
    work.effects.ended += [row.job for row in ended]
