"""Bounds how often an address signs in: anybody may begin, and each end asks the provider."""

from collections import OrderedDict
from typing import Final

from windlass.domain.values.errors import TooManyRequests
from windlass.ports.clock import Clock
from windlass.server.connections.refusals import Count, Reason

WINDOW_MS: Final = 60_000
REMEMBERED: Final = 10_000  # addresses
MAX_AT_ONCE: Final = 16  # codes that the provider is asked about, whoever sent them


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
