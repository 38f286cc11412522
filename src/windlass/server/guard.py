"""Who is asking: every request but the health checks presents a token."""

from typing import Any

from litestar.connection import ASGIConnection
from litestar.enums import ScopeType
from litestar.handlers.base import BaseRouteHandler
from litestar.middleware import ASGIMiddleware
from litestar.types import ASGIApp, Receive, Scope, Send

from windlass.api.errors import Forbidden, Unauthorized
from windlass.domain.roles import Identity, Role
from windlass.engine.access import Access

IDENTITY = "windlass_identity"

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


def guard(connection: Connection, handler: BaseRouteHandler) -> None:
    """Let through who has the role that the route names; `None` is open to all."""
    needed: Role | None = handler.opt.get("role", Role.ADMIN)
    if needed is None:
        return
    identity: Identity | None = connection.scope["state"].get(IDENTITY)
    if identity is None:
        raise Unauthorized("this needs a valid token: Authorization: Bearer …")
    if not identity.may(needed):
        raise Forbidden(f"this needs the role {needed}, the token has {identity.role}")
