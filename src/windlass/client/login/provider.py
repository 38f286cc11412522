"""Talks to an identity provider for a person at a terminal (RFC 8628, device authorization)."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from windlass.domain.values.addresses import is_loopback
from windlass.domain.values.errors import Conflict, InvalidInput, Unreachable
from windlass.ports.loop_time import pass_time

T = TypeVar("T")

DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"
TIMEOUT: Final = aiohttp.ClientTimeout(total=15)
ANSWER_LIMIT: Final = 1024 * 1024
SLOWER_SECONDS: Final = 5
MAX_SECONDS: Final = 1_800  # that anybody may take to sign in


class Endpoints(msgspec.Struct, frozen=True):
    """What we use of a discovery document."""

    issuer: str
    token_endpoint: str
    device_authorization_endpoint: str = ""


class DeviceCode(msgspec.Struct, frozen=True):
    """What the person must open and type."""

    device_code: str
    user_code: str
    verification_uri: str
    verification_uri_complete: str = ""
    expires_in: float = 600
    interval: float = 5


class Tokens(msgspec.Struct, frozen=True):
    """The token from the provider, or why there is none."""

    id_token: str = ""
    refresh_token: str = ""
    error: str = ""
    error_description: str = ""


async def sign_in(
    issuer: str, client_id: str, scopes: tuple[str, ...], show: Callable[[DeviceCode], None]
) -> Tokens:
    """Shows a code, waits until the person has signed in, and returns their tokens."""
    async with aiohttp.ClientSession(timeout=TIMEOUT, trust_env=True) as session:
        found = await _discover(session, issuer)
        where = found.device_authorization_endpoint
        if not where:
            raise Conflict("no_device_flow", f"{issuer} offers no sign-in by device code")
        asked = {"client_id": client_id, "scope": " ".join(scopes)}
        code = _decode((await _post(session, where, asked))[1], DeviceCode)
        show(code)
        return await _wait(session, found.token_endpoint, client_id, code)


async def refresh(issuer: str, client_id: str, refresh_token: str) -> Tokens:
    """Returns fresh tokens; raises `Conflict` if the provider gives none."""
    form = {
        "grant_type": "refresh_token", "client_id": client_id, "refresh_token": refresh_token,
    }  # fmt: skip
    async with aiohttp.ClientSession(timeout=TIMEOUT, trust_env=True) as session:
        found = await _discover(session, issuer)
        status, body = await _post(session, found.token_endpoint, form)
        return _usable(status, _decode(body, Tokens))


async def _wait(
    session: aiohttp.ClientSession, where: str, client_id: str, code: DeviceCode
) -> Tokens:
    form = {"grant_type": DEVICE_GRANT, "client_id": client_id, "device_code": code.device_code}
    pause = max(0.0, code.interval)
    left = min(code.expires_in, MAX_SECONDS)
    while left > 0:
        await pass_time(pause)
        left -= max(pause, 0.1)
        status, body = await _post(session, where, form)
        tokens = _decode(body, Tokens)
        if tokens.error == "slow_down":
            pause += SLOWER_SECONDS
        elif tokens.error != "authorization_pending":
            return _usable(status, tokens)
    raise Conflict("login_expired", "nobody signed in with this code in time: run it again")


def _usable(status: int, tokens: Tokens) -> Tokens:
    if status != 200 or not tokens.id_token:
        why = tokens.error_description or tokens.error or "it sent no ID token"
        raise Conflict("login_refused", f"the identity provider refused: {why[:200]}")
    return tokens


async def _discover(session: aiohttp.ClientSession, issuer: str) -> Endpoints:
    _check_secure(issuer)
    url = issuer.rstrip("/") + "/.well-known/openid-configuration"
    found = _decode((await _request(session, "GET", url))[1], Endpoints)
    if found.issuer != issuer:
        raise Conflict("wrong_issuer", f"{url} is of another issuer: {found.issuer[:200]}")
    for address in (found.token_endpoint, found.device_authorization_endpoint):
        _check_secure(address or issuer)
    return found


async def _post(
    session: aiohttp.ClientSession, url: str, form: Mapping[str, str]
) -> tuple[int, bytes]:
    return await _request(session, "POST", url, form)


async def _request(
    session: aiohttp.ClientSession, method: str, url: str, form: Any = None
) -> tuple[int, bytes]:
    try:
        async with session.request(method, url, data=form, allow_redirects=False) as answer:
            return answer.status, await answer.content.read(ANSWER_LIMIT)
    except (aiohttp.ClientError, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise Unreachable(f"no identity provider at {url}: {why}", sent=True) from None


def _decode(body: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.MsgspecError:
        shown = body[:200].decode("utf-8", "replace")
        raise Conflict("login_refused", f"the identity provider answered: {shown}") from None


def _check_secure(url: str) -> None:
    """Raises `InvalidInput` for an address without TLS that is not on this machine."""
    parts = urlsplit(url)
    if parts.scheme != "https" and not (
        parts.scheme == "http" and is_loopback(parts.hostname or "")
    ):
        raise InvalidInput("issuer", "an https address", url)
