"""Slots under concurrency limits: who takes one, who is parked, who comes next.

Limits are locked behind all jobs and places, all at once and in order: what the commands
of a transaction want of them is gathered here, and done by `settle`. A claim comes after
that and meets further limits in any order. It waits for one only if that stands behind
all that are held; otherwise it takes what nobody holds and passes over the rest.
"""

from collections.abc import Iterable, Sequence

from windlass.domain.records import LimitRow, Ticket
from windlass.engine.catalog import Catalog
from windlass.engine.effects import Effects
from windlass.ports.store import Tx


class Slots:
    """What one transaction does under limits."""

    def __init__(self, tx: Tx, catalog: Catalog, effects: Effects) -> None:
        self._tx = tx
        self._catalog = catalog
        self._effects = effects
        self._arriving: list[Ticket] = []
        self._freed: dict[int, int] = {}  # limit → change of `leased`
        self._open: set[int] = set()  # limits under which a parked job may move up
        self._held: set[int] = set()

    def admit(self, tickets: Iterable[Ticket]) -> None:
        """These jobs may run as far as their limits go; the others are to be parked."""
        self._arriving += tickets

    def free(self, limit: int) -> None:
        """A lease under this limit has ended."""
        self._freed[limit] = self._freed.get(limit, 0) - 1

    def refill(self, limit: int) -> None:
        """A job under this limit left `ready`, or came back to `parked`."""
        self._open.add(limit)

    async def hold(self, limits: Iterable[int]) -> dict[int, LimitRow]:
        """Lock these limits; those that cannot be had without the risk of a deadlock are absent."""
        wanted = sorted(limits)
        new = [limit for limit in wanted if limit not in self._held]
        if new and new[0] < max(self._held, default=0):
            rows = await self._tx.limits.lock_free(wanted)
        else:
            rows = await self._tx.limits.lock(wanted)
        self._held.update(rows)
        return rows

    async def settle(self) -> None:
        """Do what was gathered."""
        arriving, self._arriving = self._arriving, []
        freed, self._freed = self._freed, {}
        opened, self._open = {*self._open, *freed}, set()
        wanted = {*opened, *(ticket.limit for ticket in arriving)}
        if not wanted:
            return
        rows = await self._tx.limits.lock(sorted(wanted))
        self._held.update(rows)
        if freed:
            await self._tx.limits.bump(freed)
        room = {limit: row.max - row.leased - freed.get(limit, 0) for limit, row in rows.items()}
        # Where a slot may be free, those who come wait in line with those who are parked.
        parked = [ticket for ticket in arriving if ticket.limit in opened]
        ready, over = await self._divide([t for t in arriving if t.limit not in opened], room)
        if parked or over:
            await self._tx.places.add_parked([*parked, *over])
        ready += await self._next(sorted(opened), room)
        if ready:
            await self._catalog.know(self._tx, (ticket.shape for ticket in ready))
            await self._tx.places.add_ready(ready)
            self._effects.arrive(ready)

    async def _divide(
        self, tickets: Sequence[Ticket], room: dict[int, int]
    ) -> tuple[list[Ticket], list[Ticket]]:
        """Those the limits leave room for, and the others."""
        left: dict[tuple[int, int], int] = {}
        ready: list[Ticket] = []
        over: list[Ticket] = []
        for ticket in sorted(tickets, key=lambda t: (t.limit, t.rank, t.job)):
            key = ticket.limit, ticket.shape
            if key not in left:
                left[key] = room[ticket.limit] - await self._tx.places.count_ready(*key)
            left[key] -= 1
            (ready if left[key] >= 0 else over).append(ticket)
        return ready, over

    async def _next(self, limits: Sequence[int], room: dict[int, int]) -> list[Ticket]:
        """Take the best parked jobs, per limit and shape, that there is room for."""
        chosen: list[Ticket] = []
        for limit in limits:
            if room[limit] <= 0:
                continue
            by_shape: dict[int, list[Ticket]] = {}
            for ticket in await self._tx.places.best_parked(limit, room[limit]):
                by_shape.setdefault(ticket.shape, []).append(ticket)
            for shape, tickets in sorted(by_shape.items()):
                standing = await self._tx.places.count_ready(limit, shape)
                chosen += tickets[: max(0, room[limit] - standing)]
        await self._tx.places.unpark(chosen)
        return chosen
