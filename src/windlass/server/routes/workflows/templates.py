"""Routes about templates."""

from typing import Annotated

import msgspec

from windlass.domain.access.rights import Action
from windlass.engine.schedules.templates import VERSION_LIMIT
from windlass.server.http.binding import Body
from windlass.server.http.call import Call
from windlass.server.http.routes import Routes
from windlass.wire.schedules import (
    StartReply,
    StartRequest,
    Template,
    TemplateList,
    TemplatePut,
    TemplateRequest,
)
from windlass.wire.workers import Changed

Version = Annotated[int, msgspec.Meta(ge=0, le=VERSION_LIMIT)]

routes = Routes("/api/v1/templates", "templates")


@routes.get("", needs=Action.READ_PLANS)
async def list_templates(call: Call, namespace: str | None = None) -> TemplateList:
    """Returns the newest version of each template."""
    return TemplateList(await call.services.planning(call.who).templates(namespace))


@routes.put("/{name:str}", needs=Action.CHANGE_PLANS)
async def put_template(
    call: Call, name: str, data: Body[TemplateRequest], namespace: str | None = None
) -> TemplatePut:
    """Creates a template or a new version of it, unless the newest one is the same."""
    return await call.services.planning(call.who).put_template(name, data, namespace)


@routes.get("/{name:str}", needs=Action.READ_PLANS)
async def show(
    call: Call, name: str, version: Version = 0, namespace: str | None = None
) -> Template:
    """Returns one version of a template, by default the newest."""
    return await call.services.planning(call.who).template(name, version, namespace)


@routes.post("/{name:str}/start", needs=Action.SUBMIT_JOBS, status=201)
async def start(
    call: Call, name: str, data: Body[StartRequest], namespace: str | None = None
) -> StartReply:
    """Starts a template: submits its workflow, with these parameters."""
    started = await call.services.planning(call.who).start_template(name, data, namespace)
    call.about = f"template `{name}`, workflow {started.workflow}"
    return started


@routes.delete("/{name:str}", needs=Action.CHANGE_PLANS)
async def remove(call: Call, name: str, namespace: str | None = None) -> Changed:
    """Deletes a template."""
    return Changed(await call.services.planning(call.who).remove_template(name, namespace))
