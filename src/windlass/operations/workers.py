"""Routes about workers, and the ones that workers themselves call."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.access.rights import (
    FLEET,
    PENDING,
    Action,
    Identity,
    Resource,
    Role,
    may,
    sees,
)
from windlass.domain.access.secrets import EVERYONE, KEY_START
from windlass.domain.access.tokens import check_own_token
from windlass.domain.matching.functions import without_functions
from windlass.domain.matching.shapes import NAMESPACES
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.views import WorkerView
from windlass.domain.values.errors import Conflict, NotFound
from windlass.domain.values.ids import Id, NameOrId, WorkerId
from windlass.engine.access import digest_of
from windlass.engine.fleet.enrolment import ANYONE, CODE_REFUSED, Enrolment
from windlass.engine.fleet.workers import find_worker
from windlass.messages.sync import EnrolReply, EnrolRequest, LeaveRequest, SyncReply, SyncRequest
from windlass.messages.workers import Changed, WorkerInfo, WorkerList
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.errors import Forbidden, Unauthorized
from windlass.operations.dispatch.routes import Routes
from windlass.operations.past import past_workers
from windlass.operations.render import show_worker
from windlass.operations.rights import authorize
from windlass.operations.services import Services
from windlass.store.sql.placement import HeldIndices
from windlass.store.sql.transaction import ReadTx

SYNC_LIMIT: Final = 64 * 1024 * 1024

_ACTIONS: Final = {
    "drain": WorkerStatus.DRAINING,
    "enable": WorkerStatus.ONLINE,
    "disable": WorkerStatus.DISABLED,
    "approve": WorkerStatus.ONLINE,
}

routes = Routes("/api/v1/workers", "workers")


@routes.post("/enrol", needs=Action.ENROL)
async def enrol(call: Call, data: Body[EnrolRequest]) -> EnrolReply:
    """Enrols a worker by code or by token, or lets it wait for approval."""
    services = call.services
    call.check_certificate(data.name)
    who = await _enrolling(call, data)
    rights = await _rights(services, who, data)
    session = services.access.make_token()
    try:
        done = await services.engine.workers.enrol(
            Enrolment(
                name=data.name,
                slots=data.slots,
                metadata=data.metadata,
                takeover=data.takeover,
                replaces=data.replaces,
                approved=rights.approved,
                holder=rights.holder,
                proven=rights.proven,
                code=digest_of(data.code) if rights.by_code and data.code else None,
                secret=None if data.token is None else digest_of(data.token),
                session=digest_of(session),
                source=call.source,
                stopped=data.stopped,
            )
        )
    except Conflict as error:
        if error.code == CODE_REFUSED:
            raise Forbidden(error.message) from None
        raise
    config = services.engine.config
    reply = done.reply(config, config.log_limit, session)
    call.about = f"worker {done.worker} `{data.name}`, {reply.status}"
    return reply


@routes.get("", needs=Action.READ_FLEET)
async def list_workers(call: Call, as_of: str | None = None) -> WorkerList:
    """Returns all workers; with `as_of` as they were at a time, by the events about them."""
    engine = call.services.engine
    found = await (engine.store.read(_workers) if as_of is None else past_workers(engine, as_of))
    return WorkerList([_as_seen(one, call.who) for one in found])


async def _workers(tx: ReadTx) -> list[WorkerInfo]:
    views = await tx.views.workers_with_counts()
    held: dict[int, list[HeldIndices]] = {}
    for row in await tx.placement.indices([view.worker.id for view in views]):
        held.setdefault(row.worker, []).append(row)
    return [show_worker(view, held.get(view.worker.id, ())) for view in views]


@routes.get("/{worker:str}", needs=Action.READ_FLEET)
async def show(call: Call, worker: NameOrId) -> WorkerInfo:
    """Returns one worker."""

    async def read(tx: ReadTx) -> WorkerInfo:
        row = await find_worker(tx, worker)
        view = WorkerView(row, (await tx.leases.count([row.id])).get(row.id, 0))
        return show_worker(view, await tx.placement.indices([row.id]))

    return _as_seen(await call.services.engine.store.read(read), call.who)


def _as_seen(info: WorkerInfo, who: Identity) -> WorkerInfo:
    """Leaves out of a worker's metadata what the caller may not see."""
    if may(who, Action.READ_FLEET, FLEET):
        return info
    seen = partial(visible_metadata, who=who)
    return msgspec.structs.replace(
        info, static=seen(info.static), dynamic=seen(info.dynamic), metadata=seen(info.metadata)
    )


def visible_metadata(metadata: Mapping[str, Any], who: Identity) -> dict[str, Any]:
    """Leaves out which other namespaces a worker serves, has secrets for and knows code of."""
    kept = {key: _seen_names(key, value, who) for key, value in metadata.items()}
    return without_functions({key: value for key, value in kept.items() if value != []})


def _seen_names(key: str, value: Any, who: Identity) -> Any:
    if key != NAMESPACES and not key.startswith(KEY_START):
        return value
    names = value if isinstance(value, list) else [value]
    return [name for name in names if name == EVERYONE or sees(who, str(name), Action.READ_FLEET)]


@routes.put("/{worker:str}/static", needs=Action.MANAGE_WORKERS)
async def set_static(call: Call, worker: NameOrId, data: Body[dict[str, Any]]) -> Changed:
    """Sets the metadata of a worker that operators decide."""
    number = await _named(call, worker)
    done = await call.services.engine.workers.set_metadata(number, data, call.who.name)
    return Changed(done)


@routes.patch("/{worker:str}/static", needs=Action.MANAGE_WORKERS)
async def change_static(call: Call, worker: NameOrId, data: Body[dict[str, Any]]) -> Changed:
    """Changes single entries of the metadata that operators decide; null removes one."""
    number = await _named(call, worker)
    done = await call.services.engine.workers.change_metadata(number, data, call.who.name)
    return Changed(done)


@routes.post("/{worker:str}/{action:str}", needs=Action.MANAGE_WORKERS)
async def act(call: Call, worker: NameOrId, action: str) -> Changed:
    """Drains, enables, disables or approves a worker."""
    status = _ACTIONS.get(action)
    if status is None:
        raise NotFound("action", action)
    number = await _named(call, worker)
    actor = call.who.name
    reason = None if status is WorkerStatus.ONLINE else f"{action} by {actor}"
    done = await call.services.engine.workers.set_status(number, status, reason, actor)
    call.services.access.forget()
    return Changed(done)


@routes.post("/{worker:int}/sync", needs=Action.SYNC, body_limit=SYNC_LIMIT)
async def sync(call: Call, worker: Id, data: Body[SyncRequest]) -> SyncReply:
    """Takes a worker's heartbeat and reports, and returns its new jobs and cancellations.

    A connection that closes ends the wait for jobs.
    """
    authorize(call.who, Action.SYNC, Resource(worker=worker, incarnation=data.incarnation))
    syncing = call.services.engine.sync(worker, data)
    return await (call.unless_gone(syncing) if data.wait_ms else syncing)


@routes.post("/{worker:int}/leave", needs=Action.LEAVE)
async def leave(call: Call, worker: Id, data: Body[LeaveRequest]) -> Changed:
    """Ends a worker's incarnation at once, without waiting for its heartbeat to expire."""
    authorize(call.who, Action.LEAVE, Resource(worker=worker, incarnation=data.incarnation))
    return Changed(await call.services.engine.workers.leave(worker, data.incarnation))


@routes.delete("/{worker:str}", needs=Action.MANAGE_WORKERS)
async def remove(call: Call, worker: NameOrId, force: bool = False) -> Changed:
    """Deletes a worker and revokes its tokens; refused while it is busy."""
    number = await _named(call, worker)
    done = await call.services.engine.workers.remove(number, force, call.who.name)
    call.services.access.forget()
    return Changed(done)


async def _named(call: Call, worker: NameOrId) -> WorkerId:
    """Returns a worker's id; tells the audit log its name, which is gone once it is removed."""
    row = await call.services.engine.store.read(lambda tx: find_worker(tx, worker))
    call.about = f"worker {row.id} `{row.name}`"
    return row.id


async def _enrolling(call: Call, data: EnrolRequest) -> Identity | None:
    """Returns who enrols: a worker whose last answer was lost is known by the secret it sent."""
    if data.token is not None:
        check_own_token(data.token)
        known = await call.services.access.identify(data.token, 0)
        if known is not None and known.role is Role.WORKER:
            return known
    who = await call.identify()
    if who is None and data.code is None and call.has_token:
        raise Unauthorized("this token is not valid: use another one, a code, or none")
    return who


class _Rights(NamedTuple):
    """What an enrolment may do: get jobs at once, speak for which worker, and end a living one."""

    approved: bool
    holder: int
    proven: bool
    by_code: bool = False


async def _rights(services: Services, who: Identity | None, data: EnrolRequest) -> _Rights:
    """Returns what the token or the code allows.

    A worker's token is good for that worker only, and approves nothing: a worker that is pending
    or disabled stays so. A code approves, but only one that says so ends a living worker.
    """
    is_worker = who is not None and who.role is Role.WORKER
    if is_worker and who is not None and await _is_named(services, who.worker, data.name):
        by_code = data.code is not None and who.shut_out == PENDING
        return _Rights(by_code, who.worker, proven=True, by_code=by_code)
    if data.code is not None:
        return _Rights(True, ANYONE, proven=False, by_code=True)
    if is_worker and not await _is_taken(services, data.name):
        raise Forbidden("a worker's token enrols that worker only: use a code for another worker")
    approved = may(who, Action.MANAGE_WORKERS)
    return _Rights(approved, ANYONE if approved else 0, proven=approved)


async def _is_named(services: Services, worker: int, name: str) -> bool:
    rows = await services.engine.store.read(lambda tx: tx.workers.read([worker]))
    return worker in rows and rows[worker].name == name


async def _is_taken(services: Services, name: str) -> bool:
    async def read(tx: ReadTx) -> bool:
        return await tx.workers.read_name(name) is not None

    return await services.engine.store.read(read)
