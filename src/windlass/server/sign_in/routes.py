"""Routes of sign-in: the browser's way to the provider and back, and what the CLI asks."""

from collections.abc import Sequence
from typing import Final

from windlass.api.errors import Unauthorized
from windlass.domain.access.actions import Action
from windlass.domain.access.sign_in import Oidc
from windlass.domain.values.errors import NotFound
from windlass.server.http.authentication import cookie_of
from windlass.server.http.call import Call
from windlass.server.http.replies import Complete
from windlass.server.http.routes import EACH, Routes
from windlass.server.sign_in.code_flow import BEGUN, CodeFlow
from windlass.server.sign_in.states import LIFETIME_SECONDS
from windlass.wire.access import LoginSettings, WhoAmI

NO_STORE: Final = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}

routes = Routes("", "sign-in")


@routes.get("/auth/settings", needs=Action.SIGN_IN)
async def login_settings(call: Call) -> LoginSettings:
    """Returns where `windlass login` signs in."""
    oidc = call.services.callers.oidc
    if oidc is None:
        raise NotFound("sign-in", "on this server")
    scopes = tuple(dict.fromkeys((*oidc.scopes, "offline_access")))
    return LoginSettings(issuer=oidc.issuer, client_id=oidc.login_client, scopes=scopes)


@routes.get("/auth/login", needs=Action.SIGN_IN, status=302)
async def login(call: Call, to: str = "/") -> Complete:
    """Sends a browser to the identity provider."""
    oidc, flow = _web(call)
    flow.rate.enter(call.source)
    begun = await flow.begin(to)
    cookie = _cookie(oidc, _begun_name(oidc), begun.cookie, LIFETIME_SECONDS)
    return _redirect(begun.url, [cookie])


@routes.get("/auth/callback", needs=Action.SIGN_IN, status=302, audit=EACH)
async def callback(
    call: Call, state: str = "", code: str = "", error: str = "", iss: str | None = None
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
        _cookie(oidc, call.services.callers.cookie, secret, lifetime_ms // 1000),
        _cookie(oidc, _begun_name(oidc), "", 0),
    ]
    return _redirect(signed_in.next, cookies)


@routes.post("/auth/logout", needs=Action.KNOW_ITSELF, status=204)
async def logout(call: Call) -> Complete:
    """Ends the caller's session."""
    oidc, _ = _web(call)
    secret = cookie_of(call.header(b"cookie"), call.services.callers.cookie)
    session = await call.services.access.identify(secret) if secret else None
    if session is not None:
        await call.services.access.revoke(session.token, session.name)
    cookies = (_cookie(oidc, call.services.callers.cookie, "", 0),)
    return Complete(204, b"", headers=NO_STORE, cookies=cookies)


@routes.get("/api/v1/whoami", needs=Action.KNOW_ITSELF)
async def whoami(call: Call) -> WhoAmI:
    """Returns who the caller is, as this server sees it."""
    who = call.who
    return WhoAmI(name=who.name, role=str(who.role), namespaces=who.namespaces)


def _web(call: Call) -> tuple[Oidc, CodeFlow]:
    oidc, flow = call.services.callers.oidc, call.services.code_flow
    if oidc is None or flow is None:
        raise NotFound("sign-in", "on this server")
    return oidc, flow


def _begun_name(oidc: Oidc) -> str:
    return f"__Host-{BEGUN}" if oidc.is_secure else BEGUN


def _cookie(oidc: Oidc, name: str, value: str, seconds: int) -> str:
    """Returns a cookie that scripts cannot read and other sites cannot make a browser change."""
    secure = "; Secure" if oidc.is_secure else ""
    return f"{name}={value}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Lax{secure}"


def _redirect(url: str, cookies: Sequence[str]) -> Complete:
    return Complete(302, b"", headers={**NO_STORE, "Location": url}, cookies=tuple(cookies))
