"""Signing in from the command line: the device flow (RFC 8628), and logins kept for later calls."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import aiohttp
import msgspec

from windlass.client.settings import LOGINS, config_directory
from windlass.domain.values.addresses import is_loopback
from windlass.domain.values.errors import Conflict, InvalidInput, Unreachable, WindlassError
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
        raise Conflict("wrong_issuer", f"{url} belongs to another issuer: {found.issuer[:200]}")
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


LOCK_PAUSE_SECONDS: Final = 0.05


class Login(msgspec.Struct, frozen=True):
    """What a sign-in stored. Without a `refresh_token` it ends with its token."""

    issuer: str
    client_id: str
    token: str
    refresh_token: str = ""


class Logins:
    """The file of logins."""

    def __init__(self, directory: Path | None = None) -> None:
        self._path = (directory or config_directory()) / LOGINS

    def find(self, server: str) -> Login | None:
        """Returns the login at this server, or at the first of several."""
        return self._read().get(_first(server))

    def keep(self, server: str, login: Login) -> None:
        """Stores a login; the file is private from the start, and never half written."""
        self._write({**self._read(), _first(server): login})

    def remove(self, server: str) -> Login | None:
        """Forgets a login and returns it."""
        known = self._read()
        login = known.pop(_first(server), None)
        if login is not None:
            self._write(known)
        return login

    async def renew(self, server: str, refused: str) -> str | None:
        """Returns a token to use instead of the refused one, or None if there is none.

        Only one process at a time asks: many providers accept a refresh token only once.
        """
        async with self._locked():
            login = self.find(server)
            if login is None:
                return None
            if login.token != refused:
                return login.token  # another process has renewed it
            if not login.refresh_token:
                return None
            try:
                fresh = await refresh(login.issuer, login.client_id, login.refresh_token)
            except WindlassError:
                return None  # the server's refusal says more than we know
            kept = fresh.refresh_token or login.refresh_token
            self.keep(server, Login(login.issuer, login.client_id, fresh.id_token, kept))
            return fresh.id_token

    def _read(self) -> dict[str, Login]:
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    raise InvalidInput(
                        "login", "kept in a file that only you can read (chmod 600)",
                        str(self._path),
                    )  # fmt: skip
                return msgspec.json.decode(file.read(), type=dict[str, Login])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError):
            raise InvalidInput("login", "a readable file of logins", str(self._path)) from None

    def _write(self, logins: dict[str, Login]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=self._path.parent, prefix=LOGINS, delete=False
        ) as file:
            file.write(msgspec.json.encode(logins))  # such files have mode 600
        Path(file.name).rename(self._path)

    @contextlib.asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        lock = self._path.with_suffix(".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await pass_time(LOCK_PAUSE_SECONDS)
            yield
        finally:
            os.close(descriptor)


def _first(server: str) -> str:
    return server.split(",", maxsplit=1)[0].strip().rstrip("/").lower()
