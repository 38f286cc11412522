"""Routes about workers. Their syncs are answered by a route of their own."""

from typing import Annotated, Any

from litestar import Controller, Request, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody, Parameter

from windlass.api.errors import Forbidden
from windlass.domain.errors import NotFound
from windlass.domain.job import NAME_LIMIT
from windlass.domain.roles import Identity, Role
from windlass.domain.workers import WorkerStatus
from windlass.engine.workers import ANYONE, Enrolment
from windlass.server.guard import IDENTITY, identity_of
from windlass.server.services import Services, UseQueries, UseServices
from windlass.server.sync_route import check_speaks_for
from windlass.wire.sync import SyncReply, SyncRequest
from windlass.wire.workers import (
    Changed,
    EnrolReply,
    EnrolRequest,
    LeaveRequest,
    WorkerInfo,
    WorkerList,
)

Ask = Request[Any, Any, Any]
Id = Annotated[int, Parameter(ge=1, le=2**62)]

_ACTIONS = {
    "drain": WorkerStatus.DRAINING,
    "enable": WorkerStatus.ONLINE,
    "disable": WorkerStatus.DISABLED,
    "approve": WorkerStatus.ONLINE,
}


class WorkerRoutes(Controller):
    """Enrol, look at and manage workers."""

    path = "/api/v1/workers"
    tags = ("workers",)

    @post("/enrol", opt={"role": None}, status_code=200)
    async def enrol(
        self, request: Ask, data: JSONBody[EnrolRequest], services: UseServices
    ) -> EnrolReply:
        """Begin an incarnation, by code, by token, or to wait for approval."""
        who: Identity | None = request.scope["state"].get(IDENTITY)
        approved = await _approved(services, who, data)
        done = await services.engine.enrol(
            Enrolment(
                name=data.name,
                slots=data.slots,
                metadata=data.metadata,
                takeover=data.takeover,
                replaces=data.replaces,
                approved=approved,
                holder=_holder(who, approved),
            )
        )
        token = None
        if who is None or who.worker != done.worker:
            created = await services.access.create_token(
                f"worker {data.name}"[:NAME_LIMIT], Role.WORKER, worker=done.worker
            )
            token = created.secret
        config = services.engine.config
        return EnrolReply(
            worker=done.worker,
            incarnation=done.incarnation,
            status=WorkerStatus(done.status).name.lower(),
            token=token,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            lease_ms=config.heartbeat_timeout_ms,
            term_grace_ms=config.term_grace_ms,
            log_limit=config.log_limit,
            epoch=done.epoch,
        )

    @get("/", opt={"role": Role.VIEWER})
    async def list_workers(self, queries: UseQueries) -> WorkerList:
        """All workers."""
        return WorkerList(await queries.workers())

    @get("/{worker:int}", opt={"role": Role.VIEWER})
    async def show(self, worker: Id, queries: UseQueries) -> WorkerInfo:
        """One worker."""
        return await queries.worker(worker)

    @put("/{worker:int}/static", opt={"role": Role.OPERATOR})
    async def set_static(
        self, request: Ask, worker: Id, data: JSONBody[dict[str, Any]], services: UseServices
    ) -> Changed:
        """Set the metadata that operators decide."""
        actor = identity_of(request).name
        return Changed(await services.engine.set_static_metadata(worker, data, actor))

    @post("/{worker:int}/{action:str}", opt={"role": Role.OPERATOR}, status_code=200)
    async def act(
        self, request: Ask, worker: Id, action: FromPath[str], services: UseServices
    ) -> Changed:
        """Drain, enable, disable or approve a worker."""
        status = _ACTIONS.get(action)
        if status is None:
            raise NotFound("action", action)
        actor = identity_of(request).name
        reason = None if status is WorkerStatus.ONLINE else f"{action} by {actor}"
        done = await services.engine.set_worker_status(worker, status, reason, actor)
        return Changed(done)

    @post("/{worker:int}/sync", opt={"role": Role.WORKER}, status_code=200)
    async def sync(
        self, request: Ask, worker: Id, data: JSONBody[SyncRequest], services: UseServices
    ) -> SyncReply:
        """Heartbeat, starts, results, claims and cancellations, in one call of the worker itself.

        This route describes it; calls are answered by the faster one of `sync_route.py`.
        """
        check_speaks_for(identity_of(request), worker)
        return await services.engine.sync(worker, data)

    @post("/{worker:int}/leave", opt={"role": Role.WORKER}, status_code=200)
    async def leave(
        self, request: Ask, worker: Id, data: JSONBody[LeaveRequest], services: UseServices
    ) -> Changed:
        """The worker's process ends: nobody needs to wait for its silence."""
        check_speaks_for(identity_of(request), worker)
        return Changed(await services.engine.leave(worker, data.incarnation))

    @delete("/{worker:int}", opt={"role": Role.OPERATOR}, status_code=200)
    async def remove(
        self, request: Ask, worker: Id, services: UseServices, force: FromQuery[bool] = False
    ) -> Changed:
        """Forget a worker; refused while it is busy."""
        actor = identity_of(request).name
        return Changed(await services.engine.remove_worker(worker, force, actor))


async def _approved(services: Services, who: Identity | None, data: EnrolRequest) -> bool:
    """Whether the worker may have jobs at once, or waits for an operator."""
    if data.code is not None:
        if not await services.access.use_code(data.code):
            raise Forbidden("this enrolment code is not valid, or was used already")
        return True
    return who is not None and (who.role is Role.WORKER or who.may(Role.OPERATOR))


def _holder(who: Identity | None, approved: bool) -> int:
    """For which worker the asker may speak."""
    if who is not None and who.role is Role.WORKER:
        return who.worker
    return ANYONE if approved else 0
