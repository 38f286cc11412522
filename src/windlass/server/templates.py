"""Routes about templates."""

from typing import Annotated, Any

from litestar import Controller, Request, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody, Parameter

from windlass.domain.roles import Role
from windlass.engine.templates import VERSION_LIMIT
from windlass.server.guard import identity_of
from windlass.server.services import UseServices
from windlass.wire.schedules import (
    StartReply,
    StartRequest,
    Template,
    TemplateList,
    TemplatePut,
    TemplateRequest,
)
from windlass.wire.workers import Changed

Ask = Request[Any, Any, Any]
Version = Annotated[int, Parameter(ge=0, le=VERSION_LIMIT)]
Space = FromQuery[str | None]


class TemplateRoutes(Controller):
    """Put, look at, start and remove templates."""

    path = "/api/v1/templates"
    tags = ("templates",)

    @get("/", opt={"role": Role.VIEWER})
    async def list_templates(
        self, request: Ask, services: UseServices, namespace: Space = None
    ) -> TemplateList:
        """The newest version of each template."""
        queries = services.planning(identity_of(request))
        return TemplateList(await queries.templates(namespace))

    @put("/{name:str}", opt={"role": Role.OPERATOR})
    async def put_template(
        self,
        request: Ask,
        name: FromPath[str],
        data: JSONBody[TemplateRequest],
        services: UseServices,
        namespace: Space = None,
    ) -> TemplatePut:
        """Make a new version, unless the newest one is the same."""
        queries = services.planning(identity_of(request))
        return await queries.put_template(name, data, namespace)

    @get("/{name:str}", opt={"role": Role.VIEWER})
    async def show(
        self,
        request: Ask,
        name: FromPath[str],
        services: UseServices,
        version: Version = 0,
        namespace: Space = None,
    ) -> Template:
        """One version of a template, by default the newest."""
        queries = services.planning(identity_of(request))
        return await queries.template(name, version, namespace)

    @post("/{name:str}/start", opt={"role": Role.SUBMITTER})
    async def start(
        self,
        request: Ask,
        name: FromPath[str],
        data: JSONBody[StartRequest],
        services: UseServices,
        namespace: Space = None,
    ) -> StartReply:
        """Submit the workflow that a template describes, with these parameters."""
        queries = services.planning(identity_of(request))
        return await queries.start_template(name, data, namespace)

    @delete("/{name:str}", opt={"role": Role.OPERATOR}, status_code=200)
    async def remove(
        self, request: Ask, name: FromPath[str], services: UseServices, namespace: Space = None
    ) -> Changed:
        """Let a template be started no more."""
        queries = services.planning(identity_of(request))
        return Changed(await queries.remove_template(name, namespace))
