"""Counts the connections of each caller, and makes room when there are too many.

A connection belongs to its address until a request on it presents a valid token; then it belongs
to that token. So thousands of workers behind one address do not compete with each other.
"""

import resource
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Final, Protocol

from windlass.domain.access.http_limits import HttpLimits
from windlass.server.connections.refusals import FULL, FULL_FOR_CALLER, Count, Refusal

FILES_KEPT: Final = 256  # open files that are not connections: the store, blobs, processes
LOOKED_AT: Final = 2_000  # connections, until we give up to find one without a request
UNLIMITED: Final = 2**31

Owner = str | int  # an address, or the number of a token


class Guest(Protocol):
    """A connection, as the census sees it."""

    owner: Owner

    @property
    def is_busy(self) -> bool:
        """Whether a request on it is being answered."""
        ...

    def end(self) -> None:
        """Closes it at once and leaves the census."""
        ...

    def look(self, now: float) -> None:
        """Ends what takes too long."""
        ...


class Census:
    """All connections of a server, in the order in which they came."""

    def __init__(self, limits: HttpLimits, count: Count) -> None:
        self._per_owner = limits.connections_per_caller
        self._most = min(limits.connections, _files_for_connections())
        self._count = count
        self._by_owner: dict[Owner, dict[Guest, None]] = {}
        self._strangers: dict[Guest, None] = {}  # those that belong to an address
        self.size = 0

    def __iter__(self) -> Iterator[Guest]:
        return iter([guest for guests in self._by_owner.values() for guest in guests])

    def admit(self, guest: Guest, limited: bool = True) -> Refusal | None:
        """Counts a new connection, or says why there is no room for it.

        An older one without a request makes room. A proxy's connections are not `limited`.
        """
        if limited and not self._has_room_for(guest.owner):
            self._count(FULL_FOR_CALLER.reason)
            return FULL_FOR_CALLER
        if self.size >= self._most:
            self._count(FULL.reason)
            if not _end_one(self._strangers):
                return FULL
        self._add(guest)
        self._strangers[guest] = None
        return None

    def claim(self, guest: Guest, token: int | str) -> None:
        """Notes that a connection belongs to a token from now on."""
        if guest not in self._by_owner.get(guest.owner, ()):
            return  # it is gone
        self._remove(guest)
        if not self._has_room_for(token):
            self._count(FULL_FOR_CALLER.reason)
        guest.owner = token
        self._add(guest)

    def leave(self, guest: Guest) -> None:
        """Forgets a connection that has ended."""
        if guest in self._by_owner.get(guest.owner, ()):
            self._remove(guest)

    def _has_room_for(self, owner: Owner) -> bool:
        guests = self._by_owner.get(owner, {})
        return len(guests) < self._per_owner or _end_one(guests)

    def _add(self, guest: Guest) -> None:
        self._by_owner.setdefault(guest.owner, {})[guest] = None
        self.size += 1

    def _remove(self, guest: Guest) -> None:
        guests = self._by_owner[guest.owner]
        del guests[guest]
        if not guests:
            del self._by_owner[guest.owner]
        self._strangers.pop(guest, None)
        self.size -= 1


def _end_one(guests: dict[Guest, None]) -> bool:
    """Ends the oldest connection without a request; False if the oldest ones all have one."""
    idle = next((guest for guest in islice(guests, LOOKED_AT) if not guest.is_busy), None)
    if idle is not None:
        idle.end()
    return idle is not None


def raise_file_limit() -> None:
    """Lets this process open as many files as it may, since each connection is one."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _files_for_connections() -> int:
    """Returns how many connections the limit of open files allows."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else max(soft - FILES_KEPT, soft // 2)
