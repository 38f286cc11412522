"""Routes about tokens and enrolment codes."""

from typing import Annotated, Any

from litestar import Controller, Request, delete, get, post
from litestar.params import JSONBody, Parameter

from windlass.api.errors import Forbidden
from windlass.domain.access import Token
from windlass.domain.errors import InvalidInput, NotFound
from windlass.domain.moments import format_moment
from windlass.domain.quantities import parse_duration_ms
from windlass.domain.roles import Identity, Role, parse_role
from windlass.server.guard import identity_of
from windlass.server.services import UseServices
from windlass.wire.access import (
    CodeCreated,
    CodeRequest,
    TokenCreated,
    TokenInfo,
    TokenList,
    TokenRequest,
)
from windlass.wire.workers import Changed

Ask = Request[Any, Any, Any]


class AccessRoutes(Controller):
    """Make, list and revoke tokens; make codes for new workers."""

    path = "/api/v1"
    tags = ("access",)

    @get("/tokens", opt={"role": Role.ADMIN})
    async def list_tokens(self, request: Ask, services: UseServices) -> TokenList:
        """All tokens within the asker's namespaces, without their secrets."""
        who = identity_of(request)
        found = await services.access.tokens()
        return TokenList([_show(token) for token in found if _within(who, token.namespaces)])

    @post("/tokens", opt={"role": Role.ADMIN})
    async def create_token(
        self, request: Ask, data: JSONBody[TokenRequest], services: UseServices
    ) -> TokenCreated:
        """A new token; its secret is shown this once."""
        if not _within(identity_of(request), data.namespaces):
            raise Forbidden("a token gives no more namespaces than it has")
        role = parse_role(data.role)
        if role is Role.WORKER:
            raise InvalidInput("role", "one for people: workers get theirs by enrolling", data.role)
        expires_at = 0
        if data.expires is not None:
            ttl = parse_duration_ms(data.expires, "expires")
            expires_at = await services.engine.now() + ttl
        created = await services.access.create_token(
            data.name, role, data.namespaces, expires_at, actor=identity_of(request).name
        )
        return TokenCreated(token=created.secret, info=_show(created.token))

    @delete("/tokens/{token:int}", opt={"role": Role.ADMIN}, status_code=200)
    async def revoke(
        self, request: Ask, token: Annotated[int, Parameter(ge=1, le=2**62)], services: UseServices
    ) -> Changed:
        """Revoke a token."""
        who = identity_of(request)
        found = await services.access.tokens()
        if not any(t.id == token and _within(who, t.namespaces) for t in found):
            raise NotFound("token", token)
        return Changed(await services.access.revoke(token, who.name))

    @post("/codes", opt={"role": Role.OPERATOR})
    async def create_code(
        self, request: Ask, data: JSONBody[CodeRequest], services: UseServices
    ) -> CodeCreated:
        """A code with which one worker may enrol, once."""
        ttl = parse_duration_ms(data.expires, "expires")
        actor = identity_of(request).name
        code, expires_at = await services.access.create_code(ttl, actor)
        return CodeCreated(code=code, expires_at=format_moment(expires_at))


def _within(who: Identity, namespaces: tuple[str, ...]) -> bool:
    """Whether the asker has all of these; none means every one there is."""
    return not who.namespaces or (bool(namespaces) and set(namespaces) <= set(who.namespaces))


def _show(token: Token) -> TokenInfo:
    return TokenInfo(
        id=token.id,
        name=token.name,
        role=token.role,
        namespaces=token.namespaces,
        created_at=format_moment(token.created_at),
        expires_at=format_moment(token.expires_at) if token.expires_at else None,
        revoked_at=format_moment(token.revoked_at) if token.revoked_at else None,
        worker=token.worker or None,
    )
