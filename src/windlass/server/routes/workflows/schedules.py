"""Routes about schedules."""

from windlass.domain.access.rights import Action
from windlass.server.http.binding import Body
from windlass.server.http.call import Call
from windlass.server.http.routes import Routes
from windlass.wire.schedules import (
    Schedule,
    ScheduleList,
    SchedulePut,
    ScheduleRequest,
    ScheduleRun,
)
from windlass.wire.workers import Changed

routes = Routes("/api/v1/schedules", "schedules")


@routes.get("", needs=Action.READ_PLANS)
async def list_schedules(call: Call, namespace: str | None = None) -> ScheduleList:
    """Returns all schedules."""
    return ScheduleList(await call.services.planning(call.who).schedules(namespace))


@routes.put("/{name:str}", needs=Action.CHANGE_PLANS)
async def put_schedule(
    call: Call, name: str, data: Body[ScheduleRequest], namespace: str | None = None
) -> SchedulePut:
    """Creates or changes a schedule."""
    return await call.services.planning(call.who).put_schedule(name, data, namespace)


@routes.get("/{name:str}", needs=Action.READ_PLANS)
async def show(call: Call, name: str, namespace: str | None = None) -> Schedule:
    """Returns one schedule with its newest runs."""
    return await call.services.planning(call.who).schedule(name, namespace)


@routes.delete("/{name:str}", needs=Action.CHANGE_PLANS)
async def remove(call: Call, name: str, namespace: str | None = None) -> Changed:
    """Deletes a schedule; the workflows that it started go on."""
    return Changed(await call.services.planning(call.who).remove_schedule(name, namespace))


@routes.post("/{name:str}/pause", needs=Action.CHANGE_PLANS)
async def pause(call: Call, name: str, namespace: str | None = None) -> Changed:
    """Pauses a schedule: its slots pass without a run."""
    return Changed(await call.services.planning(call.who).pause_schedule(name, True, namespace))


@routes.post("/{name:str}/resume", needs=Action.CHANGE_PLANS)
async def resume(call: Call, name: str, namespace: str | None = None) -> Changed:
    """Resumes a schedule with its next slot."""
    return Changed(await call.services.planning(call.who).pause_schedule(name, False, namespace))


@routes.post("/{name:str}/run", needs=Action.CHANGE_PLANS)
async def run_now(call: Call, name: str, namespace: str | None = None) -> ScheduleRun:
    """Runs a schedule now, in addition to its slots."""
    return await call.services.planning(call.who).run_schedule(name, namespace)
