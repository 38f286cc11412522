"""Schedules: workflows that start by a timetable."""

from itertools import islice
from typing import Any, Final

import msgspec

from windlass.domain.access.rights import Action, sees
from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.rows.records import WorkflowRow
from windlass.domain.schedules import RunRow, RunState, ScheduleRow, timetable_of, when_in_words
from windlass.domain.values.quantities import (
    format_duration,
    format_moment,
    parse_duration_ms,
    shown_moment,
)
from windlass.engine.schedules.runs import RunTarget, starts_of
from windlass.engine.schedules.schedules import ScheduleInput
from windlass.messages.schedules import (
    Schedule,
    ScheduleList,
    SchedulePut,
    ScheduleRequest,
    ScheduleRun,
)
from windlass.messages.workers import Changed
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.parse import namespace_of

COMING: Final = 5  # slots that are shown

routes = Routes("/api/v1/schedules", "schedules")


@routes.get("", needs=Action.READ_PLANS)
async def list_schedules(call: Call, namespace: str | None = None) -> ScheduleList:
    """Returns all schedules."""
    place = None if namespace is None else namespace_of(namespace, call.who, Action.READ_PLANS)
    rows = await call.services.schedules.all(place)
    seen = [row for row in rows if sees(call.who, row.namespace, Action.READ_PLANS)]
    return ScheduleList([_show(row) for row in seen])


@routes.put("/{name:str}", needs=Action.CHANGE_PLANS)
async def put_schedule(
    call: Call, name: str, data: Body[ScheduleRequest], namespace: str | None = None
) -> SchedulePut:
    """Creates or changes a schedule."""
    call.services.rights.check_priority(data.priority, call.who, "priority")
    wanted = _parse(name, _changed(call, namespace), data)
    row, applied = await call.services.schedules.put(wanted, call.who.name)
    return SchedulePut(applied=applied, schedule=_show(row))


@routes.get("/{name:str}", needs=Action.READ_PLANS)
async def show(call: Call, name: str, namespace: str | None = None) -> Schedule:
    """Returns one schedule with its newest runs."""
    place = namespace_of(namespace, call.who, Action.READ_PLANS)
    seen = await call.services.schedules.show(place, name)
    runs = [_show_run(run, seen.workflows.get(run.workflow or 0)) for run in seen.runs]
    return _show(seen.row, runs)


@routes.delete("/{name:str}", needs=Action.CHANGE_PLANS)
async def remove(call: Call, name: str, namespace: str | None = None) -> Changed:
    """Deletes a schedule; the workflows that it started go on."""
    place = _changed(call, namespace)
    return Changed(await call.services.schedules.remove(place, name, call.who.name))


@routes.post("/{name:str}/pause", needs=Action.CHANGE_PLANS)
async def pause(call: Call, name: str, namespace: str | None = None) -> Changed:
    """Pauses a schedule: its slots pass without a run."""
    place = _changed(call, namespace)
    return Changed(await call.services.schedules.set_paused(place, name, True, call.who.name))


@routes.post("/{name:str}/resume", needs=Action.CHANGE_PLANS)
async def resume(call: Call, name: str, namespace: str | None = None) -> Changed:
    """Resumes a schedule with its next slot."""
    place = _changed(call, namespace)
    return Changed(await call.services.schedules.set_paused(place, name, False, call.who.name))


@routes.post("/{name:str}/run", needs=Action.CHANGE_PLANS)
async def run_now(call: Call, name: str, namespace: str | None = None) -> ScheduleRun:
    """Runs a schedule now, in addition to its slots."""
    place = _changed(call, namespace)
    return _show_run(await call.services.schedules.run_now(place, name, call.who.name))


def _changed(call: Call, namespace: str | None) -> str:
    """Returns the namespace whose schedules the caller changes; raises `Forbidden`."""
    return namespace_of(namespace, call.who, Action.CHANGE_PLANS)


def _parse(name: str, namespace: str, data: ScheduleRequest) -> ScheduleInput:
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


def _show(row: ScheduleRow, runs: list[ScheduleRun] | None = None) -> Schedule:
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
        next_at=None if row.paused else shown_moment(row.next_at),
        last_slot=shown_moment(row.last_slot),
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


def _show_run(run: RunRow, workflow: WorkflowRow | None = None) -> ScheduleRun:
    """Renders one run of a schedule, and how its workflow is doing."""
    return ScheduleRun(
        id=run.id,
        slot=shown_moment(run.slot),
        state=RunState(run.state).name.lower(),
        workflow=run.workflow,
        created_at=format_moment(run.created_at),
        changed_at=format_moment(run.changed_at),
        reason=run.reason,
        actor=run.actor,
        workflow_state=(None if workflow is None else WorkflowState(workflow.state).name.lower()),
    )
