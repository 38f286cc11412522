"""Routes about workers. Their syncs are answered by a route of their own."""

from typing import Annotated, Any, NamedTuple

from litestar import Controller, Request, delete, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody, Parameter

from windlass.domain.access.roles import Identity, Role
from windlass.domain.job.job import NAME_LIMIT
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.values.errors import NotFound
from windlass.engine.fleet.workers import ANYONE, Enrolment
from windlass.ports.store import Tx
from windlass.server.errors import Forbidden, Unauthorized
from windlass.server.guard import IDENTITY, bearer, check_speaks_for, identity_of
from windlass.server.services import Services, UseDesk, UseServices
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
        if who is None and data.code is None and bearer(list(request.scope["headers"])):
            raise Unauthorized("this token is not valid: present another one, a code, or none")
        rights = await _rights(services, who, data)
        done = await services.engine.workers.enrol(
            Enrolment(
                name=data.name,
                slots=data.slots,
                metadata=data.metadata,
                takeover=data.takeover,
                replaces=data.replaces,
                approved=rights.approved,
                holder=rights.holder,
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
    async def list_workers(self, desk: UseDesk) -> WorkerList:
        """All workers."""
        return WorkerList(await desk.workers())

    @get("/{worker:int}", opt={"role": Role.VIEWER})
    async def show(self, worker: Id, desk: UseDesk) -> WorkerInfo:
        """One worker."""
        return await desk.worker(worker)

    @put("/{worker:int}/static", opt={"role": Role.OPERATOR, "fleet": True})
    async def set_static(
        self, request: Ask, worker: Id, data: JSONBody[dict[str, Any]], services: UseServices
    ) -> Changed:
        """Set the metadata that operators decide."""
        actor = identity_of(request).name
        return Changed(await services.engine.workers.set_metadata(worker, data, actor))

    @post("/{worker:int}/{action:str}", opt={"role": Role.OPERATOR, "fleet": True}, status_code=200)
    async def act(
        self, request: Ask, worker: Id, action: FromPath[str], services: UseServices
    ) -> Changed:
        """Drain, enable, disable or approve a worker."""
        status = _ACTIONS.get(action)
        if status is None:
            raise NotFound("action", action)
        actor = identity_of(request).name
        reason = None if status is WorkerStatus.ONLINE else f"{action} by {actor}"
        done = await services.engine.workers.set_status(worker, status, reason, actor)
        services.access.forget()
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
        return Changed(await services.engine.workers.leave(worker, data.incarnation))

    @delete("/{worker:int}", opt={"role": Role.OPERATOR, "fleet": True}, status_code=200)
    async def remove(
        self, request: Ask, worker: Id, services: UseServices, force: FromQuery[bool] = False
    ) -> Changed:
        """Forget a worker and revoke its tokens; refused while it is busy."""
        actor = identity_of(request).name
        done = await services.engine.workers.remove(worker, force, actor)
        services.access.forget()
        return Changed(done)


class _Rights(NamedTuple):
    """What an enrolment may do: get jobs at once, and speak for which worker."""

    approved: bool
    holder: int


async def _rights(services: Services, who: Identity | None, data: EnrolRequest) -> _Rights:
    """Returns what the token or the code allows.

    A worker's token is good for that worker only, and approves nothing: a worker that is
    pending or disabled stays so.
    """
    is_worker = who is not None and who.role is Role.WORKER
    if is_worker and who is not None and await _is_named(services, who.worker, data.name):
        return _Rights(False, who.worker)
    if data.code is not None:
        if not await services.access.use_code(data.code):
            raise Forbidden("this enrolment code is not valid, or was used already")
        return _Rights(True, ANYONE)
    if is_worker and not await _is_taken(services, data.name):
        raise Forbidden("a worker's token enrols that worker only: present a code for another")
    approved = who is not None and who.may_fleet(Role.OPERATOR)
    return _Rights(approved, ANYONE if approved else 0)


async def _is_named(services: Services, worker: int, name: str) -> bool:
    rows = await services.engine.store.read(lambda tx: tx.workers.lock([worker]))
    return worker in rows and rows[worker].name == name


async def _is_taken(services: Services, name: str) -> bool:
    async def read(tx: Tx) -> bool:
        return await tx.workers.lock_name(name) is not None

    return await services.engine.store.read(read)
