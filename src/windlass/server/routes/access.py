"""Routes about tokens and enrolment codes."""

from windlass.api.errors import Forbidden
from windlass.domain.access.actions import Action
from windlass.domain.access.may import FLEET, Resource, may
from windlass.domain.access.roles import Identity, Role, parse_role
from windlass.domain.access.tokens import Token
from windlass.domain.job.job import check_name
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.quantities import parse_duration_ms
from windlass.domain.values.times import format_moment
from windlass.server.http.binding import Body, Id
from windlass.server.http.call import Call
from windlass.server.http.routes import Routes
from windlass.wire.access import (
    CodeCreated,
    CodeRequest,
    TokenCreated,
    TokenInfo,
    TokenList,
    TokenRequest,
)
from windlass.wire.workers import Changed

routes = Routes("/api/v1", "access")


@routes.get("/tokens", needs=Action.MANAGE_TOKENS)
async def list_tokens(call: Call) -> TokenList:
    """Returns all tokens within the caller's namespaces, without their secrets."""
    found = await call.services.access.tokens()
    return TokenList([_show(token) for token in found if _within(call.who, token.namespaces)])


@routes.post("/tokens", needs=Action.MANAGE_TOKENS, status=201)
async def create_token(call: Call, data: Body[TokenRequest]) -> TokenCreated:
    """Creates a token; its secret is shown only now."""
    if not _within(call.who, data.namespaces):
        raise Forbidden("a token cannot grant namespaces that it does not have")
    role = parse_role(data.role)
    if role is Role.WORKER:
        raise InvalidInput("role", "one for people: workers get theirs by enrolling", data.role)
    expires_at = 0
    if data.expires is not None:
        expires_at = await call.services.engine.now() + _ttl(data.expires)
    created = await call.services.access.create_token(
        data.name, role, data.namespaces, expires_at, actor=call.who.name
    )
    return TokenCreated(token=created.secret, info=_show(created.token))


@routes.delete("/tokens/{token:int}", needs=Action.MANAGE_TOKENS)
async def revoke(call: Call, token: Id) -> Changed:
    """Revokes a token."""
    found = await call.services.access.tokens()
    if not any(t.id == token and _within(call.who, t.namespaces) for t in found):
        raise NotFound("token", token)
    return Changed(await call.services.access.revoke(token, call.who.name))


@routes.post("/codes", needs=Action.MANAGE_WORKERS, status=201)
async def create_code(call: Call, data: Body[CodeRequest]) -> CodeCreated:
    """Creates a code with which one worker may enrol, once."""
    ttl = _ttl(data.expires)
    if data.worker is not None:
        check_name("worker", data.worker)
    code, expires_at = await call.services.access.create_code(
        ttl, call.who.name, data.worker or "", data.takeover
    )
    return CodeCreated(code=code, expires_at=format_moment(expires_at))


def _ttl(expires: float | str) -> int:
    ttl = parse_duration_ms(expires, "expires")
    if not ttl:
        raise InvalidInput("expires", "a duration longer than 0", expires)
    return ttl


def _within(who: Identity, namespaces: tuple[str, ...]) -> bool:
    """Returns whether the caller manages the tokens of these; none means all that exist."""
    reached = [Resource(namespace) for namespace in namespaces] or [FLEET]
    return all(may(who, Action.MANAGE_TOKENS, one) for one in reached)


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
