"""Routes for forms: the tasks with what they take, and a job before it is submitted."""

from windlass.domain.access.rights import Action
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import COUNTED, Routes
from windlass.operations.templates import find
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


@routes.post("/templates/{name:str}/preview", needs=Action.SUBMIT_JOBS, audit=COUNTED, costly=True)
async def preview_start(
    call: Call, name: str, data: Body[StartRequest], namespace: str | None = None
) -> Preview:
    """Checks the parameters of a template without starting it, and returns the texts for it."""
    template = await find(call, name, data.version, namespace)
    return await call.services.fleet.tasks.preview_start(template, data)
