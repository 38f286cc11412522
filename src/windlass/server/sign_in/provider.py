"""An identity provider: its endpoints and keys, fetched when needed and kept for a while.

Only issuers from the settings are ever asked, never one that a token names.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import msgspec
import structlog

from windlass.domain.values.addresses import is_loopback
from windlass.domain.values.errors import StoreUnavailable
from windlass.ports.clock import Clock
from windlass.ports.loop_time import load

if TYPE_CHECKING:
    import aiohttp

FRESH_MS: Final = 600_000  # how long keys count before they are fetched again
STALE_MS: Final = 3_600_000  # how long they count while the provider does not answer
RETRY_MS: Final = 10_000  # between two fetches, whatever tokens come
ANSWER_LIMIT: Final = 1024 * 1024
TIMEOUT_S: Final = 10

log = structlog.get_logger("windlass.server")


class ProviderAway(StoreUnavailable):
    """The identity provider did not answer usefully."""

    def __init__(self, why: str) -> None:
        super().__init__(f"the identity provider does not answer: {why}", outcome_unknown=False)


class Metadata(msgspec.Struct, frozen=True):
    """What we use of a discovery document."""

    issuer: str
    jwks_uri: str
    authorization_endpoint: str = ""
    token_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)


class _KeySet(msgspec.Struct, frozen=True):
    keys: list[dict[str, Any]]


class Fetcher:
    """Makes requests to providers, within limits of time and size and without redirects."""

    def __init__(self) -> None:
        self._opened: aiohttp.ClientSession | None = None

    async def get(self, url: str) -> bytes:
        """Returns the body of a successful answer; raises `ProviderAway`."""
        status, body = await self._send("GET", url, {})
        if status != 200:
            raise ProviderAway(f"status {status} from {url}")
        return body

    async def post(
        self, url: str, form: Mapping[str, str], authorization: str = ""
    ) -> tuple[int, bytes]:
        """Returns status and body; raises `ProviderAway` if there is no answer."""
        headers = {"Authorization": authorization} if authorization else {}
        return await self._send("POST", url, headers, form)

    async def close(self) -> None:
        """Closes the connections."""
        if self._opened is not None:
            await self._opened.close()

    async def _send(
        self, method: str, url: str, headers: Mapping[str, str], form: Any = None
    ) -> tuple[int, bytes]:
        if self._opened is None:
            await load("aiohttp")  # servers without single sign-on never need it
        import aiohttp

        if self._opened is None:
            self._opened = aiohttp.ClientSession(
                timeout=aiohttp.ClientTimeout(total=TIMEOUT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=True,
            )
        try:
            async with self._opened.request(
                method, url, data=form, headers=headers, allow_redirects=False
            ) as answer:
                body = await answer.content.read(ANSWER_LIMIT)
                if not answer.content.at_eof():
                    raise ProviderAway(f"the answer of {url} is too large")
                return answer.status, body
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ProviderAway(str(error) or type(error).__name__) from None


class Provider:
    """One issuer."""

    def __init__(self, issuer: str, fetcher: Fetcher, clock: Clock) -> None:
        self.issuer = issuer
        self._fetcher = fetcher
        self._clock = clock
        self._metadata: Metadata | None = None
        self._keys: list[dict[str, Any]] = []
        self._fetched_at: int | None = None
        self._tried_at: int | None = None
        self._failure: ProviderAway | None = None
        self._lock = asyncio.Lock()

    async def metadata(self) -> Metadata:
        """Returns the discovery document, which is fetched with the keys."""
        await self._refresh_if(self._age() >= FRESH_MS)
        if self._metadata is None:
            raise self._failure or ProviderAway("it was not asked yet")
        return self._metadata

    async def keys(self, kid: str | None) -> list[dict[str, Any]]:
        """Returns the keys that may have signed: those with this id, or all without one.

        An unknown id makes us look for new keys, but not more often than `RETRY_MS`.
        """
        await self._refresh_if(self._age() >= FRESH_MS)
        if not self._with(kid):
            await self._refresh_if(True)
        if self._age() >= STALE_MS:
            raise self._failure or ProviderAway("its keys are too old")
        return self._with(kid)

    def _with(self, kid: str | None) -> list[dict[str, Any]]:
        return [key for key in self._keys if kid is None or key.get("kid") == kid]

    def _age(self) -> int:
        return STALE_MS if self._fetched_at is None else self._clock.now_ms() - self._fetched_at

    async def _refresh_if(self, wanted: bool) -> None:
        if not wanted:
            return
        asked_at = self._clock.now_ms()
        async with self._lock:
            if self._tried_at is not None and (
                self._tried_at >= asked_at or asked_at - self._tried_at < RETRY_MS
            ):
                return
            self._tried_at = asked_at
            try:
                await self._refresh()
                self._fetched_at, self._failure = self._clock.now_ms(), None
            except ProviderAway as error:
                self._failure = error
                log.warning("identity provider", issuer=self.issuer, error=error.message)

    async def _refresh(self) -> None:
        url = self.issuer.rstrip("/") + "/.well-known/openid-configuration"
        try:
            found = msgspec.json.decode(await self._fetcher.get(url), type=Metadata)
            if found.issuer != self.issuer:
                raise ProviderAway(f"{url} is of the issuer {found.issuer[:200]!r}")
            for address in (found.jwks_uri, found.authorization_endpoint, found.token_endpoint):
                _check_secure(address)
            keys = msgspec.json.decode(await self._fetcher.get(found.jwks_uri), type=_KeySet)
        except msgspec.MsgspecError as error:
            raise ProviderAway(f"it sent something else: {error}") from None
        self._metadata, self._keys = found, keys.keys


def _check_secure(url: str) -> None:
    """Raises `ProviderAway` for an address without TLS that is not on this machine."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        raise ProviderAway("it names an address that is none") from None
    if url and parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise ProviderAway(f"it names an address without https: {url[:200]}")
