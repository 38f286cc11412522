"""Spans of a server: submissions, and from the event log the waits of jobs and lost attempts."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.job.kinds import program_or_task
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import STATE_BY_CODE, TERMINAL, State
from windlass.domain.lifecycle.traces import Trace, parse_trace
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.values.ids import shown_attempt
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.operations.dispatch.call import Call
from windlass.ports.clock import Clock
from windlass.server.workflow_spans import WorkflowSpans
from windlass.store.store import Store
from windlass.tracing.attempts import LOST, Ended, attempt_span
from windlass.tracing.attributes import of_job, of_sending
from windlass.tracing.current import with_trace
from windlass.tracing.exporting import Made, Tracing

MAX_OPEN: Final = 100_000  # traced jobs that are remembered
HEADER: Final = b"traceparent"

_JOB: Final = int(EventKind.JOB)
_QUEUED: Final = State.QUEUED.code
_RUNNING: Final = State.RUNNING.code
_LEAVES_QUEUE: Final = frozenset({_RUNNING, *(state.code for state in TERMINAL)})
_ENDED: Final = frozenset(state.code for state in TERMINAL)
_MARK: Final = b'"trace":"'


class _Spec(msgspec.Struct, frozen=True):
    queue: str = "default"
    trace: str | None = None
    workflow: int | None = None


class _Data(msgspec.Struct, frozen=True):
    gone: bool = False


class _Traced(NamedTuple):
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
        self._open: dict[int, _Traced] = {}

    def learn(self, job: int, stored: bytes) -> None:
        """Remembers a job, if it is traced."""
        spec = _spec(stored) if _MARK in stored else _Spec()
        trace = parse_trace(spec.trace)
        if trace is None:
            return
        if len(self._open) >= MAX_OPEN:
            self._open.pop(next(iter(self._open)))
        self._open[job] = _Traced(trace, spec.queue, program_or_task(stored), spec.workflow)
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
            if event.to in _ENDED:
                self._open.pop(event.job, None)

    def _observe_job(self, event: Event, known: _Traced, is_new: bool) -> _Traced:
        """Returns what is known after the event; a new one may be the end of a span."""
        if event.to == _QUEUED:
            return known._replace(queued_at=event.at, running_at=None)
        if event.to in _LEAVES_QUEUE and known.queued_at is not None:
            if is_new:
                self._add(event, known, known.queued_at)
            known = known._replace(queued_at=None)
        if event.to == _RUNNING:
            return known._replace(running_at=event.at)
        if known.running_at is not None and _is_gone(event):
            if is_new:
                self._add_lost(event, known, known.running_at)
            return known._replace(running_at=None)
        return known

    def _add_lost(self, event: Event, known: _Traced, began: int) -> None:
        ended = Ended(
            event.job, event.attempt, known.queue, known.task, known.workflow, began, event.at,
            LOST, FailureClass.WORKER_LOST,
        )  # fmt: skip
        self._tracing.add(attempt_span(known.trace, ended))

    def _add(self, event: Event, known: _Traced, queued_at: int) -> None:
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
