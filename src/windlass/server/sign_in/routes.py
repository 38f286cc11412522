"""Routes of sign-in: with a token, with a link, and at the identity provider and back."""

from collections.abc import Sequence
from typing import Final

from windlass.domain.access.rights import RIGHTS, Action, Identity, Role, may
from windlass.domain.access.sign_in import Oidc
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.quantities import format_moment
from windlass.messages.access import LinkCreated, LoginSettings, SessionRequest, SignInWays, WhoAmI
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Complete
from windlass.operations.dispatch.errors import Forbidden, Unauthorized
from windlass.operations.dispatch.routes import EACH, Routes
from windlass.server.http.authentication import cookie_of, session_cookie, session_of
from windlass.server.http.call import HttpCall
from windlass.server.http.replies import encode
from windlass.server.sign_in.code_flow import BEGUN, CodeFlow
from windlass.server.sign_in.states import LIFETIME_SECONDS

NO_STORE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}
LAX: Final = "Lax"  # sent when the provider leads the browser back
STRICT: Final = "Strict"  # sent by our own page only
LINK_PATH: Final = "/sign-in#code="

routes = Routes("", "sign-in")


@routes.get("/auth/ways", needs=Action.SIGN_IN)
async def ways(call: HttpCall) -> SignInWays:
    """Returns how people sign in on the page."""
    return SignInWays(oidc=call.services.code_flow is not None)


@routes.post("/auth/session", needs=Action.SIGN_IN, status=201)
async def open_session(call: HttpCall, data: Body[SessionRequest]) -> Complete:
    """Signs in: a token, or the code of a link, becomes a session in a cookie."""
    if (data.token is None) == (data.code is None):
        raise InvalidInput("token", "a token or a code", "both" if data.token else "neither")
    call.services.sign_ins.enter(call.source)
    who = await _signs_in(call, data)
    call.caller = who  # for the audit log
    lifetime_ms = call.services.engine.config.access.session_lifetime_ms
    secret = await call.services.access.open_session(who, lifetime_ms)
    cookie = _session_cookie(call, secret, lifetime_ms // 1000)
    return Complete(201, encode(await _show(call, who)), headers=NO_STORE, cookies=(cookie,))


@routes.post("/auth/links", needs=Action.KNOW_ITSELF, status=201)
async def create_link(call: HttpCall) -> LinkCreated:
    """Makes a link that signs the caller in once, within ten minutes."""
    if not call.who.token:
        raise Forbidden("only tokens of this server make links: sign in at your provider")
    code, expires_at = await call.services.access.create_link(call.who)
    return LinkCreated(path=LINK_PATH + code, expires_at=format_moment(expires_at))


@routes.get("/auth/settings", needs=Action.SIGN_IN)
async def login_settings(call: HttpCall) -> LoginSettings:
    """Returns where `windlass login` signs in."""
    oidc = call.services.callers.oidc
    if oidc is None:
        raise NotFound("sign-in", "on this server")
    scopes = tuple(dict.fromkeys((*oidc.scopes, "offline_access")))
    return LoginSettings(issuer=oidc.issuer, client_id=oidc.login_client, scopes=scopes)


@routes.get("/auth/login", needs=Action.SIGN_IN, status=302)
async def login(call: HttpCall, to: str = "/") -> Complete:
    """Sends a browser to the identity provider."""
    oidc, flow = _web(call)
    flow.rate.enter(call.source)
    begun = await flow.begin(to)
    cookie = _cookie(_begun_name(oidc), begun.cookie, LIFETIME_SECONDS, LAX, oidc.is_secure)
    return _redirect(begun.url, [cookie])


@routes.get("/auth/callback", needs=Action.SIGN_IN, status=302, audit=EACH)
async def callback(
    call: HttpCall, state: str = "", code: str = "", error: str = "", iss: str | None = None
) -> Complete:
    """Takes a browser back from the identity provider, and opens its session."""
    oidc, flow = _web(call)
    flow.rate.enter(call.source)
    if error or not code:
        shown = error[:100] if error.isprintable() else ""
        raise Unauthorized(f"the identity provider refused the sign-in: {shown or 'no code'}")
    begun = cookie_of(call.header(b"cookie"), _begun_name(oidc))
    signed_in = await flow.finish(begun, state, code, iss)
    call.caller = signed_in.who  # for the audit log
    lifetime_ms = call.services.engine.config.access.session_lifetime_ms
    secret = await call.services.access.open_session(signed_in.who, lifetime_ms)
    cookies = [
        _session_cookie(call, secret, lifetime_ms // 1000),
        _cookie(_begun_name(oidc), "", 0, LAX, oidc.is_secure),
    ]
    return _redirect(signed_in.next, cookies)


@routes.post("/auth/logout", needs=Action.KNOW_ITSELF, status=204)
async def logout(call: HttpCall) -> Complete:
    """Signs out: ends the caller's session."""
    session = await _session(call)
    if session is not None:
        await call.services.access.revoke(session.token, session.name)
    cookies = (_session_cookie(call, "", 0),)
    return Complete(204, b"", headers=NO_STORE, cookies=cookies)


@routes.get("/api/v1/whoami", needs=Action.KNOW_ITSELF)
async def whoami(call: HttpCall) -> WhoAmI:
    """Returns who the caller is, as this server sees it."""
    return await _show(call, call.who)


async def _signs_in(call: HttpCall, data: SessionRequest) -> Identity:
    """Returns who signs in; raises `Unauthorized` or `Forbidden`."""
    if data.code is not None:
        now = None if data.replace else await _session(call)
        who = await call.services.access.use_link(data.code, now)
        if who is None:
            raise Unauthorized("this link was used already, or is too old: ask for a new one")
    else:
        who = await call.services.access.identify(data.token or "", 0)
        if who is None:
            raise Unauthorized("this token is not valid, or no longer valid")
    if who.role is Role.WORKER or who.shut_out:
        raise Forbidden("this is the token of a worker: sign in with that of a person")
    if not who.token:
        raise Forbidden("a token of an identity provider opens no session: sign in there")
    return who


async def _session(call: HttpCall) -> Identity | None:
    """Returns whose session the browser has; None if it has none that counts."""
    secret = session_of(dict(call.headers), call.services.callers.public_origin)
    return await call.services.access.identify(secret) if secret else None


async def _show(call: HttpCall, who: Identity) -> WhoAmI:
    return WhoAmI(
        name=who.name,
        role=str(who.role),
        namespaces=who.namespaces,
        actions=tuple(str(action) for action in Action if _offers(who, action)),
        at=await call.services.live.newest(),
    )


def _offers(who: Identity, action: Action) -> bool:
    return not RIGHTS[action].is_open and may(who, action)


def _web(call: HttpCall) -> tuple[Oidc, CodeFlow]:
    oidc, flow = call.services.callers.oidc, call.services.code_flow
    if oidc is None or flow is None:
        raise NotFound("sign-in", "on this server")
    return oidc, flow


def _begun_name(oidc: Oidc) -> str:
    return f"__Host-{BEGUN}" if oidc.is_secure else BEGUN


def _session_cookie(call: HttpCall, value: str, seconds: int) -> str:
    """Returns the cookie of a session, which our own page sends and nobody else."""
    origin = call.services.callers.public_origin
    secure = origin.startswith("https:") or call.is_secure
    name = session_cookie(dict(call.headers), origin, secure)
    return _cookie(name, value, seconds, STRICT, secure)


def _cookie(name: str, value: str, seconds: int, sent_by: str, is_secure: bool) -> str:
    """Returns a cookie that scripts cannot read and other sites cannot make a browser change."""
    secure = "; Secure" if is_secure else ""
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={sent_by}{secure}"


def _redirect(url: str, cookies: Sequence[str]) -> Complete:
    return Complete(302, b"", headers={**NO_STORE, "Location": url}, cookies=tuple(cookies))
