"""Spans of a server: submissions, waits of jobs and lost attempts, and whole workflows.

All but submissions are read from the event log. A workflow's span goes from the submission, or a
retry by hand, to the end.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.job.kinds import program_or_task
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import (
    QUEUED,
    RUNNING,
    STATE_BY_CODE,
    TERMINAL,
    TERMINAL_CODES,
)
from windlass.domain.lifecycle.traces import Trace, parse_trace
from windlass.domain.lifecycle.workflow_state import ENDED, WorkflowState
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import WorkflowRow
from windlass.domain.values.ids import shown_attempt
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.operations.dispatch.call import Call
from windlass.ports.clock import Clock
from windlass.store.store import Store
from windlass.tracing.attributes import of_job, of_pipeline, of_sending
from windlass.tracing.current import with_trace
from windlass.tracing.exporting import LOST, Ended, Made, Tracing, attempt_span

MAX_WORKFLOWS: Final = 10_000  # traced workflows that are remembered

_WORKFLOW: Final = int(EventKind.WORKFLOW)

MAX_JOBS: Final = 100_000  # traced jobs that are remembered
HEADER: Final = b"traceparent"

_JOB: Final = int(EventKind.JOB)
_MARK: Final = b'"trace":"'


class _Move(msgspec.Struct, frozen=True):
    """What an event says about a workflow; 0 if it does not change its state."""

    workflow: int = 0
    source: int = msgspec.field(default=0, name="from")
    to: int = 0


class _TracedWorkflow(NamedTuple):
    trace: Trace
    reopened_at: int | None = None


_move: Final = msgspec.json.Decoder(_Move).decode


class WorkflowSpans:
    """Makes a span for each time that a traced workflow ended."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._open: dict[int, _TracedWorkflow] = {}
        self._ended: Mapping[int, WorkflowRow] = {}

    def learn(self, workflow: int, trace: Trace) -> None:
        """Remembers the trace that the first known job of a workflow is in."""
        if workflow in self._open:
            return
        if len(self._open) >= MAX_WORKFLOWS:
            self._open.pop(next(iter(self._open)))
        self._open[workflow] = _TracedWorkflow(trace)

    async def prepare(self, store: Store, events: Sequence[Event]) -> None:
        """Reads what the traced workflows are that end with these events."""
        moves = [_move(e.data) for e in events if e.kind == _WORKFLOW and e.data is not None]
        ended = {move.workflow for move in moves if move.to in ENDED} & self._open.keys()
        self._ended = {}
        if ended:
            self._ended = await store.read(lambda tx: tx.workflows.read(sorted(ended)))

    def observe(self, event: Event, counts: bool) -> None:
        """Takes notice of an event about a workflow; makes its span if it `counts`."""
        move = _Move() if event.data is None else _move(event.data)
        known = self._open.get(move.workflow)
        if known is None:
            return
        if move.source in ENDED:
            self._open[move.workflow] = known = known._replace(reopened_at=event.at)
        row = self._ended.get(move.workflow)
        if move.to in ENDED and row is not None and counts:
            self._add(event, row, WorkflowState(move.to), known)

    def _add(
        self, event: Event, row: WorkflowRow, state: WorkflowState, known: _TracedWorkflow
    ) -> None:
        began = row.created_at if known.reopened_at is None else known.reopened_at
        about = of_pipeline(row.id, row.name, state.name.lower())
        error = "failed" if state is WorkflowState.FAILED else None
        name = f"RUN {row.name}"
        self._tracing.add(Made(name, "SERVER", known.trace, began, event.at, about, error=error))


_LEAVES_QUEUE: Final = frozenset({RUNNING, *(state.code for state in TERMINAL)})


class _Spec(msgspec.Struct, frozen=True):
    queue: str = "default"
    trace: str | None = None
    workflow: int | None = None


class _Data(msgspec.Struct, frozen=True):
    gone: bool = False


class _TracedJob(NamedTuple):
    trace: Trace
    queue: str
    task: str
    workflow: int | None
    queued_at: int | None = None
    running_at: int | None = None


_spec: Final = msgspec.json.Decoder(_Spec).decode

_data: Final = msgspec.json.Decoder(_Data).decode


class JobSpans:
    """Makes a span for each time that a traced job was queued, and for traced workflows.

    Also for an attempt whose worker was lost, since that worker makes none.
    """

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._workflows = WorkflowSpans(tracing)
        self._open: dict[int, _TracedJob] = {}

    def learn(self, job: int, stored: bytes) -> None:
        """Remembers a job, if it is traced."""
        spec = _spec(stored) if _MARK in stored else _Spec()
        trace = parse_trace(spec.trace)
        if trace is None:
            return
        if len(self._open) >= MAX_JOBS:
            self._open.pop(next(iter(self._open)))
        self._open[job] = _TracedJob(trace, spec.queue, program_or_task(stored), spec.workflow)
        if spec.workflow is not None:
            self._workflows.learn(spec.workflow, trace)

    async def prepare(self, store: Store, events: Sequence[Event]) -> None:
        """Reads what the spans of these events need."""
        await self._workflows.prepare(store, events)

    def trace_of(self, job: int) -> str | None:
        """Returns the id of the trace that an open job is in."""
        known = self._open.get(job)
        return None if known is None else known.trace.trace

    def observe(self, events: Sequence[Event], after: int) -> None:
        """Takes notice of events, and makes the spans of those with a number above `after`."""
        for event in events:
            if event.kind == EventKind.WORKFLOW:
                self._workflows.observe(event, event.seq > after)
            known = self._open.get(event.job) if event.kind == _JOB else None
            if known is None:
                continue
            self._open[event.job] = self._observe_job(event, known, event.seq > after)
            if event.to in TERMINAL_CODES:
                self._open.pop(event.job, None)

    def _observe_job(self, event: Event, known: _TracedJob, is_new: bool) -> _TracedJob:
        """Returns what is known after the event; a new one may be the end of a span."""
        if event.to == QUEUED:
            return known._replace(queued_at=event.at, running_at=None)
        if event.to in _LEAVES_QUEUE and known.queued_at is not None:
            if is_new:
                self._add(event, known, known.queued_at)
            known = known._replace(queued_at=None)
        if event.to == RUNNING:
            return known._replace(running_at=event.at)
        if known.running_at is not None and _is_gone(event):
            if is_new:
                self._add_lost(event, known, known.running_at)
            return known._replace(running_at=None)
        return known

    def _add_lost(self, event: Event, known: _TracedJob, began: int) -> None:
        ended = Ended(
            event.job, event.attempt, known.queue, known.task, known.workflow, began, event.at,
            LOST, FailureClass.WORKER_LOST,
        )  # fmt: skip
        self._tracing.add(attempt_span(known.trace, ended))

    def _add(self, event: Event, known: _TracedJob, queued_at: int) -> None:
        attempt = shown_attempt(event.attempt)
        about = of_job(event.job, attempt, known.queue, known.task, known.workflow)
        about["windlass.job.state"] = str(STATE_BY_CODE[event.to])
        name = f"wait {known.queue}"
        self._tracing.add(Made(name, "INTERNAL", known.trace, queued_at, event.at, about))


def _is_gone(event: Event) -> bool:
    """Returns whether the event is the end of an attempt that its worker cannot report."""
    return event.data is not None and _data(event.data).gone


class RootSpans:
    """Begins a trace for jobs without one: of schedules, commands and other programs."""

    def __init__(self, tracing: Tracing, clock: Clock) -> None:
        self._tracing = tracing
        self._clock = clock

    def begin(self, jobs: Sequence[JobSpec]) -> Sequence[JobSpec]:
        """Returns the jobs; those without a trace share a new one."""
        without = [job for job in jobs if job.trace is None]
        if not without:
            return jobs
        now, queue = self._clock.now_ms(), without[0].queue
        about = of_sending(queue, len(without))
        root = self._tracing.add(Made(f"send {queue}", "PRODUCER", None, now, now, about))
        return with_trace(jobs, root.text)


async def submit_traced(
    call: Call, data: SubmitRequest, *, tracing: Tracing, clock: Clock
) -> SubmitReply:
    """Submits jobs in a span; jobs without a trace get that of the request."""
    began = clock.now_ms()
    parent = _parent(call, data)
    jobs = with_trace(data.jobs, None if parent is None else parent.text)
    if parent is not None:
        data = msgspec.structs.replace(data, jobs=jobs)
    error: str | None = "error"
    try:
        reply = await call.services.submissions.submit(data, call.who)
        error = None
    finally:
        queue = data.jobs[0].queue if data.jobs else "default"
        about = of_sending(queue, len(data.jobs)) | {
            "http.request.method": "POST",
            "http.route": "/api/v1/jobs",
        }
        if parent is not None:
            made = Made(
                "POST /api/v1/jobs", "SERVER", parent, began, clock.now_ms(), about, error=error
            )
            tracing.add(made)
    return reply


def _parent(call: Call, data: SubmitRequest) -> Trace | None:
    header = call.header(HEADER)
    if header:
        return parse_trace(header)
    return next((t for job in data.jobs if (t := parse_trace(job.trace)) is not None), None)
