"""Signs a browser in: authorization code with PKCE, and a session in a cookie.

Between the two steps, a cookie of the browser holds the state, the nonce and the verifier, so
that any server can take the second step, and an anonymous caller makes us store nothing. The state
is signed: without one of ours, nobody makes us ask the provider. Anybody may begin, and each end
asks the provider, so both are bounded.
"""

import base64
import hashlib
import hmac
import os
import re
from collections import OrderedDict
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlencode

import msgspec

from windlass.domain.access.rights import Identity
from windlass.domain.access.sign_in import Oidc, TokenRefused, check_claims, check_nonce, person
from windlass.domain.values.errors import InvalidInput, TooManyRequests
from windlass.operations.dispatch.errors import Unauthorized
from windlass.ports.clock import Clock, Secrets
from windlass.server.connections.refusals import Count, Reason
from windlass.server.sign_in.callers import SignedCallers
from windlass.server.sign_in.provider import Metadata, ProviderAway
from windlass.server.sign_in.signatures import verify
from windlass.server.sign_in.states import States

WINDOW_MS: Final = 60_000
REMEMBERED: Final = 10_000  # addresses
MAX_AT_ONCE: Final = 16  # codes that the provider is asked about, whoever sent them

BEGUN: Final = "windlass_sign_in"
NEXT_LIMIT: Final = 1_000
_LOCAL: Final = re.compile(r"/(?![/\\])[!-\[\]-~]*")  # a path of this server, nothing else
_BEGUN: Final = re.compile(r"[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{43}\.[A-Za-z0-9_-]{43}\.[^;, ]*")
NOT_BEGUN: Final = "this sign-in began in another browser, or too long ago: sign in again"


class SignInRate:
    """Counts the requests of each address in the current minute."""

    def __init__(self, most: int, count: Count, clock: Clock) -> None:
        self._most = most
        self._count = count
        self._clock = clock
        self._window = 0
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._under_way = 0

    def enter(self, address: str) -> None:
        """Counts a request; raises `TooManyRequests`."""
        now = self._clock.now_ms()
        if now // WINDOW_MS != self._window:
            self._window = now // WINDOW_MS
            self._counts.clear()
        made = self._counts.pop(address, 0)
        self._counts[address] = made + 1
        if len(self._counts) > REMEMBERED:
            self._counts.popitem(last=False)
        if made >= self._most:
            message = f"{self._most} sign-ins from this address in a minute: try again later"
            raise self._refuse(WINDOW_MS - now % WINDOW_MS, message)

    def __enter__(self) -> None:
        """Begins to ask the provider; raises `TooManyRequests`."""
        if self._under_way >= MAX_AT_ONCE:
            raise self._refuse(1_000, f"{self._under_way} sign-ins are under way: try again")
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1

    def _refuse(self, retry_after_ms: int, message: str) -> TooManyRequests:
        self._count(Reason.SIGN_INS)
        return TooManyRequests(retry_after_ms, message)


class Begun(NamedTuple):
    """Where to send the browser, and what its cookie holds meanwhile."""

    url: str
    cookie: str


class SignedIn(NamedTuple):
    """Who came back, and where they wanted to go."""

    who: Identity
    next: str


class _Tokens(msgspec.Struct, frozen=True):
    id_token: str = ""
    error: str = ""


class CodeFlow:
    """The two steps of a browser's sign-in."""

    def __init__(
        self,
        callers: SignedCallers,
        oidc: Oidc,
        *,
        states: States,
        rate: SignInRate,
        secrets: Secrets,
        clock: Clock,
    ) -> None:
        self._callers = callers
        self._oidc = oidc
        self._states = states
        self._secrets = secrets
        self._clock = clock
        self._secret = _read_secret(oidc.client_secret_file)
        self.rate = rate

    async def begin(self, to: str) -> Begun:
        """Returns the address of the provider's page."""
        if len(to) > NEXT_LIMIT or not _LOCAL.fullmatch(to):
            raise InvalidInput("to", "a path of this server", to[:NEXT_LIMIT])
        found = await self._callers.provider(self._oidc.issuer).metadata()
        if not found.authorization_endpoint or not found.token_endpoint:
            raise ProviderAway("it has no authorization_endpoint or token_endpoint")
        state = await self._states.issue()
        nonce, verifier = self._secrets.secret(), self._secrets.secret()
        asked = urlencode({
            "response_type": "code",
            "client_id": self._oidc.client_id,
            "redirect_uri": self._oidc.callback_url,
            "scope": " ".join(self._oidc.scopes),
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge_of(verifier),
            "code_challenge_method": "S256",
        })  # fmt: skip
        separator = "&" if "?" in found.authorization_endpoint else "?"
        cookie = ".".join([state, nonce, verifier, quote(to, safe="/")])
        return Begun(f"{found.authorization_endpoint}{separator}{asked}", cookie)

    async def finish(self, cookie: str, state: str, code: str, issuer: str | None) -> SignedIn:
        """Returns who signed in; raises `Unauthorized` unless this browser began it."""
        if not _BEGUN.fullmatch(cookie):
            raise Unauthorized(NOT_BEGUN)
        expected, nonce, verifier, to = cookie.split(".", 3)
        same = hmac.compare_digest(expected, state)
        if not same or not await self._states.accept(state):
            raise Unauthorized(NOT_BEGUN)
        if issuer is not None and issuer != self._oidc.issuer:
            raise Unauthorized("the answer comes from another identity provider")
        to = _unquoted(to)
        provider = self._callers.provider(self._oidc.issuer)
        found = await provider.metadata()
        with self.rate:
            token = await self._redeem(found, code, verifier)
        try:
            claims = await verify(token, provider)
            now_s = self._clock.now_ms() / 1000
            check_claims(claims, self._oidc.issuer, (self._oidc.client_id,), now_s)
            check_nonce(claims, nonce)
            return SignedIn(person(claims, self._oidc), to)
        except TokenRefused as error:
            raise Unauthorized(error.message) from None

    async def _redeem(self, found: Metadata, code: str, verifier: str) -> str:
        """Returns the ID token for a code."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._oidc.callback_url,
            "client_id": self._oidc.client_id,
            "code_verifier": verifier,
        }
        auth = ""
        if self._secret and "client_secret_basic" in found.token_endpoint_auth_methods_supported:
            pair = f"{quote(self._oidc.client_id, safe='')}:{quote(self._secret, safe='')}"
            auth = f"Basic {base64.b64encode(pair.encode()).decode()}"
        elif self._secret:
            form["client_secret"] = self._secret
        status, body = await self._callers.fetcher.post(found.token_endpoint, form, auth)
        if status >= 500:
            raise ProviderAway(f"status {status} for a code")
        try:
            tokens = msgspec.json.decode(body, type=_Tokens)
        except msgspec.MsgspecError:
            raise ProviderAway("it sent something else for a code") from None
        if status != 200 or tokens.id_token.count(".") != 2:
            why = tokens.error[:100] if tokens.error.isprintable() else ""
            raise Unauthorized(f"the identity provider refused the sign-in: {why or status}")
        return tokens.id_token


def challenge_of(verifier: str) -> str:
    """Returns the PKCE challenge (S256) of a verifier."""
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _unquoted(to: str) -> str:
    """Returns where to go next; the cookie may hold anything, so it is checked again."""
    path = unquote(to)
    return path if _LOCAL.fullmatch(path) else "/"


def _read_secret(path: str) -> str:
    if not path:
        return ""
    try:
        with Path(path).open(encoding="utf-8") as file:
            if os.fstat(file.fileno()).st_mode & 0o007:
                expected = "a file that others cannot read (chmod o-rwx)"
                raise InvalidInput("access.oidc.client_secret_file", expected, path)
            return file.read().strip()
    except (OSError, UnicodeDecodeError):
        field = "access.oidc.client_secret_file"
        raise InvalidInput(field, "a readable file", path) from None
