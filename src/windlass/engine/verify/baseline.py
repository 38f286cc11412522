"""Where a replay begins after retention has removed the oldest events.

The baseline holds the result of the removed events: the jobs that were open then, and the
workers, workflows and limits. A job that had ended by then needs no row in it: we use its current
row. Retention writes the baseline and the checker reads it, both with this module.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import ACTIVE_CODES, ASSIGNED
from windlass.domain.lifecycle.workflow_state import FORGIVEN, ended_badly
from windlass.domain.rows.events import BaselineKind, BaselineRow
from windlass.domain.rows.records import JobRecord
from windlass.engine.verify.past import JobPast, LimitPast, Past, WorkerPast, WorkflowPast, filled
from windlass.engine.verify.replay import Replay

_JOB: Final = JobPast.__slots__
_WORKER: Final = ("incarnation", "status", "slots", "dynamic", "static", "removed")
_WORKFLOW: Final = ("state", "run")
_LIMIT: Final = ("max", "set_at")


class Dump(NamedTuple):
    """The rows to write, and the jobs that no longer need one."""

    rows: list[BaselineRow]
    ended: list[int]


def load(replay: Replay, rows: Iterable[BaselineRow], counting: bool = True) -> None:
    """Starts where the removed events ended; `counting` also restores all counts."""
    past = replay.past
    for row in rows:
        body: dict[str, Any] = json.loads(row.body)
        if row.kind == BaselineKind.HEAD:
            past.seq = past.trimmed = body["seq"]
            past.newest_trimmed_job = body["newest_job"]
            past.paused.update(body["paused"])
            for name, (running, per_worker) in body.get("limits", {}).items():
                queue = past.holdings.queue(name)
                queue.max_running, queue.max_per_worker = running, per_worker
        elif row.kind == BaselineKind.JOB:
            past.jobs[row.id] = filled(JobPast(), body)
        elif row.kind == BaselineKind.WORKER:
            past.workers[row.id] = filled(past.worker(row.id), body)
        elif row.kind == BaselineKind.WORKFLOW:
            past.workflows[row.id] = filled(past.workflow(row.id), body)
        elif row.kind == BaselineKind.LIMIT:
            past.limits[row.id] = filled(past.limit(row.id), body)
    for job, logged in past.jobs.items():
        known = replay.known.jobs.get(job)
        logged.tries = [(number, worker, run) for number, worker, run in logged.tries]
        if known is not None and counting:
            _count(past, known, logged)
            _hold(replay, known, logged)


def seed_ended(replay: Replay) -> None:
    """Uses current rows for jobs that ended before the baseline, unless an event disagrees."""
    past = replay.past
    if not past.trimmed:
        return
    tries: dict[int, list[tuple[int, int, int]]] = {}
    for row in replay.known.snapshot.attempts:
        tries.setdefault(row.job, []).append((row.number, row.worker, row.incarnation))
    for job, record in replay.known.jobs.items():
        if not record.facts.is_open and job <= past.newest_trimmed_job and job not in past.jobs:
            past.jobs[job] = _as_it_stands(record, tries.get(job, []))
            past.seeded.add(job)


def settle_seeded(replay: Replay) -> None:
    """Counts the seeded jobs, now that we know whether one was superseded."""
    past = replay.past
    for job in past.seeded:
        record, logged = replay.known.jobs[job], past.jobs[job]
        if logged.superseded_by or not record.facts.superseded_by:
            _count(past, record, logged)
        else:
            logged.superseded_by = record.facts.superseded_by


def dump(past: Past) -> Dump:
    """Returns what to keep of the jobs and other objects in the replayed events."""
    limits = {n: (q.max_running, q.max_per_worker) for n, q in past.holdings.queues.items()}
    head = {
        "seq": past.seq, "newest_job": past.newest_trimmed_job, "paused": past.paused,
        "limits": {name: both for name, both in limits.items() if any(both)},
    }  # fmt: skip
    rows = [BaselineRow(BaselineKind.HEAD, 0, _text(head))]
    rows += _rows(BaselineKind.WORKER, past.workers.items(), _WORKER)
    rows += _rows(BaselineKind.WORKFLOW, past.workflows.items(), _WORKFLOW)
    rows += _rows(BaselineKind.LIMIT, past.limits.items(), _LIMIT)
    rows += _rows(BaselineKind.JOB, ((j, p) for j, p in past.jobs.items() if not p.ended), _JOB)
    return Dump(rows, [job for job, logged in past.jobs.items() if logged.ended])


def _as_it_stands(record: JobRecord, tries: list[tuple[int, int, int]]) -> JobPast:
    facts, logged = record.facts, JobPast()
    logged.state = facts.final_state
    logged.attempt = logged.closed = facts.attempt
    logged.failed, logged.lost, logged.returned = facts.failed, facts.lost, facts.returned
    logged.handed_back = facts.handed_back
    logged.base, logged.adjustment = facts.base, facts.adjustment
    logged.worker, logged.incarnation = facts.worker or 0, facts.incarnation or 0
    logged.supersedes = facts.supersedes
    logged.tries = tries
    return logged


def _count(past: Past, record: JobRecord, logged: JobPast) -> None:
    """Counts a job wherever the events that led to its state would have counted it."""
    facts = record.facts
    if facts.workflow is not None:
        counts = past.workflow(facts.workflow).counts
        counts[logged.state] += 1
        if ended_badly(logged.state):
            counts[FORGIVEN] += bool(facts.flags & ALLOW_FAILURE)
    if logged.state in ACTIVE_CODES:
        if facts.limit:
            past.limit(facts.limit).active += 1
        past.worker(logged.worker).running += logged.state != ASSIGNED


def _hold(replay: Replay, record: JobRecord, logged: JobPast) -> None:
    """Counts what an active job holds."""
    shape = record.facts.shape
    if logged.state in ACTIVE_CODES and shape in replay.known.shapes:
        queue = replay.known.shapes[shape].queue
        replay.past.holdings.take(logged.worker, shape, queue, 1)


def _rows(
    kind: BaselineKind,
    things: Iterable[tuple[int, JobPast | WorkerPast | WorkflowPast | LimitPast]],
    names: Sequence[str],
) -> list[BaselineRow]:
    return [
        BaselineRow(int(kind), number, _text({name: getattr(thing, name) for name in names}))
        for number, thing in things
    ]


def _text(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"), sort_keys=True)
