"""Routes for forms: the tasks with what they take, and a job before it is submitted."""

from windlass.domain.access.rights import Action
from windlass.server.http.binding import Body
from windlass.server.http.call import Call
from windlass.server.http.routes import COUNTED, Routes
from windlass.wire.fleet.tasks import Preview, PreviewRequest, TaskList
from windlass.wire.schedules import StartRequest

routes = Routes("/api/v1", "tasks")


@routes.get("/tasks", needs=Action.READ_FLEET)
async def list_tasks(call: Call) -> TaskList:
    """Returns the tasks that jobs can name, with the schemas of their arguments."""
    return await call.services.fleet.tasks.list(call.who)


@routes.post("/jobs/preview", needs=Action.SUBMIT_JOBS, audit=COUNTED)
async def preview(call: Call, data: Body[PreviewRequest]) -> Preview:
    """Checks a job without submitting it, and returns the texts that would submit it."""
    return await call.services.fleet.tasks.preview(data.job, call.who)


@routes.post("/templates/{name:str}/preview", needs=Action.SUBMIT_JOBS, audit=COUNTED)
async def preview_start(
    call: Call, name: str, data: Body[StartRequest], namespace: str | None = None
) -> Preview:
    """Checks the parameters of a template without starting it, and returns the texts for it."""
    planning = call.services.planning(call.who)
    return await call.services.fleet.tasks.preview_start(planning, name, data, namespace)
