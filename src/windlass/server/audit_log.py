"""The audit log: which requests are recorded, and how their rows reach the store.

Rows are collected and written in the background, so that no call waits. A clean stop writes
everything. A server that is killed loses at most the last second.
"""

import re
from collections.abc import Hashable, Mapping, Sequence
from itertools import count
from typing import Any, Final, NamedTuple

import structlog

from windlass.domain.access.audit import AuditRow, Repeats
from windlass.domain.access.rights import Identity, Role
from windlass.domain.values.errors import WindlassError
from windlass.domain.values.names import NAME_LIMIT
from windlass.engine.transaction.catalog import Catalog
from windlass.operations.dispatch.call import Complete, Stream
from windlass.operations.dispatch.routes import COUNTED, EACH, Route
from windlass.ports.clock import Clock
from windlass.server.http.asgi import Scope
from windlass.server.http.authentication import SAFE_METHODS
from windlass.server.http.callers import source_of
from windlass.store.sql.transaction import ReadTx, WriteTx
from windlass.store.store import Store

WRITE_MS: Final = 1_000
MINUTE_MS: Final = 60_000
PENDING_LIMIT: Final = 100_000  # rows, while the store does not answer
CHUNK: Final = 1_000  # rows in one transaction
TEXT_LIMIT: Final = 300  # characters of a path

REQUEST_ID: Final = "X-Request-Id"
_NAMING: Final = re.compile(r"/api/v1/([a-z]+)s/\{name:")  # a kind of object, and which one
_NOTHING: Final[Mapping[str, Any]] = {}

log = structlog.get_logger("windlass.server")


class Noted(NamedTuple):
    """One call: who, from where, what, and how it ended."""

    caller: Identity | None
    address: str
    action: str
    path: str
    namespace: str
    job: int  # whose namespace is looked up; 0: none
    workflow: int
    status: int
    code: str  # of the error; empty: none
    about: str  # the object in words; empty: what is known of the job or the workflow


class _Pending(NamedTuple):
    row: AuditRow
    job: int
    workflow: int


class AuditLog:
    """The loop that writes the audit log of one server."""

    name = "audit"
    interval_ms = WRITE_MS

    def __init__(self, store: Store, catalog: Catalog, clock: Clock, secret: str) -> None:
        """`secret` makes the ids of this process's requests differ from those of others."""
        self._store = store
        self._catalog = catalog
        self._clock = clock
        self._prefix = secret[:8]
        self._numbers = count(1)
        self._pending: list[_Pending] = []
        self._repeats = Repeats()
        self._minute = 0
        self._lost = 0

    def next_request(self) -> str:
        """Returns an id for one request."""
        return f"{self._prefix}-{next(self._numbers):x}"

    def repeat(self, key: Hashable) -> bool:
        """Counts a call like one of this minute; False if it must be noted."""
        self._end_minute(self._clock.now_ms())
        return self._repeats.repeat(key)

    def note(self, noted: Noted, request: str, key: Hashable = None) -> None:
        """Records a call; it reaches the store within a second. Calls with one key share rows."""
        who = noted.caller
        row = AuditRow(
            id=0,
            at=self._clock.now_ms(),
            calls=1,
            status=noted.status,
            token=0 if who is None else who.token,
            actor="" if who is None else who.name,
            role="" if who is None else str(who.role),
            address=_printable(noted.address),
            action=noted.action,
            resource=_printable(noted.path),
            namespace=_printable(noted.namespace),
            code=noted.code,
            request=request,
            about=_printable(noted.about),
        )
        if key is None:
            self._add(_Pending(row, noted.job, noted.workflow))
            return
        self._end_minute(row.at)
        first = self._repeats.add(key, row)
        if first is not None:
            self._add(_Pending(first, 0, 0))

    async def run_once(self, now: int) -> None:
        """Writes what was recorded; keeps it if the store does not answer."""
        self._end_minute(now)
        await self._write()

    async def close(self) -> None:
        """Writes everything that is left."""
        self._minute = -1
        self._end_minute(self._clock.now_ms())
        try:
            await self._write()
        except WindlassError as error:
            log.error("audit log", lost=len(self._pending), error=error.message)

    def _end_minute(self, now: int) -> None:
        minute = now // MINUTE_MS
        if minute != self._minute:
            self._minute = minute
            for row in self._repeats.take():
                self._add(_Pending(row, 0, 0))

    def _add(self, pending: _Pending) -> None:
        if len(self._pending) < PENDING_LIMIT:
            self._pending.append(pending)
        else:
            self._lost += 1

    async def _write(self) -> None:
        if self._lost:
            log.error("audit log", lost=self._lost, error="the store did not answer for too long")
            self._lost = 0
        while self._pending:
            chunk = self._pending[:CHUNK]

            async def append(tx: WriteTx, chunk: Sequence[_Pending] = chunk) -> None:
                await tx.audit.append(await self._with_objects(tx, chunk))

            await self._store.transact(append)
            del self._pending[: len(chunk)]

    async def _with_objects(self, tx: ReadTx, chunk: Sequence[_Pending]) -> list[AuditRow]:
        """Looks up the namespaces of jobs and workflows that calls were about, and what they are.

        Of a job that is its task and its queue: its name is in its description, which may be long.
        """
        jobs = sorted({one.job for one in chunk if one.job})
        workflows = sorted({one.workflow for one in chunk if one.workflow})
        facts = await tx.jobs.read(jobs) if jobs else {}
        shapes = await self._catalog.know(tx, [fact.shape for fact in facts.values()])
        rows = await tx.workflows.read(workflows) if workflows else {}
        found: list[AuditRow] = []
        for row, job, workflow in chunk:
            if job in facts:
                shape = shapes[facts[job].shape]
                about = f"job {job}, task {shape.task}, queue {shape.queue}"
                row = row._replace(namespace=shape.namespace, about=about)
            elif workflow in rows:
                about = f"workflow {workflow} `{_printable(rows[workflow].name)}`"
                row = row._replace(namespace=rows[workflow].namespace, about=about)
            found.append(row)
        return found


def is_recorded(caller: Identity | None, status: int, changes: bool) -> bool:
    """Returns whether a call is recorded: changes and refusals, but not what workers do.

    Their syncs, logs and artifacts are in the event log.
    """
    if status in (401, 403):
        return True
    return changes and (status >= 400 or caller is None or caller.role is not Role.WORKER)


def _printable(text: str) -> str:
    cut = text[:TEXT_LIMIT]
    if cut.isprintable():
        return cut
    return "".join(one if one.isprintable() else "?" for one in cut)


class Seen:
    """What is known of a request so far."""

    __slots__ = ("about", "arguments", "caller", "code", "in_path", "route")

    def __init__(self) -> None:
        self.route: Route | None = None
        self.caller: Identity | None = None
        self.in_path = _NOTHING
        self.arguments = _NOTHING
        self.about = ""  # the object in words, as the handler told
        self.code = ""


def note_call(
    audit: AuditLog, scope: Scope, seen: Seen, reply: Complete | Stream
) -> Complete | Stream:
    """Records a request if it belongs into the audit log; its answer gets the id of its row."""
    route = seen.route
    status = reply.status if isinstance(reply, Complete) else 200
    if route is None:
        return reply
    changes = route.method not in SAFE_METHODS or route.audit == EACH
    if not is_recorded(seen.caller, status, changes):
        return reply
    caller, namespace = seen.caller, _namespace(seen)
    address = source_of(scope)
    about = seen.about or _named(seen)
    key: Hashable = None
    if status >= 400 or caller is None or route.audit == COUNTED:
        name = None if caller is None else (caller.token, caller.name)
        kind = seen.about if status < 400 else seen.code
        key = (name, address, route.method, route.path, namespace, status, kind)
        if audit.repeat(key):
            return reply
    noted = Noted(
        caller=caller,
        address=address,
        action=f"{route.method} {route.path}",
        path=scope["path"],
        namespace=namespace,
        job=seen.in_path.get("job", 0),
        workflow=seen.in_path.get("workflow", 0),
        status=status,
        code=seen.code,
        about=about,
    )
    request = audit.next_request()
    audit.note(noted, request, key)
    headers = {**reply.headers, REQUEST_ID: request}
    if isinstance(reply, Stream):
        return reply._replace(headers=headers)
    return reply._replace(headers=headers)


def _named(seen: Seen) -> str:
    """Returns what the path names, such as "queue `video`"; jobs and workflows are looked up."""
    found = seen.route and _NAMING.match(seen.route.path)
    return f"{found[1]} `{seen.in_path['name']}`" if found and seen.in_path else ""


def _namespace(seen: Seen) -> str:
    """Returns the namespace that the request names, or the only one of its caller."""
    for name, value in seen.arguments.items():
        named = value if name == "namespace" else getattr(value, "namespace", None)
        if isinstance(named, str) and named:
            return named[:NAME_LIMIT]  # it may not have been checked yet
        several = getattr(value, "namespaces", None)
        if isinstance(several, tuple) and len(several) == 1:
            return str(several[0])[:NAME_LIMIT]
    if seen.caller is not None and len(seen.caller.namespaces) == 1:
        return seen.caller.namespaces[0]
    return ""
