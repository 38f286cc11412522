"""Templates: descriptions of workflows that are kept, and started with parameters."""

from typing import Annotated, Any, Final

import msgspec

from windlass.domain.access.rights import Action, sees
from windlass.domain.job.forms import canonical_window
from windlass.domain.schedules import TemplateRow
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import format_moment
from windlass.engine.schedules.templates import VERSION_LIMIT, PlanRequest, check_template_name
from windlass.messages.reactions import conceal_body
from windlass.messages.schedules import (
    StartReply,
    StartRequest,
    Template,
    TemplateList,
    TemplatePut,
    TemplateRequest,
)
from windlass.messages.workers import Changed
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.parse import namespace_of
from windlass.ports.loop_time import aside, give_way_if_long

VALUE_BYTES: Final = 10  # of a description, about
Version = Annotated[int, msgspec.Meta(ge=0, le=VERSION_LIMIT)]

routes = Routes("/api/v1/templates", "templates")


@routes.get("", needs=Action.READ_PLANS)
async def list_templates(call: Call, namespace: str | None = None) -> TemplateList:
    """Returns the newest version of each template."""
    place = None if namespace is None else namespace_of(namespace, call.who, Action.READ_PLANS)
    rows = await call.services.templates.all(place)
    seen = [row for row in rows if sees(call.who, row.namespace, Action.READ_PLANS)]
    return TemplateList([await _shown(row) for row in seen])


@routes.put("/{name:str}", needs=Action.CHANGE_PLANS)
async def put_template(
    call: Call, name: str, data: Body[TemplateRequest], namespace: str | None = None
) -> TemplatePut:
    """Creates a template or a new version of it, unless the newest one is the same."""
    place = namespace_of(namespace, call.who, Action.CHANGE_PLANS)
    done = await call.services.templates.put(place, name, data.body, call.who.name)
    return TemplatePut(name=name, namespace=place, version=done.version, applied=done.applied)


@routes.get("/{name:str}", needs=Action.READ_PLANS)
async def show(
    call: Call, name: str, version: Version = 0, namespace: str | None = None
) -> Template:
    """Returns one version of a template, by default the newest."""
    return await find(call, name, version, namespace)


@routes.post("/{name:str}/start", needs=Action.SUBMIT_JOBS, status=201)
async def start(
    call: Call, name: str, data: Body[StartRequest], namespace: str | None = None
) -> StartReply:
    """Starts a template: submits its workflow, with these parameters."""
    call.services.rights.check_priority(data.priority, call.who, "priority")
    order = PlanRequest(
        name=name,
        namespace=namespace_of(namespace, call.who, Action.SUBMIT_JOBS),
        actor=call.who.name,
        parameters=data.parameters,
        priority=data.priority,
        key=data.key,
        key_for=canonical_window(data.key_for, data.key, "key_for"),
    )
    wanted = _reference(name, data.version)
    done = await call.services.templates.start(wanted, order, data.submission_key)
    call.about = f"template `{name}`, workflow {done.workflow}"
    return done


@routes.delete("/{name:str}", needs=Action.CHANGE_PLANS)
async def remove(call: Call, name: str, namespace: str | None = None) -> Changed:
    """Deletes a template."""
    place = namespace_of(namespace, call.who, Action.CHANGE_PLANS)
    return Changed(await call.services.templates.remove(place, name, call.who.name))


async def find(call: Call, name: str, version: int, namespace: str | None) -> Template:
    """Returns one version of a template that the caller may see; 0 is the newest."""
    place = namespace_of(namespace, call.who, Action.READ_PLANS)
    return await _shown(await call.services.templates.find(place, _reference(name, version)))


async def _shown(row: TemplateRow) -> Template:
    """Renders a template while others have their turn."""
    await give_way_if_long()
    return await aside(len(row.body) // VALUE_BYTES, lambda: _show(row))


def _reference(name: str, version: int) -> str:
    """Returns the reference to a template version; 0 is the newest."""
    check_template_name(name)
    if not 0 <= version <= VERSION_LIMIT:
        raise InvalidInput("version", f"0 to {VERSION_LIMIT}", version)
    return f"{name}@{version}" if version else name


def _show(row: TemplateRow) -> Template:
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
