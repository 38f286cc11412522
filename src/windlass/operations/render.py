"""Renders records of the store as clients see them."""

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from windlass.domain.explain.equivalents import option_texts
from windlass.domain.explain.forecast import estimate_of, suggestions
from windlass.domain.job.job import ALLOW_FAILURE, OPTIONS, QUARANTINED, JobSpec, decode_spec
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE, ExceptionInfo, FailureClass
from windlass.domain.lifecycle.states import FAILED, STATE_BY_CODE, State
from windlass.domain.lifecycle.timeouts import timeout_from
from windlass.domain.matching.functions import without_schemas
from windlass.domain.matching.indices import offered, read_indices
from windlass.domain.matching.matching import metadata_of
from windlass.domain.matching.shapes import Shape
from windlass.domain.matching.workers import shown_status
from windlass.domain.rows.events import Event, EventKind, Names, actor_of, reason_of, render
from windlass.domain.rows.files import ArtifactRow, LogRow, LogState
from windlass.domain.rows.records import Attempt, JobRecord, ShownNumbers
from windlass.domain.rows.statistics import Summary
from windlass.domain.rows.steps import FOREVER, StepKind, StepRow, StepState
from windlass.domain.rows.views import WorkerView, newest_attempt
from windlass.domain.tasks.media import timed_as
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import format_moment, shown_moment
from windlass.engine.engine import Engine
from windlass.engine.explain.forecast import Outlook
from windlass.messages.files import ArtifactInfo, LogInfo
from windlass.messages.jobs import (
    AttemptInfo,
    FailureInfo,
    Job,
    Priority,
    RunStatistics,
    StepInfo,
    Transition,
)
from windlass.messages.steps import Question
from windlass.messages.system import EventInfo
from windlass.messages.workers import IndexedResource, WorkerInfo
from windlass.operations.dependencies import NO_DEPENDENCIES, Dependencies
from windlass.store.sql.placement import HeldIndices

WORKER_LOST = FailureClass.WORKER_LOST.code

# Options that a job is shown with in another form than they were given.
_DECIDED: Final = frozenset(
    {"task", "queue", "namespace", "workflow", "priority", "requires", "resources", "prefers",
     "apart", "after", "after_any", "allow_failure", "timeout", "idle_timeout", "not_before",
     "labels"}
)  # fmt: skip
_GIVEN: Final = tuple(
    name for name in OPTIONS if name in Job.__struct_fields__ and name not in _DECIDED
)
_given_of: Final = attrgetter(*_GIVEN)


def show_job(
    view: JobRecord,
    shape: Shape,
    engine: Engine,
    transitions: Sequence[Transition] = (),
    outlook: Outlook = Outlook(),  # noqa: B008 - frozen
    dependencies: Dependencies = NO_DEPENDENCIES,
) -> Job:
    """Renders a job with everything that is known about it."""
    facts, lease = view.facts, view.lease
    spec = decode_spec(view.spec)
    return Job(
        id=facts.id,
        namespace=shape.namespace,
        workflow=facts.workflow,
        task=shape.task,
        queue=shape.queue,
        state=str(STATE_BY_CODE[view.state]),
        priority=Priority(
            facts.base, facts.adjustment, facts.base + facts.adjustment, outlook.inherited
        ),
        requires=[clause.text for clause in shape.requires],
        resources=dict(shape.resources),
        after=dependencies.current(spec.after),
        after_any=dependencies.current(spec.after_any),
        dependencies=list(dependencies.dependencies),
        dependents=list(dependencies.dependents),
        dependents_more=dependencies.more,
        allow_failure=bool(facts.flags & ALLOW_FAILURE),
        prefers=[clause.text for clause in shape.prefers],
        apart=shape.apart,
        attempt=shown_attempt(newest_attempt(facts, lease), facts.handed_back),
        attempts=_attempts(view),
        retry_count=_retries(view),
        max_retries=engine.config.retry.max_retries if spec.retries is None else spec.retries,
        lost_count=facts.lost,
        not_before=shown_moment(_not_before(view) or spec.not_before_ms),
        last_activity_at=shown_moment(_activity(view)),
        transitions=list(transitions),
        dynamic=_json(view.dynamic.body) if view.dynamic else None,
        quarantined=bool(facts.flags & QUARANTINED),
        result=None if view.failure else _json(view.result),
        exit_code=view.exit_code,
        failure=_failure(view.failure, view.message, view.result),
        progress=_json(view.progress.value) if view.progress else None,
        log=_log(view.log),
        artifacts=[show_artifact(row) for row in view.artifacts],
        supersedes=facts.supersedes,
        superseded_by=facts.superseded_by,
        labels=spec.labels or {},
        created_at=format_moment(facts.created_at),
        assigned_at=shown_moment(lease.assigned_at if lease else view.assigned_at),
        started_at=shown_moment(lease.started_at if lease else view.started_at),
        finished_at=shown_moment(view.finished_at),
        reason=view.reason,
        worker=view.worker,
        indices={} if lease is None else read_indices(lease.indices),
        options=option_texts(spec),
        **_as_given(spec),
        **_expectations(shape, outlook),
        **_timeouts(view, engine, spec, shape.queue),
    )


def _not_before(view: JobRecord) -> int | None:
    """Returns when it may start; a wait without an end has none."""
    return None if view.not_before == FOREVER else view.not_before


def _retries(view: JobRecord) -> int:
    """Counts the retries after failures; the final failure was not retried."""
    final = view.facts.state == FAILED and view.failure != WORKER_LOST
    return view.facts.failed - final


def _as_given(spec: JobSpec) -> dict[str, Any]:
    """Returns the options that are shown as they were given; tuples as lists, as JSON has them."""
    given = zip(_GIVEN, _given_of(spec), strict=True)
    return {name: list(value) if type(value) is tuple else value for name, value in given}


def _timeouts(view: JobRecord, engine: Engine, spec: JobSpec, queue: str) -> dict[str, Any]:
    """Renders how long a job may run or be idle, and who says so."""
    facts = view.facts
    source = timeout_from(
        engine.config.timeouts, timed_as(spec.task, spec.args), engine.catalog.timeouts.get(queue),
        spec.timeout_ms, facts.timeout_ms,
    )  # fmt: skip
    return {
        "timeout": _seconds(facts.timeout_ms),
        "timeout_from": source,
        "timeout_at": shown_moment(_timeout_at(view, spec)),
        "idle_timeout": _seconds(facts.idle_ms),
    }


def _expectations(shape: Shape, outlook: Outlook) -> dict[str, Any]:
    """Renders the forecast of a job, and what jobs like it took."""
    late = outlook.forecast.overdue_ms
    return {
        "estimated_start": estimate_of(outlook.now, outlook.forecast.start),
        "estimated_end": estimate_of(outlook.now, outlook.forecast.end),
        "overdue": None if late is None else late / 1000,
        "peak_memory": outlook.peak_memory,
        "statistics": _statistics(outlook.known),
        "suggestions": suggestions(shape.resources, outlook.known),
    }


def _statistics(known: Summary | None) -> RunStatistics | None:
    if known is None:
        return None
    return RunStatistics(
        kind=known.kind,
        count=known.count,
        mean=known.mean_ms / 1000,
        p50=known.p50_ms / 1000,
        p90=known.p90_ms / 1000,
        peak_memory=known.peak_memory,
    )


def show_transitions(
    events: Sequence[Event], names: Mapping[int, str], submitted_by: str | None,
    attempts: Sequence[Attempt],
) -> list[Transition]:  # fmt: skip
    """Renders a job's changes of state, each with its reason and who made it."""
    numbers = ShownNumbers(attempts)
    return [
        _transition(event, state, names, submitted_by, numbers)
        for event in events
        if event.kind == EventKind.JOB and (state := STATE_BY_CODE[event.to]) is not None
    ]


def _transition(
    event: Event, to: State, names: Mapping[int, str], submitted_by: str | None,
    numbers: ShownNumbers,
) -> Transition:  # fmt: skip
    worker = names.get(event.worker, str(event.worker))
    return Transition(
        seq=event.seq,
        at=format_moment(event.at),
        source=None if not event.source else str(STATE_BY_CODE[event.source]),
        to=str(to),
        attempt=numbers(event.attempt),
        worker=names.get(event.worker),
        reason=reason_of(event, to, worker),
        actor=actor_of(event, to, worker, submitted_by),
    )


def show_event(event: Event, names: Names = {}) -> EventInfo:  # noqa: B006 - never changed
    """Renders one event, with the line that a person reads."""
    return EventInfo(
        seq=event.seq,
        at=format_moment(event.at),
        kind=EventKind(event.kind).name.lower(),
        job=event.job or None,
        attempt=shown_attempt(event.attempt) or None,
        worker=event.worker or None,
        source=None if not event.source else str(STATE_BY_CODE[event.source]),
        to=None if not event.to else str(STATE_BY_CODE[event.to]),
        reason=event.reason,
        actor=event.actor,
        line="\n".join(render(event, names)),
    )


def show_artifact(row: ArtifactRow) -> ArtifactInfo:
    """Renders an artifact without its bytes."""
    return ArtifactInfo(row.name, row.sha256, row.size, row.content_type)


def show_worker(view: WorkerView, held: Sequence[HeldIndices] = ()) -> WorkerInfo:
    """Renders a worker; `held` are the indices of its leases."""
    worker = view.worker
    metadata = metadata_of(worker.static, worker.dynamic)
    return WorkerInfo(
        id=worker.id,
        name=worker.name,
        status=shown_status(worker, view.leases),
        incarnation=worker.incarnation,
        slots=worker.slots,
        held=view.leases,
        last_seen=format_moment(worker.last_seen),
        enrolled_at=format_moment(worker.enrolled_at),
        reason=worker.reason,
        static=msgspec.json.decode(worker.static),
        dynamic=without_schemas(msgspec.json.decode(worker.dynamic)),
        metadata=without_schemas(metadata),
        indices=_show_indices(metadata, held),
    )


def _show_indices(
    metadata: Mapping[str, Any], held: Sequence[HeldIndices]
) -> dict[str, IndexedResource]:
    users: dict[str, dict[str, int]] = {}
    for row in held:
        for resource, names in read_indices(row.indices).items():
            users.setdefault(resource, {}).update(dict.fromkeys(names, row.job))
    has = offered(metadata)
    return {
        resource: IndexedResource(
            held=users.get(resource, {}),
            free=[n for n in has.get(resource, ()) if n not in users.get(resource, {})],
        )
        for resource in sorted({*has, *users})
    }


def _attempts(view: JobRecord) -> list[AttemptInfo]:
    names = dict(view.workers)
    numbers = ShownNumbers(view.attempts)
    shown = [_attempt(attempt, names, numbers) for attempt in view.attempts]
    facts, lease = view.facts, view.lease
    if lease is not None:
        shown.append(
            AttemptInfo(
                number=numbers(lease.attempt),
                worker=view.worker,
                state=str(STATE_BY_CODE[lease.state]),
                failure=None,
                assigned_at=shown_moment(lease.assigned_at),
                started_at=shown_moment(lease.started_at),
                finished_at=None,
                exit_code=None,
            )
        )
    elif facts.worker is not None:
        shown.append(
            AttemptInfo(
                number=numbers(facts.attempt),
                worker=view.worker,
                state=str(STATE_BY_CODE[facts.final_state]),
                failure=_failure(view.failure, view.message),
                assigned_at=shown_moment(view.assigned_at),
                started_at=shown_moment(view.started_at),
                finished_at=shown_moment(view.finished_at),
                exit_code=view.exit_code,
            )
        )
    return shown


def _attempt(attempt: Attempt, names: Mapping[int, str], numbers: ShownNumbers) -> AttemptInfo:
    return AttemptInfo(
        number=numbers(attempt.number),
        worker=names.get(attempt.worker),
        state=str(STATE_BY_CODE[attempt.state]),
        failure=_failure(attempt.failure, attempt.message),
        assigned_at=shown_moment(attempt.assigned_at),
        started_at=shown_moment(attempt.started_at),
        finished_at=shown_moment(attempt.finished_at),
        exit_code=attempt.exit_code,
        handed_back=attempt.is_handed_back,
    )


def _timeout_at(view: JobRecord, spec: JobSpec) -> int | None:
    lease = view.lease
    if lease is None or lease.started_at is None:
        return None
    ends = [lease.started_at + lease.timeout_ms] if lease.timeout_ms else []
    if spec.finish_before_ms is not None:
        ends.append(spec.finish_before_ms)
    if lease.idle_ms:
        ends.append((lease.activity_at or lease.started_at) + lease.idle_ms)
    return min(ends, default=None)


def _activity(view: JobRecord) -> int | None:
    return None if view.lease is None else view.lease.last_activity_at


def _failure(code: int, message: str | None, exception: bytes | None = None) -> FailureInfo | None:
    failure = FAILURE_BY_CODE[code]
    if failure is None:
        return None
    raised = None if exception is None else msgspec.json.decode(exception, type=ExceptionInfo)
    return FailureInfo(str(failure), message, raised)


def _log(row: LogRow | None) -> LogInfo:
    if row is None:
        return LogInfo("none", 0)
    return LogInfo(LogState(row.state).name.lower(), row.bytes)  # type: ignore[arg-type]


def _seconds(ms: int | None) -> float | None:
    return ms / 1000 if ms else None


def _json(body: bytes | None) -> Any:
    return None if body is None else msgspec.json.decode(body)


def show_question(row: StepRow) -> Question:
    """Renders an open question."""
    body = msgspec.json.decode(row.body or b"{}")
    return Question(
        job=row.job,
        key=row.key,
        namespace=row.namespace,
        question=body.get("question", ""),
        schema=body.get("schema"),
        asked_at=format_moment(row.asked_at),
        until=shown_moment(row.until),
    )


def show_steps(rows: Sequence[StepRow], attempts: Sequence[Attempt]) -> list[StepInfo]:
    """Renders the steps of a job, without their values."""
    numbers = ShownNumbers(attempts)
    return [_show_step(row, numbers) for row in rows]


def _show_step(row: StepRow, numbers: ShownNumbers) -> StepInfo:
    asked = msgspec.json.decode(row.body).get("question") if row.body else None
    return StepInfo(
        key=row.key,
        kind=StepKind(row.kind).name.lower(),
        state=StepState(row.state).name.lower(),
        attempt=numbers(row.attempt),
        asked_at=format_moment(row.asked_at),
        until=shown_moment(row.until),
        ended_at=shown_moment(row.ended_at),
        name=row.name,
        question=asked,
        actor=row.actor,
    )
