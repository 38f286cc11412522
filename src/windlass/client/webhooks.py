"""Sends webhooks: to public addresses only, without redirects, within a time limit.

It resolves the receiver's name, checks every address, and connects to one of the checked
addresses. A name that resolves to another address a moment later gains nothing.
"""

import socket
from collections.abc import Sequence
from typing import Final

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver
from yarl import URL

from windlass.domain.values.addresses import Network
from windlass.domain.values.errors import causes_of
from windlass.domain.webhooks import is_numeric, may_reach, sign
from windlass.ports.clock import Clock
from windlass.ports.webhooks import Delivered, Delivery

READ_LIMIT: Final = 64 * 1024
AGENT: Final = "windlass-webhooks"
REFUSED: Final = "the address is not a public one (webhook_networks allows others)"


class Refused(OSError):
    """The receiver has an address that webhooks must not reach."""


class CheckingResolver(AbstractResolver):
    """Returns only public or allowed addresses; refuses a name that has any other."""

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._allowed = allowed
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._resolver.resolve(host, port, family)
        good = [one for one in found if may_reach(one["host"], self._allowed)]
        # A name with public and private addresses is an attack or a mistake.
        if len(good) < len(found) or not found:
            raise Refused(REFUSED)
        return good

    async def close(self) -> None:
        await self._resolver.close()


class HttpCourier:
    """Implements `Courier`."""

    def __init__(self, clock: Clock, timeout_ms: int, allowed: Sequence[Network] = ()) -> None:
        self._clock = clock
        self._allowed = allowed
        self._limit = aiohttp.ClientTimeout(total=timeout_ms / 1000)
        self._opened: aiohttp.ClientSession | None = None

    async def deliver(self, delivery: Delivery) -> Delivered:
        """Sends one webhook; failures are reported in the result, not raised."""
        host = URL(delivery.url, encoded=True).host or ""
        # The resolver does not see numeric addresses, so they are checked here.
        if is_numeric(host) and not may_reach(host, self._allowed):
            return Delivered(False, None, REFUSED, final=True)
        try:
            return await self._post(delivery)
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            refused = is_refusal(error)
            message = REFUSED if refused else str(error) or type(error).__name__
            return Delivered(False, None, message, final=refused)

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def _post(self, delivery: Delivery) -> Delivered:
        now = self._clock.now_ms() // 1000
        headers = {
            "Content-Type": "application/json",
            "User-Agent": AGENT,
            "Windlass-Delivery": delivery.id,
            "Windlass-Timestamp": str(now),
            "Windlass-Signature": f"sha256={sign(delivery.secret, now, delivery.body)}",
        }
        async with self._session.post(
            URL(delivery.url, encoded=True), data=delivery.body, headers=headers,
            timeout=self._limit, allow_redirects=False,
        ) as response:  # fmt: skip
            await response.content.read(READ_LIMIT)
            ok = 200 <= response.status < 300
            message = None
            if 300 <= response.status < 400:
                message = f"answered {response.status}: redirects are not followed"
            return Delivered(ok, response.status, message)

    @property
    def _session(self) -> aiohttp.ClientSession:
        """Opens with the first webhook; uses no proxies, which would resolve names themselves."""
        if self._opened is None:
            connector = aiohttp.TCPConnector(
                resolver=CheckingResolver(self._allowed), use_dns_cache=False, force_close=True
            )
            self._opened = aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
            )
        return self._opened


def is_refusal(error: BaseException) -> bool:
    return any(isinstance(cause, Refused) for cause in causes_of(error))
