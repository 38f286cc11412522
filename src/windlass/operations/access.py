"""Routes about tokens and enrolment codes."""

from windlass.domain.access.rights import FLEET, Action, Identity, Resource, Role, may, parse_role
from windlass.domain.access.tokens import Token
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.ids import Id
from windlass.domain.values.names import check_name
from windlass.domain.values.quantities import format_moment, parse_duration_ms, shown_moment
from windlass.messages.access import (
    CodeCreated,
    CodeRequest,
    RotateRequest,
    TokenCreated,
    TokenInfo,
    TokenList,
    TokenRequest,
)
from windlass.messages.workers import Changed
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.errors import Forbidden
from windlass.operations.dispatch.routes import Routes

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
    asked = None if data.expires is None else _ttl(data.expires)
    ttl = call.services.engine.config.access.token_ttl_ms(asked)
    expires_at = await call.services.engine.now() + ttl if ttl else 0
    created = await call.services.access.create_token(
        data.name, role, data.namespaces, expires_at, call.who.name, call.who.namespaces
    )
    call.about = _described(created.token)
    return TokenCreated(token=created.secret, info=_show(created.token))


@routes.post("/tokens/{token:int}/rotate", needs=Action.MANAGE_TOKENS, status=201)
async def rotate(call: Call, token: Id, data: Body[RotateRequest]) -> TokenCreated:
    """Replaces a token: creates a new one, and this one stays valid for `grace`."""
    old = await _managed(call, token)
    call.about = _described(old)
    asked = None if data.expires is None else _ttl(data.expires)
    if asked is not None:
        asked = call.services.engine.config.access.token_ttl_ms(asked)
    grace = parse_duration_ms(data.grace, "grace")
    made = await call.services.access.rotate(token, grace, asked, call.who.name)
    call.about = f"{_described(old)}, replaced by token {made.token.id}"
    return TokenCreated(token=made.secret, info=_show(made.token))


@routes.delete("/tokens/{token:int}", needs=Action.MANAGE_TOKENS)
async def revoke(call: Call, token: Id) -> Changed:
    """Revokes a token, or ends a session."""
    call.about = _described(await _managed(call, token))
    return Changed(await call.services.access.revoke(token, call.who.name))


async def _managed(call: Call, token: int) -> Token:
    """Returns a token; raises `NotFound` if it is beyond the caller's namespaces."""
    for one in await call.services.access.tokens():
        if one.id == token and _within(call.who, one.namespaces):
            return one
    raise NotFound("token", token)


def _described(token: Token) -> str:
    """Returns a token in words for the audit log."""
    where = ", ".join(token.namespaces)
    reach = f"namespace{'s' * (len(token.namespaces) > 1)} {where}" if where else "all namespaces"
    return f"{token.kind or 'token'} {token.id} `{token.name}`, role {token.role}, {reach}"


@routes.post("/codes", needs=Action.MANAGE_WORKERS, status=201)
async def create_code(call: Call, data: Body[CodeRequest]) -> CodeCreated:
    """Creates a code with which one worker may enrol, once."""
    ttl = _ttl(data.expires)
    if data.worker is not None:
        check_name("worker", data.worker)
    code, expires_at = await call.services.access.create_code(
        ttl, call.who.name, data.worker or "", data.takeover
    )
    worker = "any worker" if data.worker is None else f"worker `{data.worker}`"
    until = format_moment(expires_at)
    call.about = f"code for {worker}{', with takeover' * data.takeover}, valid until {until}"
    return CodeCreated(code=code, expires_at=until)


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
        expires_at=shown_moment(token.expires_at),
        revoked_at=shown_moment(token.revoked_at),
        worker=token.worker or None,
        last_used_at=shown_moment(token.last_used_at),
        kind=token.kind,
    )
