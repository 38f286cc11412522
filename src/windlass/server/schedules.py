"""Routes about schedules, and about what followed the ends of workflows."""

from typing import Annotated, Any

from litestar import Controller, Request, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody, Parameter

from windlass.domain.roles import Role
from windlass.server.guard import identity_of
from windlass.server.services import UseQueries, UseServices
from windlass.wire.schedules import (
    ReactionList,
    Schedule,
    ScheduleList,
    SchedulePut,
    ScheduleRequest,
    ScheduleRun,
)
from windlass.wire.workers import Changed

Ask = Request[Any, Any, Any]
Id = Annotated[int, Parameter(ge=1, le=2**62)]
Space = FromQuery[str | None]


class ScheduleRoutes(Controller):
    """Put, look at, pause, run and remove schedules."""

    path = "/api/v1/schedules"
    tags = ("schedules",)

    @get("/", opt={"role": Role.VIEWER})
    async def list_schedules(
        self, request: Ask, services: UseServices, namespace: Space = None
    ) -> ScheduleList:
        """All schedules."""
        queries = services.planning(identity_of(request))
        return ScheduleList(await queries.schedules(namespace))

    @put("/{name:str}", opt={"role": Role.OPERATOR})
    async def put_schedule(
        self,
        request: Ask,
        name: FromPath[str],
        data: JSONBody[ScheduleRequest],
        services: UseServices,
        namespace: Space = None,
    ) -> SchedulePut:
        """Make or change a schedule."""
        queries = services.planning(identity_of(request))
        return await queries.put_schedule(name, data, namespace)

    @get("/{name:str}", opt={"role": Role.VIEWER})
    async def show(
        self, request: Ask, name: FromPath[str], services: UseServices, namespace: Space = None
    ) -> Schedule:
        """One schedule with its newest runs."""
        return await services.planning(identity_of(request)).schedule(name, namespace)

    @delete("/{name:str}", opt={"role": Role.OPERATOR}, status_code=200)
    async def remove(
        self, request: Ask, name: FromPath[str], services: UseServices, namespace: Space = None
    ) -> Changed:
        """Forget a schedule; what it started goes on."""
        queries = services.planning(identity_of(request))
        return Changed(await queries.remove_schedule(name, namespace))

    @post("/{name:str}/pause", opt={"role": Role.OPERATOR}, status_code=200)
    async def pause(
        self, request: Ask, name: FromPath[str], services: UseServices, namespace: Space = None
    ) -> Changed:
        """Let the slots of a schedule pass."""
        queries = services.planning(identity_of(request))
        return Changed(await queries.pause_schedule(name, True, namespace))

    @post("/{name:str}/resume", opt={"role": Role.OPERATOR}, status_code=200)
    async def resume(
        self, request: Ask, name: FromPath[str], services: UseServices, namespace: Space = None
    ) -> Changed:
        """Go on with the slots to come."""
        queries = services.planning(identity_of(request))
        return Changed(await queries.pause_schedule(name, False, namespace))

    @post("/{name:str}/run", opt={"role": Role.OPERATOR}, status_code=200)
    async def run_now(
        self, request: Ask, name: FromPath[str], services: UseServices, namespace: Space = None
    ) -> ScheduleRun:
        """Run a schedule now, beside its slots."""
        return await services.planning(identity_of(request)).run_schedule(name, namespace)


class ReactionRoutes(Controller):
    """Look at what followed the ends of workflows."""

    path = "/api/v1/workflows/{workflow:int}/reactions"
    tags = ("workflows",)

    @get("/", opt={"role": Role.VIEWER})
    async def list_reactions(
        self, request: Ask, workflow: Id, queries: UseQueries, services: UseServices
    ) -> ReactionList:
        """The follow-ups, webhooks and retries of a workflow, and what became of them."""
        who = identity_of(request)
        await queries.check_workflows([workflow], who)
        return ReactionList(await services.planning(who).reactions(workflow))
