"""The ASGI application: finds the route of a request, checks the caller, runs the handler."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import structlog

from windlass.domain.errors import WindlassError
from windlass.server.http.asgi import Receive, Scope, Send
from windlass.server.http.authentication import identify
from windlass.server.http.binding import Binder, signature_of
from windlass.server.http.call import Call
from windlass.server.http.errors import INTERNAL, NoRoute, WrongMethod, headers_of, status_of
from windlass.server.http.permissions import ANY_TOKEN, Permission
from windlass.server.http.replies import (
    Complete,
    Reply,
    Stream,
    encode,
    send_complete,
    send_stream,
)
from windlass.server.http.router import Router
from windlass.server.http.routes import Handler, Route
from windlass.server.services import Services

log = structlog.get_logger("windlass.server")


class _Bound(NamedTuple):
    """A route that is ready to be called."""

    needs: Permission
    handler: Handler
    binder: Binder
    status: int
    media_type: str
    body_limit: int


class Dispatcher:
    """Answers requests with the handlers of `routes`."""

    def __init__(self, routes: Iterable[Route], services: Services, body_limit: int) -> None:
        self._services = services
        self._router = Router(
            (route.method, route.path, _bound(route, body_limit)) for route in routes
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return
        try:
            reply = await self._run(scope, receive)
        except WindlassError as error:
            body = encode(error.describe())
            reply = Complete(status_of(error), body, headers=headers_of(error))
        except Exception as error:
            # A bug of ours: the log says which, the client learns no more than that.
            log.error("unhandled", path=scope["path"], method=scope["method"], exc_info=error)
            reply = Complete(500, encode(INTERNAL))
        if isinstance(reply, Stream):
            await send_stream(receive, send, reply)
        else:
            await send_complete(send, reply)

    async def _run(self, scope: Scope, receive: Receive) -> Complete | Stream:
        method, path = scope["method"], scope["path"]
        found = self._router.find(path)
        if found is None:
            raise NoRoute(method, path)
        bound = found.methods.get(method)
        if bound is None:
            return await self._describe_methods(scope, sorted({*found.methods, "OPTIONS"}))
        caller = await identify(self._services.access, scope["headers"])
        bound.needs.check(caller)
        call = Call(self._services, caller, scope, receive, bound.body_limit)
        arguments = await bound.binder.bind(call, found.values)
        return _reply(await bound.handler(call, **arguments), bound)

    async def _describe_methods(self, scope: Scope, methods: list[str]) -> Complete | Stream:
        """Answers OPTIONS; refuses every other method."""
        allowed = ", ".join(methods)
        if scope["method"] != "OPTIONS":
            raise WrongMethod(scope["method"], scope["path"], allowed)
        caller = await identify(self._services.access, scope["headers"])
        ANY_TOKEN.check(caller)
        return Complete(204, b"", headers={"Allow": allowed})


def _bound(route: Route, body_limit: int) -> _Bound:
    binder = Binder(signature_of(route))
    limit = route.body_limit or body_limit
    return _Bound(route.needs, route.handler, binder, route.status, route.media_type, limit)


def _reply(value: Any, bound: _Bound) -> Complete | Stream:
    status = bound.status
    if isinstance(value, Reply):
        status, value = value.status, value.value
    if isinstance(value, Stream):
        return value
    body = value if isinstance(value, bytes) else encode(value)
    return Complete(status, body, bound.media_type)
