"""The routes of a server, `ALL`: every operation, and those that only a server has.

The latter are about its process, its open pages, its audit log and its sessions.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Final, NamedTuple

import msgspec
from prometheus_client.metrics_core import Metric as Family

from windlass.domain.access.audit import AuditRow
from windlass.domain.access.rights import Action, Identity
from windlass.domain.values.ids import Cursor
from windlass.domain.values.quantities import format_moment
from windlass.messages.access import AuditEntry, AuditList
from windlass.messages.system import Health
from windlass.operations.all_routes import ALL as OPERATIONS
from windlass.operations.dispatch.call import EVENTS, TEXT, Reply, ServerSentEvent, Stream
from windlass.operations.dispatch.routes import Route, Routes, words_of
from windlass.operations.parse import moment_since
from windlass.server.http.call import HttpCall
from windlass.server.live_pages import Topics, parse_topics
from windlass.server.metrics.series import gauge
from windlass.server.metrics.store_state import families, read_state
from windlass.server.services import ServerServices
from windlass.server.sign_in.routes import routes as sign_in_routes
from windlass.store.sql.transaction import ReadTx

_UNBUFFERED = {"Connection": "keep-alive", "X-Accel-Buffering": "no"}
CHUNK: Final = 1_000  # rows of the audit log to read at once
MAX_CHUNKS: Final = 20  # that one call looks at

PageSize = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
RecentSize = Annotated[int, msgspec.Meta(ge=1, le=500)]

process_routes = Routes("", "system")
live_routes = Routes("/api/v1/live", "events")
audit_routes = Routes("/api/v1/audit", "audit")

_encode = msgspec.json.Encoder().encode


@process_routes.get("/healthz", needs=Action.CHECK_HEALTH)
async def healthz(call: HttpCall) -> Health:
    """Answers as long as the process is alive."""
    del call
    return Health("ok")


@process_routes.get("/readyz", needs=Action.CHECK_HEALTH)
async def readyz(call: HttpCall) -> Reply[Health]:
    """Checks that jobs can be recorded: the store and the blobs take what is written.

    Only callers with a valid token learn which path or host is the problem. That of a worker that
    is not approved counts as none: everybody can get one.
    """
    problem = await call.services.readiness.problem()
    if problem is None:
        return Reply(Health("ok"), 200)
    known = call.caller is not None and not call.caller.shut_out
    return Reply(Health(problem.details if known else problem.summary), 503)


@process_routes.get("/metrics", needs=Action.READ_METRICS, media_type=TEXT)
async def metrics(call: HttpCall) -> bytes:
    """Returns the metrics for Prometheus."""
    services = call.services
    engine = services.engine
    problem = await services.readiness.problem()
    state = await read_state(engine, services.pools)
    paused = {name: bool(row.paused) for name, row in engine.catalog.queues.items()}
    counted = await engine.metrics()
    lag = max(0, state.newest - services.feed.position)
    gauges: list[Family] = [
        gauge("windlass_store_ready", {(): problem is None}),
        gauge("windlass_event_lag_events", {(): lag}),
        *families(state, paused, counted.queue_depth, services.meters.queues),
        *[one for part in services.plugins.values() for one in await part.families()],
    ]
    pool = getattr(engine.store, "pool", None)
    return services.meters.render(counted, pool, gauges)


@live_routes.get("", needs=Action.READ_EVENTS, media_type=EVENTS)
async def follow_changes(
    call: HttpCall, show: list[str], after: Cursor = 0, follow: bool = True
) -> Stream:
    """Streams what changes among what a page shows, as ids; the page asks again for those.

    `show` is jobs, workflows, workers, pools, queues, schedules, templates or tokens, or one of
    them: job:7, workflow:3, worker:2. The id of a message is the number of the last event it knows.
    Without `follow`, only that number is answered.
    """
    chunks = _changes(call.services, call.who, parse_topics(show), after, follow)
    return Stream(chunks, EVENTS, _UNBUFFERED, follow)


async def _changes(
    services: ServerServices, who: Identity, topics: Topics, after: int, follow: bool
) -> AsyncIterator[bytes]:
    """Yields messages; a client that reads slowly gets fewer, with more in each."""
    hub, clock = services.live, services.clock
    listener = await hub.open(who, topics, after, clock.now_ms())
    try:
        yield ServerSentEvent(id=str(listener.at), event="at", data=b"{}").encode()
        while follow:
            await listener.is_due.wait()
            change = listener.take(clock.now_ms())
            if change is None:
                yield ServerSentEvent(comment="still here").encode()
            else:
                data = _encode(change)
                yield ServerSentEvent(id=str(listener.at), event="changed", data=data).encode()
    finally:
        hub.close(listener)


@audit_routes.get("", needs=Action.READ_AUDIT)
async def read_audit(
    call: HttpCall, after: Cursor = 0, since: str | None = None, limit: PageSize = 1_000
) -> AuditList:
    """Returns rows of the audit log, oldest first; to admins of namespaces only theirs.

    `since` is a time, or how long ago.
    """
    engine, namespaces = call.services.engine, call.who.namespaces
    begin = 0 if since is None else moment_since(since, await engine.now())
    rows = await engine.store.read(lambda tx: tx.audit.read(after, begin, namespaces, limit))
    following = rows[-1].id if len(rows) == limit else None
    return AuditList([_audit_entry(row) for row in rows], following)


@audit_routes.get("/recent", needs=Action.READ_AUDIT)
async def read_recent(
    call: HttpCall,
    before: Cursor = 0,
    actor: str | None = None,
    action: str | None = None,
    namespace: str | None = None,
    address: str | None = None,
    refused: bool = False,
    since: str | None = None,
    until: str | None = None,
    limit: RecentSize = 100,
) -> AuditList:
    """Returns rows of the audit log, newest first; to admins of namespaces only theirs.

    `since` and `until` are times, or how long ago. `next` is the `before` of the next page. A call
    looks at a bounded number of rows, so a page may be short and still have a `next`.
    """
    now = await call.services.engine.now()
    begin = None if since is None else moment_since(since, now)
    end = None if until is None else moment_since(until, now)
    wanted = RecentFilter(actor, action, namespace, address, refused, end)
    own = call.who.namespaces
    found: list[AuditRow] = []
    seen = before
    for _ in range(MAX_CHUNKS):
        read = partial(_read_recent, before=seen)
        rows = await call.services.engine.store.read(read)
        for row in rows:
            if len(found) == limit:
                return AuditList([_audit_entry(row) for row in found], seen)
            if begin is not None and row.at < begin:
                return AuditList([_audit_entry(row) for row in found], None)
            seen = row.id
            if wanted.takes(row) and (not own or row.namespace in own):
                found.append(row)
        if len(rows) < CHUNK:
            return AuditList([_audit_entry(row) for row in found], None)
    return AuditList([_audit_entry(row) for row in found], seen)


async def _read_recent(tx: ReadTx, before: int) -> list[AuditRow]:
    return await tx.audit.recent(before, CHUNK)


class RecentFilter(NamedTuple):
    """Which rows to show; None does not filter."""

    actor: str | None
    action: str | None
    namespace: str | None
    address: str | None
    refused: bool
    until: int | None

    def takes(self, row: AuditRow) -> bool:
        """Returns whether it shows this row."""
        return (
            self.actor in (None, row.actor)
            and self.action in (None, row.action)
            and self.namespace in (None, row.namespace)
            and self.address in (None, row.address)
            and (not self.refused or bool(row.code))
            and (self.until is None or row.at < self.until)
        )


def _audit_entry(row: AuditRow) -> AuditEntry:
    return AuditEntry(
        id=row.id,
        at=format_moment(row.at),
        calls=row.calls,
        actor=row.actor or None,
        role=row.role or None,
        token=row.token or None,
        address=row.address,
        action=row.action,
        resource=row.resource,
        namespace=row.namespace or None,
        status=row.status,
        error=row.code or None,
        request=row.request,
        what=words_of(row.action),
        about=row.about or None,
    )


ALL: Final[tuple[Route, ...]] = (
    *process_routes,
    *OPERATIONS,
    *live_routes,
    *audit_routes,
    *sign_in_routes,
)
