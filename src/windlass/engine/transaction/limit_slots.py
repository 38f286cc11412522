"""Slots under concurrency limits: which jobs get one, which are parked, which come next.

Limits are locked after all jobs and places, all at once and in order. So we collect here what the
commands of a transaction need, and `settle` does it. A claim comes after that and meets further
limits in any order. It waits for a lock only if the limit comes after all that it holds; otherwise
it takes what is free and skips the rest.
"""

from collections.abc import Iterable, Sequence

from windlass.domain.rows.records import LimitRow, RateRow, Ticket
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.effects import Effects
from windlass.store.sql.placement import RateKey
from windlass.store.sql.transaction import WriteTx


class Slots:
    """What one transaction does under limits."""

    def __init__(self, tx: WriteTx, catalog: Catalog, effects: Effects) -> None:
        self._tx = tx
        self._catalog = catalog
        self._effects = effects
        self._arriving: list[Ticket] = []
        self._freed: dict[int, int] = {}  # limit → change of `leased`
        self._risen: list[Ticket] = []
        self._open: set[int] = set()  # limits under which a parked job may move up
        self._held: set[int] = set()
        self._left: dict[tuple[int, str], int] = {}  # queue limit → ended leases under it
        self._rates: dict[RateKey, RateRow] = {}  # held

    def admit(self, tickets: Iterable[Ticket]) -> None:
        """Queues these jobs as far as their limits allow; parks the others."""
        self._arriving += tickets

    def free(self, limit: int) -> None:
        """Frees a slot: a lease under this limit has ended."""
        self._freed[limit] = self._freed.get(limit, 0) - 1

    def leave(self, limit: int, queue: str) -> None:
        """Frees a queue's slot: a lease under its limit has ended."""
        self._left[limit, queue] = self._left.get((limit, queue), 0) + 1

    def refill(self, limit: int) -> None:
        """Notes that a job under this limit left `ready` or returned to `parked`."""
        self._open.add(limit)

    def rise(self, ticket: Ticket) -> None:
        """Notes that a parked job has a new rank, so that its order must be checked again."""
        self._risen.append(ticket)
        self._open.add(ticket.known_limit)

    async def hold(self, limits: Iterable[int]) -> dict[int, LimitRow]:
        """Locks these limits; leaves out those that it cannot lock without risking a deadlock."""
        wanted = sorted(limits)
        new = [limit for limit in wanted if limit not in self._held]
        if new and (self._rates or new[0] < max(self._held, default=0)):
            rows = await self._tx.limits.lock_free(wanted)
        else:
            rows = await self._tx.limits.lock(wanted)
        self._held.update(rows)
        return rows

    async def hold_rates(self, keys: Sequence[RateKey]) -> dict[RateKey, RateRow]:
        """Locks these rates, after all limits; may leave out those that others hold."""
        new = sorted(key for key in keys if key not in self._rates)
        if new:
            first = not self._rates or new[0] > max(self._rates)
            self._rates.update(await self._tx.placement.lock_rates(new, wait=first))
        return {key: self._rates[key] for key in keys if key in self._rates}

    def kept_starts(self, key: RateKey) -> int:
        """Returns how many starts under a locked rate are remembered."""
        return self._rates[key].keep

    async def put_rates(self, rows: Sequence[RateRow]) -> None:
        """Writes locked rates."""
        self._rates.update({(row.namespace, row.key): row for row in rows})
        await self._tx.placement.put_rates(rows)

    async def settle(self) -> None:
        """Does everything that was collected."""
        left, self._left = self._left, {}
        risen, self._risen = self._risen, []
        arriving, self._arriving = self._arriving, []
        freed, self._freed = self._freed, {}
        opened, self._open = {*self._open, *freed}, set()
        wanted = {
            *opened,
            *(ticket.known_limit for ticket in arriving),
            *(limit for limit, _ in left),
        }
        if not wanted:
            return
        rows = await self._tx.limits.lock(sorted(wanted))
        self._held.update(rows)
        if freed or left:
            ended = {limit: -count for (limit, _), count in left.items()}
            await self._tx.limits.bump({**freed, **ended})
        for (_, queue), count in left.items():
            self._effects.free(queue, count)
        room = {limit: row.max - row.leased - freed.get(limit, 0) for limit, row in rows.items()}
        # If a slot may be free, new jobs compete with the parked ones.
        parked = [ticket for ticket in arriving if ticket.limit in opened]
        ready, over = await self._divide([t for t in arriving if t.limit not in opened], room)
        if parked or over:
            await self._tx.places.add_parked([*parked, *over])
        ready += await self._next(sorted(opened), room)
        moved: set[int] = {ticket.job for ticket in ready}
        ready += await self._pass_ready([*parked, *over, *risen], moved)
        if ready:
            await self._catalog.know(self._tx, (ticket.shape for ticket in ready))
            await self._tx.places.add_ready(ready)
            self._effects.arrive(ready)

    async def _divide(
        self, tickets: Sequence[Ticket], room: dict[int, int]
    ) -> tuple[list[Ticket], list[Ticket]]:
        """Returns the jobs that the limits have room for, and the others."""
        left: dict[tuple[int, int], int] = {}
        ready: list[Ticket] = []
        over: list[Ticket] = []
        for ticket in sorted(tickets, key=lambda t: (t.known_limit, t.rank, t.job)):
            key = ticket.known_limit, ticket.shape
            if key not in left:
                left[key] = room[key[0]] - await self._tx.places.count_ready(*key)
            left[key] -= 1
            (ready if left[key] >= 0 else over).append(ticket)
        return ready, over

    async def _pass_ready(self, parked: Sequence[Ticket], moved: set[int]) -> list[Ticket]:
        """Swaps jobs just parked with less urgent ones in `ready`."""
        places, passing = self._tx.places, []
        for ticket in sorted(parked, key=lambda t: (t.rank, t.job)):
            if ticket.job in moved:
                continue
            worst = await places.worst_ready(ticket.known_limit, ticket.shape)
            if worst is None or (worst.rank, worst.job) < (ticket.rank, ticket.job):
                continue
            await places.park([worst])
            await places.unpark([ticket])
            passing.append(ticket)
        return passing

    async def _next(self, limits: Sequence[int], room: dict[int, int]) -> list[Ticket]:
        """Takes the best parked jobs that there is room for, per limit and shape."""
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
