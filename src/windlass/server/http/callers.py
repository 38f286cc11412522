"""Bounds what each caller has under way: requests, costly ones, and large bodies in memory.

A caller is a token, or an address without one. A caller that exceeds its bound is told to wait,
and all others are served as before.
"""

from typing import Any, Final

from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.access.rights import Identity
from windlass.domain.values.errors import Overloaded, TooManyRequests
from windlass.ports.loop_time import pause_gc, resume_gc
from windlass.server.connections.guarded_http import CONNECTION
from windlass.server.connections.refusals import Count, Reason

RETRY_AFTER_MS: Final = 1_000

Caller = int | str


class Callers:
    """Counts requests and bytes by caller."""

    def __init__(self, limits: HttpLimits, count: Count) -> None:
        self._limits = limits
        self._count = count
        self._requests: dict[Caller, int] = {}
        self._costly: dict[Caller, int] = {}
        self._bytes: dict[Caller, int] = {}
        self._all_bytes = 0

    def enter(self, scope: Any, identity: Identity | None, is_costly: bool) -> "Turn":
        """Counts a request until its turn ends; raises `TooManyRequests`."""
        connection = scope.get(CONNECTION)
        caller: Caller
        if identity is not None:
            caller = identity.token or f"signed {identity.name}"
            if connection is not None and not identity.shut_out:
                connection.claim(caller)
        else:
            caller = source_of(scope)
        under_way = self._requests.get(caller, 0)
        if under_way >= self._limits.requests_per_caller:
            raise self._refuse(Reason.REQUESTS_PER_CALLER, "requests", under_way)
        if is_costly:
            self.spend(caller)
        self._requests[caller] = under_way + 1
        return Turn(self, caller, is_costly)

    def spend(self, caller: Caller) -> None:
        """Counts a costly request; raises `TooManyRequests`."""
        costly = self._costly.get(caller, 0)
        if costly >= self._limits.costly_per_caller:
            raise self._refuse(Reason.COSTLY_PER_CALLER, "requests of this kind", costly)
        self._costly[caller] = costly + 1

    def hold(self, caller: Caller, size: int) -> None:
        """Counts bytes of a body; raises if the caller, or all of them, hold too many."""
        held = self._bytes.get(caller, 0)
        if held + size > self._limits.body_memory_per_caller and held:
            raise self._refuse(Reason.BODY_MEMORY, "bytes", held)
        if self._all_bytes + size > self._limits.body_memory and self._all_bytes:
            self._count(Reason.BODY_MEMORY)
            raise Overloaded(RETRY_AFTER_MS)
        self._bytes[caller] = held + size
        self._all_bytes += size

    def leave(self, caller: Caller, is_costly: bool, held: int) -> None:
        """Forgets a request that was answered."""
        _less(self._requests, caller, 1)
        if is_costly:
            _less(self._costly, caller, 1)
        if held:
            _less(self._bytes, caller, held)
            self._all_bytes -= held

    def _refuse(self, reason: Reason, what: str, number: int) -> TooManyRequests:
        self._count(reason)
        message = f"this caller already has {number} {what} in progress: try again in a second"
        return TooManyRequests(RETRY_AFTER_MS, message)


class Turn:
    """One request under way; `hold` counts the bytes of its body."""

    __slots__ = ("_callers", "_held", "_pauses", "caller", "is_costly")

    def __init__(self, callers: Callers, caller: Caller, is_costly: bool) -> None:
        self._callers = callers
        self.caller = caller
        self.is_costly = is_costly
        self._held = 0
        self._pauses = False

    def hold(self, size: int) -> None:
        """Counts bytes that stay in memory until the request is answered."""
        self._callers.hold(self.caller, size)
        self._held += size

    def spend(self) -> None:
        """Counts it as a costly one, which its path alone does not say."""
        if not self.is_costly:
            self._callers.spend(self.caller)
            self.is_costly = True

    def pause_collector(self) -> None:
        """Pauses the garbage collector until the end: it would walk the many jobs of the body."""
        pause_gc()
        self._pauses = True

    def end(self) -> None:
        """Ends it: the request was answered."""
        if self._pauses:
            resume_gc()
        self._callers.leave(self.caller, self.is_costly, self._held)


def _less(counts: dict[Caller, int], caller: Caller, by: int) -> None:
    left = counts[caller] - by
    if left:
        counts[caller] = left
    else:
        del counts[caller]


def source_of(scope: Any) -> str:
    """Returns the address that a request comes from, as far as trusted proxies say so."""
    connection = scope.get(CONNECTION)
    if connection is not None:
        return str(connection.source(scope["headers"]))
    client = scope.get("client")
    return client[0] if client else ""
