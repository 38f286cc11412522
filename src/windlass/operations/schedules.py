"""Schedules: workflows that start by a timetable."""

from windlass.domain.access.rights import Action, sees
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
from windlass.operations.plan_rendering import show_run, show_schedule, wanted_of
from windlass.operations.rights import Rights

routes = Routes("/api/v1/schedules", "schedules")


@routes.get("", needs=Action.READ_PLANS)
async def list_schedules(call: Call, namespace: str | None = None) -> ScheduleList:
    """Returns all schedules."""
    place = None if namespace is None else namespace_of(namespace, call.who, Action.READ_PLANS)
    rows = await call.services.schedules.all(place)
    seen = [row for row in rows if sees(call.who, row.namespace, Action.READ_PLANS)]
    return ScheduleList([show_schedule(row) for row in seen])


@routes.put("/{name:str}", needs=Action.CHANGE_PLANS)
async def put_schedule(
    call: Call, name: str, data: Body[ScheduleRequest], namespace: str | None = None
) -> SchedulePut:
    """Creates or changes a schedule."""
    Rights(call.services.engine).check_priority(data.priority, call.who, "priority")
    wanted = wanted_of(name, _changed(call, namespace), data)
    row, applied = await call.services.schedules.put(wanted, call.who.name)
    return SchedulePut(applied=applied, schedule=show_schedule(row))


@routes.get("/{name:str}", needs=Action.READ_PLANS)
async def show(call: Call, name: str, namespace: str | None = None) -> Schedule:
    """Returns one schedule with its newest runs."""
    place = namespace_of(namespace, call.who, Action.READ_PLANS)
    seen = await call.services.schedules.show(place, name)
    runs = [show_run(run, seen.workflows.get(run.workflow or 0)) for run in seen.runs]
    return show_schedule(seen.row, runs)


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
    return show_run(await call.services.schedules.run_now(place, name, call.who.name))


def _changed(call: Call, namespace: str | None) -> str:
    """Returns the namespace whose schedules the caller changes; raises `Forbidden`."""
    return namespace_of(namespace, call.who, Action.CHANGE_PLANS)
