"""Who is asking, and whether they may: every request but the health checks presents a token.

All checks of rights are here: of the request's origin (`check_origin`), of the token's role
and reach (`guard`), and of the worker that a token belongs to (`check_speaks_for`).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.handlers.base import BaseRouteHandler
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from windlass.domain.access.roles import Identity, Role
from windlass.engine.access import Access
from windlass.server.errors import Forbidden, Unauthorized, UnsupportedMedia
from windlass.server.serve import is_loopback

IDENTITY = "windlass_identity"
PENDING: Final = "pending_approval"
SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})
# Logs and artifacts are sent as they are; everything else that has a body is JSON.
RAW_BODIES: Final = re.compile(r"^/api/v1/workers/\d+/jobs/\d+/attempts/\d+/(log$|artifacts/)")
JSON_TYPE: Final = "application/json"
RAW_TYPE: Final = "application/octet-stream"

Connection = ASGIConnection[Any, Any, Any, Any]


def bearer(headers: list[tuple[bytes, bytes]]) -> str | None:
    """The token of an Authorization header."""
    for name, value in headers:
        if name == b"authorization":
            scheme, _, token = value.decode("latin-1").partition(" ")
            if scheme.lower() == "bearer" and token.strip():
                return token.strip()
    return None


class Authentication(ASGIMiddleware):
    """Finds out who is asking; the guard decides whether they may."""

    scopes = (ScopeType.HTTP,)

    def __init__(self, access: Access) -> None:
        self._access = access

    async def handle(self, scope: Scope, receive: Receive, send: Send, next_app: ASGIApp) -> None:
        token = bearer(list(scope["headers"]))
        identity = None if token is None else await self._access.identify(token)
        scope["state"][IDENTITY] = identity
        await next_app(scope, receive, send)


def identity_of(connection: Connection) -> Identity:
    """Whoever is asking; only on routes behind the guard."""
    identity: Identity = connection.scope["state"][IDENTITY]
    return identity


class Hosts:
    """The names under which a server may be addressed; `None` accepts every name.

    A server on loopback is protected by being out of reach. A web page whose name is pointed
    at 127.0.0.1 (DNS rebinding) would be within reach, so the name is checked there.
    """

    def __init__(self, names: Iterable[str] | None) -> None:
        self._names = None if names is None else frozenset(name.lower() for name in names)

    def check(self, headers: Mapping[bytes, bytes]) -> None:
        """Refuses a foreign `Host`, and an `Origin` that is not this server."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = _name_of(host)
        if self._names is not None and name not in self._names and not is_loopback(name):
            raise Forbidden(
                f"this server is not known as {name[:100]!r}: address it as localhost, or start "
                "it with --allowed-host"
            )
        origin = headers.get(b"origin")
        if origin is None:
            return
        source = urlsplit(origin.decode("latin-1").lower()).netloc
        if not source or (source != host and _name_of(source) not in (self._names or ())):
            raise Forbidden("requests from pages of other sites are refused")


def check_origin(scope: Any, hosts: Hosts) -> None:
    """Refuses state-changing requests that a page of another site could make a browser send.

    A browser sends text and forms anywhere without asking; JSON and raw bytes it does not.
    """
    if scope["method"] in SAFE_METHODS:
        return
    headers = dict(scope["headers"])
    hosts.check(headers)
    has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    if not has_body:
        return
    kind = headers.get(b"content-type", b"").decode("latin-1").partition(";")[0].strip().lower()
    raw = RAW_BODIES.match(scope["path"]) is not None
    if kind != JSON_TYPE and not (raw and kind == RAW_TYPE):
        raise UnsupportedMedia(RAW_TYPE if raw else JSON_TYPE, kind or "nothing")


def _name_of(host: str) -> str:
    """Returns a host without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def guard(connection: Connection, handler: BaseRouteHandler) -> None:
    """Lets through tokens with the role that the route names; `None` is open to all.

    Routes marked `fleet` concern all namespaces: tokens limited to some may not call them.
    """
    needed: Role | None = handler.opt.get("role", Role.ADMIN)
    if needed is None:
        return
    identity: Identity | None = connection.scope["state"].get(IDENTITY)
    if identity is None:
        raise Unauthorized("this needs a valid token: Authorization: Bearer …")
    if not identity.may(needed):
        raise Forbidden(f"this needs the role {needed}, the token has {identity.role}")
    if handler.opt.get("fleet") and not identity.may_fleet(needed):
        raise Forbidden("this concerns all namespaces, and the token is limited to some")
    check_standing(identity)


def check_standing(who: Identity) -> None:
    """Refuses the token of a worker that is pending, disabled or removed."""
    if who.shut_out:
        raise Forbidden(f"the worker of this token is {who.shut_out}: it may do nothing")


def check_speaks_for(who: Identity, worker: int) -> None:
    """Refuses everyone but the worker itself. One that is pending may ask whether it still is."""
    if who.role is not Role.WORKER or who.worker != worker:
        raise Forbidden("a worker speaks only for itself")
    if who.shut_out != PENDING:
        check_standing(who)
