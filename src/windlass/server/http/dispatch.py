"""The ASGI application: finds the route of a request, checks the caller, runs the handler."""

import asyncio
import re
from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

import structlog

from windlass.api.errors import Unauthorized
from windlass.api.rights import authorize
from windlass.domain.access.rights import RIGHTS, Action, Identity, Role
from windlass.domain.values.errors import NotFound, WindlassError
from windlass.engine.fleet.losses import explain_missing
from windlass.ports.loop_time import DOING, give_way_if_long
from windlass.server.audit.calls import Seen, note_call
from windlass.server.connections.refusals import Reason
from windlass.server.costs import ANONYMOUS_BODY, BULK, COSTLY
from windlass.server.http import token_watch
from windlass.server.http.asgi import Receive, Scope, Send, TooLarge
from windlass.server.http.authentication import bearer, with_session
from windlass.server.http.binding import Binder, signature_of
from windlass.server.http.call import Call, check_certificate
from windlass.server.http.callers import Callers
from windlass.server.http.errors import (
    INTERNAL,
    INTERNAL_CODE,
    STOPPING,
    Malformed,
    NoRoute,
    WrongMethod,
    headers_of,
    status_of,
)
from windlass.server.http.origin import SAFE_METHODS, Hosts, came_by_https, check_media_type
from windlass.server.http.replies import (
    Complete,
    Reply,
    Stream,
    encode,
    send_complete,
    send_stream,
)
from windlass.server.http.router import Router
from windlass.server.http.routes import Route
from windlass.server.marks import FIELD, HEADER
from windlass.server.metrics.requests import NO_ROUTE
from windlass.server.services import Services

log = structlog.get_logger("windlass.server")


TURN: Final = "windlass.turn"  # where a request's turn is in its scope
DISK_FULL_SECONDS: Final = 30.0  # between two lines of the log about it
REMEMBERED: Final = 4_096  # paths; workers call the same few all the time


class _Bound(NamedTuple):
    """A route that is ready to be called."""

    route: Route
    binder: Binder
    takes_body: bool
    body_limit: int
    is_costly: bool
    doing: str


class _Target(NamedTuple):
    """The route of one path, and the arguments in it; None if its `values` do not fit."""

    bound: _Bound
    values: Mapping[str, str]
    arguments: Mapping[str, Any] | None


NEEDLESS: Final = re.compile(rb"%(?:3\d|[46][1-9a-f]|[57][0-9a])", re.IGNORECASE)
"""Percent-encoded letters and digits, which nobody has to encode."""


class Dispatcher:
    """Answers requests with the handlers of `routes`."""

    def __init__(
        self, routes: Iterable[Route], services: Services, hosts: Hosts, body_limit: int
    ) -> None:
        """`body_limit` is for bodies with many jobs, and for raw ones; others have an eighth."""
        self._services = services
        self._hosts = hosts
        self._count = services.meters.refuse
        self._requests = services.meters.requests
        self._callers = Callers(services.engine.config.http, self._count)
        self._router = Router(
            (route.method, route.path, _bound(route, body_limit)) for route in routes
        )
        self._quiet_until = 0.0
        self._resolve = lru_cache(REMEMBERED)(self._find)

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
            bound, values, in_path = self._resolve(method, arrived["path"])
            route, binder, takes_body, body_limit, is_costly, doing = bound
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
        if in_path is None:
            in_path = binder.bind_path(values)  # raises what is wrong with them
        seen.in_path = in_path
        said = next((text for name, text in scope["headers"] if name == FIELD), None)
        if said is not None and caller is not None and not caller.shut_out:
            await self._services.marks.hear(said)
        call = Call(self._services, caller, scope, receive, body_limit, route.needs, turn)
        clock = asyncio.get_running_loop().time
        body = await call.body() if takes_body else b""
        if binder.in_parts(body):
            turn.pause_collector()
        seen.arguments = arguments = await binder.bind_any(scope["query_string"], body)
        began = clock()
        try:
            answer = await route.handler(call, **in_path, **arguments)
        except NotFound as error:
            raise await explain_missing(self._services.engine.store, error) from None
        finally:
            seen.about = call.about
        await give_way_if_long()  # before it is written as JSON
        reply = _reply(answer, route)
        if caller is None:
            seen.caller = call.caller  # somebody may have signed in
            return reply
        if clock() - began >= token_watch.RECHECK_SECONDS:
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

    def _find(self, method: str, path: str) -> _Target:
        found = None if "//" in path else self._router.find(path)
        if found is None:
            raise NoRoute(method, path)
        bound = found.methods.get(method)
        if bound is None:
            raise WrongMethod(method, path, ", ".join(sorted({*found.methods, "OPTIONS"})))
        try:
            return _Target(bound, found.values, bound.binder.bind_path(found.values))
        except Malformed:
            return _Target(bound, found.values, None)  # reported after the caller is checked


def _is_written_as(raw: bytes, path: str) -> bool:
    """Returns whether a path in percent-encoding says which route it means as it stands.

    A proxy in front may decide by the path, and it compares what is written.
    """
    return NEEDLESS.search(raw) is None and path.partition("{")[0].encode() in raw


def _bound(route: Route, body_limit: int) -> _Bound:
    binder = _binder(route)
    which = (route.method, route.path)
    is_large = route.raw_body or which in BULK
    limit = route.body_limit or (body_limit if is_large else body_limit // 8)
    return _Bound(
        route, binder, binder.takes_body, limit, which in COSTLY, f"{route.method} {route.path}"
    )


@cache
def _binder(route: Route) -> Binder:
    """Returns what makes the arguments of a route; the same one in all servers of a process."""
    # Identity providers add parameters of their own, and workers may be newer than the server.
    of_others = route.path.startswith("/auth/") or RIGHTS[route.needs].limited is Role.WORKER
    many = (route.method, route.path) in BULK
    return Binder(signature_of(route), strict=not of_others, many=many)


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
