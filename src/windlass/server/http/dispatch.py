"""The ASGI application: finds the route of a request, checks the caller, runs the handler."""

import asyncio
import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import structlog

from windlass.domain.access.rights import RIGHTS, Action, Identity
from windlass.domain.values.errors import WindlassError
from windlass.operations.dispatch.call import Complete, Reply, Stream
from windlass.operations.dispatch.errors import NoRoute, TooLarge, Unauthorized, WrongMethod
from windlass.operations.dispatch.routes import Route
from windlass.operations.dispatch.table import Table, carry_out
from windlass.operations.rights import authorize
from windlass.ports.loop_time import DOING, give_way_if_long
from windlass.server.audit_log import Seen, note_call
from windlass.server.connections.refusals import Reason
from windlass.server.http import call as http_call
from windlass.server.http.asgi import Receive, Scope, Send
from windlass.server.http.authentication import (
    SAFE_METHODS,
    Hosts,
    bearer,
    came_by_https,
    check_media_type,
    with_session,
)
from windlass.server.http.call import HttpCall, check_certificate
from windlass.server.http.callers import Callers
from windlass.server.http.replies import (
    INTERNAL,
    INTERNAL_CODE,
    STOPPING,
    encode,
    headers_of,
    send_complete,
    send_stream,
    status_of,
)
from windlass.server.marks import FIELD, HEADER
from windlass.server.metrics.meters import NO_ROUTE
from windlass.server.services import ServerServices

log = structlog.get_logger("windlass.server")


TURN: Final = "windlass.turn"  # where a request's turn is in its scope
DISK_FULL_SECONDS: Final = 30.0  # between two lines of the log about it
ANONYMOUS_BODY: Final = 2 * 2**20  # bytes, of callers without a token


class _Costs(NamedTuple):
    """What calls of a route may cost."""

    body_limit: int
    is_costly: bool
    doing: str


NEEDLESS: Final = re.compile(rb"%(?:3\d|[46][1-9a-f]|[57][0-9a])", re.IGNORECASE)
"""Percent-encoded letters and digits, which nobody has to encode."""


class Dispatcher:
    """Answers requests with the handlers of `routes`."""

    def __init__(
        self, routes: Iterable[Route], services: ServerServices, hosts: Hosts, body_limit: int
    ) -> None:
        """`body_limit` is for bodies with many jobs, and for raw ones; others have an eighth."""
        self._services = services
        self._hosts = hosts
        self._count = services.meters.refuse
        self._requests = services.meters.requests
        self._callers = Callers(services.engine.config.http, self._count)
        self._table = Table(routes, lambda route: _costs(route, body_limit))
        self._quiet_until = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return
        try:
            await self._answer(scope, receive, send)
        finally:
            turn = scope.get(TURN)
            if turn is not None:
                turn.end()

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        seen = Seen()
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            reply = await self._run(scope, receive, seen)
        except WindlassError as error:
            if error.code == "disk_full":
                self._log_disk_full(error)
            if isinstance(error, TooLarge):
                self._count(Reason.BODY_TOO_LARGE)
            seen.code = error.code
            reply = _failed(error)
        except Exception as error:
            # A bug of ours: the log says which, the client learns no more than that.
            log.error("unhandled", path=scope["path"], method=scope["method"], exc_info=error)
            seen.code = INTERNAL_CODE
            reply = Complete(500, encode(INTERNAL))
        except asyncio.CancelledError:
            # uvicorn cancels what takes longer than a stop may last.
            log.warning("cut_off", path=scope["path"], error=STOPPING.message)
            seen.code = STOPPING.code
            reply = _failed(STOPPING)
        reply = note_call(self._services.audit, scope, seen, reply)
        # Everybody can get a worker's token that is not approved.
        known = seen.caller is not None and not seen.caller.shut_out
        if known and (mark := self._services.marks.newest()):
            reply = reply._replace(headers={**reply.headers, HEADER: mark})
        route = NO_ROUTE if seen.route is None else (seen.route.path, seen.route.method)
        status = reply.status if isinstance(reply, Complete) else 200
        self._requests.note(route, status, clock() - began)
        if isinstance(reply, Stream):
            await self._send_stream(scope, receive, send, reply)
        else:
            await send_complete(send, reply)

    def _log_disk_full(self, error: WindlassError) -> None:
        """Logs it now and then: while a disk is full, every write says so."""
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until:
            self._quiet_until = now + DISK_FULL_SECONDS
            log.error("disk full", error=error.message)

    async def _send_stream(
        self, scope: Scope, receive: Receive, send: Send, stream: Stream
    ) -> None:
        try:
            await send_stream(receive, send, stream, self._services.stopping)
        except WindlassError as error:
            # The client notices, because the last chunk is missing.
            log.warning("cut_off", path=scope["path"], error=error.message)
        except asyncio.CancelledError:
            log.warning("cut_off", path=scope["path"], error=STOPPING.message)

    async def _run(self, arrived: Any, receive: Receive, seen: Seen) -> Complete | Stream:
        method = arrived["method"]
        try:
            target = self._table.find(method, arrived["path"])
            route, binder = target.route, target.binder
            body_limit, is_costly, doing = target.note
        except WrongMethod as error:
            if method != "OPTIONS":
                raise
            authorize(await self._identify(arrived), Action.DESCRIBE_API)
            return Complete(204, b"", headers={"Allow": error.allowed})
        seen.route = route
        raw = arrived.get("raw_path") or b""
        if b"%" in raw and not _is_written_as(raw, route.path):
            raise NoRoute(method, arrived["path"])
        DOING.set(doing)
        if method not in SAFE_METHODS:
            headers = dict(arrived["headers"])
            self._hosts.check(headers, came_by_https(arrived, headers))
            check_media_type(headers, route.raw_body)
        scope, token = arrived, bearer(arrived["headers"])
        if token is None:
            scope = with_session(arrived, self._services.callers.public_origin)
            token = bearer(scope["headers"])
        identify = self._services.access.identify
        caller = seen.caller = None if token is None else await identify(token)
        turn = arrived[TURN] = self._callers.enter(scope, caller, is_costly)
        if caller is None and token is not None:
            self._explain_refusal(token, route)
        authorize(caller, route.needs)
        if caller is None:
            body_limit = min(body_limit, ANONYMOUS_BODY)
        elif caller.worker:
            check_certificate(scope, caller.name)
        seen.in_path = in_path = target.in_path()
        said = next((text for name, text in scope["headers"] if name == FIELD), None)
        if said is not None and caller is not None and not caller.shut_out:
            await self._services.marks.hear(said)
        call = HttpCall(self._services, caller, scope, receive, body_limit, route.needs, turn)
        clock = asyncio.get_running_loop().time
        body = await call.body() if binder.takes_body else b""
        if binder.in_parts(body):
            turn.pause_collector()
        seen.arguments = arguments = await binder.bind_any(scope["query_string"], body)
        began = clock()
        try:
            answer = await carry_out(call, route, in_path, arguments)
        finally:
            seen.about = call.about
        await give_way_if_long()  # before it is written as JSON
        reply = _reply(answer, route)
        if caller is None:
            seen.caller = call.caller  # somebody may have signed in
            return reply
        if clock() - began >= http_call.RECHECK_SECONDS:
            await call.watch(caller).check()  # it has waited for something
        if isinstance(reply, Stream):
            reply = reply._replace(until_refused=call.watch(caller).until_refused)
        return reply

    async def _identify(self, scope: Scope) -> Identity | None:
        token = bearer(scope["headers"])
        return None if token is None else await self._services.access.identify(token)

    def _explain_refusal(self, token: str, route: Route) -> None:
        """Raises `Unauthorized` with the reason why a signed token does not count."""
        why = self._services.callers.why_refused(token)
        if why and not RIGHTS[route.needs].is_open:
            raise Unauthorized(why)


def _is_written_as(raw: bytes, path: str) -> bool:
    """Returns whether a path in percent-encoding says which route it means as it stands.

    A proxy in front may decide by the path, and it compares what is written.
    """
    return NEEDLESS.search(raw) is None and path.partition("{")[0].encode() in raw


def _costs(route: Route, body_limit: int) -> _Costs:
    limit = route.body_limit or (body_limit if route.raw_body or route.bulk else body_limit // 8)
    return _Costs(limit, route.costly, f"{route.method} {route.path}")


def _failed(error: WindlassError) -> Complete:
    return Complete(status_of(error), encode(error.describe()), headers=headers_of(error))


def _reply(value: Any, route: Route) -> Complete | Stream:
    if isinstance(value, Stream | Complete):
        return value
    status = route.status
    if isinstance(value, Reply):
        status, value = value.status, value.value
    body = value if isinstance(value, bytes) else encode(value)
    return Complete(status, body, route.media_type)
