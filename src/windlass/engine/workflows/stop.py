"""Stops a workflow: nothing more of it starts, and running jobs are told to stop.

The cascade is a row and handles open jobs in chunks, in ascending order of ids. Waiting jobs are
ended in bulk. Dependents inside the workflow need no update, since all of it ends; only dependents
outside do.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import ENDED, WorkflowState
from windlass.domain.rows.records import Cascade, CascadeKind
from windlass.domain.values.errors import NotFound
from windlass.domain.values.ids import WorkflowId
from windlass.engine.jobs.cancel import cancel
from windlass.engine.jobs.dependents import CHUNK, Ended, hold_dependents, notify_dependents
from windlass.engine.jobs.end_waiting import note_ended
from windlass.engine.transaction.unit_of_work import Work

CANCELED = State.CANCELED.code


class Stopped(NamedTuple):
    """The result of a cancel: the workflow's state, and whether this call changed it."""

    workflow: int
    state: str
    applied: bool


class StopReason(msgspec.Struct, frozen=True, omit_defaults=True):
    """The reason of a cascade, as it is stored."""

    reason: str
    actor: str | None = None


_why = msgspec.json.Decoder(StopReason).decode


async def cancel_workflow(work: Work, workflow: int, reason: str, actor: str | None) -> Stopped:
    """Makes a workflow `canceling`, and records the cascade that stops all of it."""
    row = (await work.tx.workflows.lock([workflow])).get(workflow)
    if row is None:
        raise NotFound("workflow", workflow)
    state = WorkflowState(row.state)
    if state in ENDED or state is WorkflowState.CANCELING:
        return Stopped(workflow, state.name.lower(), False)
    work.cancel_workflow(workflow, reason, actor)
    await work.tx.workflows.set_reason(workflow, reason)
    body = msgspec.json.encode(StopReason(reason, actor)).decode()
    work.cascades.append(Cascade.of_workflow(WorkflowId(workflow), CascadeKind.CANCEL, body))
    return Stopped(workflow, "canceling", True)


async def stop_chunk(work: Work, cascade: Cascade) -> int | None:
    """Stops the next jobs; returns where the following chunk begins, None at the end."""
    workflow, why = cascade.known_workflow, _why(cascade.reason or "")
    jobs = await work.tx.workflows.open_jobs(workflow, cascade.cursor, CHUNK)
    if jobs:
        await _stop(work, workflow, jobs, why)
    return jobs[-1] if len(jobs) == CHUNK else None


async def _stop(work: Work, workflow: int, jobs: Sequence[int], why: StopReason) -> None:
    await work.tx.jobs.hold(jobs)
    edges = await work.tx.jobs.dependents(jobs, 0)
    await hold_dependents(work, jobs, edges)
    outside = await _outside(work, workflow, edges)
    ended = await work.tx.flow.end_waiting(jobs, CANCELED, work.now, why.reason, queued=True)
    await note_ended(work, ended, CANCELED, why.reason, why.actor)
    notified = [
        Ended(row.job, bool(row.flags & ALLOW_FAILURE), why.reason)
        for row in ended
        if row.job in outside
    ]
    await notify_dependents(work, notified, {row.job: edges[row.job] for row in notified})
    gone = {row.job for row in ended}
    if len(gone) < len(jobs):
        await cancel(work, [job for job in jobs if job not in gone], why.reason, why.actor)


async def _outside(work: Work, workflow: int, edges: Mapping[int, Sequence[int]]) -> frozenset[int]:
    """Returns those of these jobs that something outside the workflow depends on."""
    found: set[int] = set()
    chunk = 0
    while edges:
        waiting = {edge >> 1 for some in edges.values() for edge in some}
        others = set(await work.tx.workflows.outside(workflow, sorted(waiting)))
        if others:
            found |= {j for j, some in edges.items() if any(e >> 1 in others for e in some)}
        chunk += 1
        more = [job for job, some in edges.items() if len(some) >= CHUNK and job not in found]
        edges = await work.tx.jobs.dependents(more, chunk) if more else {}
    return frozenset(found)
