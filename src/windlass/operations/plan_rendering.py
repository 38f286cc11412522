"""Renders templates, schedules and reactions, and parses schedules."""

from itertools import islice
from typing import Any, Final

import msgspec

from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.rows.records import WorkflowRow
from windlass.domain.schedules import (
    ReactionKind,
    ReactionRow,
    ReactionState,
    RunRow,
    RunState,
    ScheduleRow,
    TemplateRow,
    Trigger,
    timetable_of,
    when_in_words,
)
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_duration, format_moment, parse_duration_ms
from windlass.engine.schedules.runs import RunTarget, starts_of
from windlass.engine.schedules.schedules import ScheduleInput
from windlass.engine.schedules.templates import VERSION_LIMIT, check_template_name
from windlass.messages.reactions import conceal_body
from windlass.messages.schedules import (
    ReactionInfo,
    Schedule,
    ScheduleRequest,
    ScheduleRun,
    Template,
)

COMING: Final = 5  # slots that are shown


def reference(name: str, version: int) -> str:
    """Returns the reference to a template version; 0 is the newest."""
    check_template_name(name)
    if not 0 <= version <= VERSION_LIMIT:
        raise InvalidInput("version", f"0 to {VERSION_LIMIT}", version)
    return f"{name}@{version}" if version else name


def show_template(row: TemplateRow) -> Template:
    """Renders a template without its secrets."""
    body = msgspec.json.decode(row.body, type=dict[str, Any])
    return Template(
        name=row.name,
        namespace=row.namespace,
        version=row.version,
        priority=body.get("priority"),
        parameters=body.get("parameters") or {},
        body=conceal_body(body),
        created_at=format_moment(row.created_at),
        created_by=row.created_by,
    )


def wanted_of(name: str, namespace: str, data: ScheduleRequest) -> ScheduleInput:
    """Parses a schedule."""
    jobs: list[dict[str, Any]] = msgspec.to_builtins(data.jobs)
    starts = RunTarget(
        template=data.template, parameters=data.parameters, jobs=jobs, priority=data.priority
    )
    every = None if data.every is None else parse_duration_ms(data.every, "every")
    return ScheduleInput(
        namespace, name, data.cron, every, data.zone, data.overlap, data.catch_up,
        data.catch_up_limit, data.paused, starts,
    )  # fmt: skip


def show_schedule(row: ScheduleRow, runs: list[ScheduleRun] | None = None) -> Schedule:
    """Renders a schedule with what it starts."""
    starts = starts_of(row.body)
    return Schedule(
        id=row.id,
        name=row.name,
        namespace=row.namespace,
        cron=row.cron,
        every=None if row.every_ms is None else format_duration(row.every_ms),
        zone=row.zone,
        overlap=row.overlap,
        catch_up=row.catch_up,
        catch_up_limit=row.catch_up_limit,
        paused=bool(row.paused),
        next_at=None if row.paused else _moment(row.next_at),
        last_slot=_moment(row.last_slot),
        template=starts.template,
        parameters=starts.parameters,
        jobs=starts.jobs,
        priority=starts.priority,
        created_at=format_moment(row.created_at),
        created_by=row.created_by,
        runs=runs or [],
        words=when_in_words(row),
        coming=[] if runs is None else _coming(row),
    )


def _coming(row: ScheduleRow) -> list[str]:
    """Returns the next slots; none while it is paused."""
    if row.paused or not row.next_at:
        return []
    later = islice(timetable_of(row).slots(row.next_at), COMING - 1)
    return [format_moment(slot) for slot in (row.next_at, *later)]


def show_run(run: RunRow, workflow: WorkflowRow | None = None) -> ScheduleRun:
    """Renders one run of a schedule, and how its workflow is doing."""
    return ScheduleRun(
        id=run.id,
        slot=_moment(run.slot),
        state=RunState(run.state).name.lower(),
        workflow=run.workflow,
        created_at=format_moment(run.created_at),
        changed_at=format_moment(run.changed_at),
        reason=run.reason,
        actor=run.actor,
        workflow_state=(None if workflow is None else WorkflowState(workflow.state).name.lower()),
    )


def show_reaction(row: ReactionRow) -> ReactionInfo:
    """Renders one reaction and its outcome."""
    pending = row.state == ReactionState.PENDING
    return ReactionInfo(
        id=row.id,
        run=row.run,
        on=Trigger(row.trigger).name.lower(),
        kind=ReactionKind(row.kind).name.lower(),
        state=ReactionState(row.state).name.lower(),
        tries=row.tries,
        next_at=_moment(row.next_at) if pending else None,
        created_at=format_moment(row.created_at),
        finished_at=_moment(row.finished_at),
        result=row.result,
        message=row.message,
    )


def _moment(ms: int | None) -> str | None:
    return format_moment(ms) if ms else None
