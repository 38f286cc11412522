"""The gates between a match and a claim: resources in use, limits of queues, rates.

Shapes without gates never come here. For the others, we read what a decision needs in the claim's
own transaction, under locks that last until its end: what the workers hold (every claim locks their
rows), the row of a limited queue, the starts under a rate. If no worker here may have another job
of a shape, the shape is closed and the search skips it.
"""

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence

from windlass.domain.matching.claim_planning import Demand
from windlass.domain.matching.indices import Indices, held_by, pick, write_indices
from windlass.domain.matching.room import MANY, Room, needs_of
from windlass.domain.matching.shapes import (
    Rate,
    Shape,
    opens_at,
    read_starts,
    room_in,
    write_starts,
)
from windlass.domain.rows.records import RateRow, Ticket
from windlass.engine.transaction.catalog import Profile
from windlass.engine.transaction.effects import WorkerLoad
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.placement import RateKey


class Gates:
    """The gates of one search; they also count what the search assigns."""

    def __init__(self, work: Work, profile: Profile, left: dict[int, int]) -> None:
        self._work = work
        self._catalog = work.catalog
        self._profile = profile
        self.left = left  # worker → how many jobs it still wants; maintained by the search
        self._rooms: dict[int, Room] = {}
        self._queues: dict[str, int] = {}  # limited queue → how many more may run
        self._rates: dict[RateKey, list[int]] = {}
        self._opened: dict[int, Shape] = {}
        self._held: dict[int, dict[str, set[str]]] = {}  # worker → indices in use, by resource
        self.busy: set[int] = set()  # shapes whose limit or rate another transaction holds

    def unopened(self, shapes: Iterable[int]) -> list[int]:
        """Returns those of these gated shapes that must be opened first."""
        return [shape for shape in shapes if shape not in self._opened]

    async def open(self, shapes: Sequence[int]) -> None:
        """Reads, under locks, what decisions about these shapes need."""
        known = {shape: self._catalog.shapes[shape] for shape in shapes}
        self._opened.update(known)
        if not self._rooms:
            await self._open_rooms()
        await self._open_queues(known)
        await self._open_rates(known)

    async def _open_rooms(self) -> None:
        catalog, metadata = self._catalog, self._profile.metadata
        loads = await self._work.tx.placement.loads(list(self.left))
        await catalog.know(self._work.tx, (load.shape for load in loads))
        for worker in self.left:
            kept = catalog.reserved.get(worker)
            shape = None if kept is None else catalog.shapes.get(kept.shape)
            self._rooms[worker] = Room(metadata, shape)
        held: dict[int, dict[int, int]] = {worker: {} for worker in self.left}
        for load in loads:
            self._rooms[load.worker].take(catalog.shapes[load.shape], load.leases)
            held[load.worker][load.shape] = load.leases
        for worker, shapes in held.items():
            self._work.effects.loads[worker] = WorkerLoad(shapes)
        if self._profile.indexed:
            await self._open_indices()

    async def _open_indices(self) -> None:
        """Reads which indices leases hold; they count even if the metadata has changed since."""
        texts: dict[int, list[str]] = {worker: [] for worker in self.left}
        for row in await self._work.tx.placement.indices(list(self.left)):
            texts[row.worker].append(row.indices)
        for worker, found in texts.items():
            held = self._held[worker] = held_by(found)
            for resource, names in self._profile.indexed.items():
                used = held.setdefault(resource, set())
                self._rooms[worker].use_at_least(resource, len(used.intersection(names)))

    async def _open_queues(self, shapes: Mapping[int, Shape]) -> None:
        limits = {
            queue: limit
            for queue in {shape.queue for shape in shapes.values()}
            if queue not in self._queues and (limit := self._catalog.limit_of(queue))
        }
        if limits:
            rows = await self._work.slots.hold(limits.values())
            for queue, limit in limits.items():
                if limit in rows:
                    self._queues[queue] = rows[limit].max - rows[limit].leased
        for number, shape in shapes.items():
            if self._catalog.limit_of(shape.queue) and shape.queue not in self._queues:
                self.busy.add(number)

    async def _open_rates(self, shapes: Mapping[int, Shape]) -> None:
        keys = {key for shape in shapes.values() if (key := rate_key(shape)) is not None}
        new = sorted(key for key in keys if key not in self._rates)
        if new:
            for key, row in (await self._work.slots.hold_rates(new)).items():
                self._rates[key] = read_starts(row.starts)
        for number, shape in shapes.items():
            key = rate_key(shape)
            if key is not None and key not in self._rates:
                self.busy.add(number)

    def closed(self, number: int) -> bool:
        """Returns True if no worker with room may have a job of this shape in this transaction."""
        shape = self._opened.get(number)
        if shape is None:
            return False
        if number in self.busy or self._queues.get(shape.queue, 1) <= 0:
            return True
        if shape.rate is not None and not self._room_in_rate(shape, shape.rate):
            return True
        return not any(left > 0 and self.room(w, number) for w, left in self.left.items())

    def room(self, worker: int, number: int) -> int:
        """Returns how many more jobs of this shape the worker may have."""
        shape = self._opened.get(number)
        if shape is None:
            return MANY
        if number in self.busy:
            return 0
        most = max(0, self._queues.get(shape.queue, MANY))
        if most and shape.rate is not None:
            most = min(most, self._room_in_rate(shape, shape.rate))
        if not most:
            return 0
        return min(most, self._rooms[worker].fits(shape, self._catalog.per_worker(shape.queue)))

    def take(self, worker: int, number: int, jobs: int) -> None:
        """Counts jobs of this shape as assigned to this worker; -1 takes one back."""
        shape = self._opened.get(number) or self._catalog.shapes[number]
        self._rooms[worker].take(shape, jobs)
        if shape.queue in self._queues:
            self._queues[shape.queue] -= jobs
        key = rate_key(shape)
        if key in self._rates and shape.rate is not None:
            starts, now = self._rates[key], self._work.now
            for _ in range(jobs):
                insort(starts, now)  # another transaction's start may be slightly later
            if jobs < 0:
                starts.remove(now)

    def _room_in_rate(self, shape: Shape, rate: Rate) -> int:
        return room_in(rate, self._rates[shape.namespace, rate.key], self._work.now)

    def say_why(self) -> None:
        """Tells the engine what was closed: who has no room, who must look again, and when."""
        effects, now = self._work.effects, self._work.now
        for number, shape in self._opened.items():
            if number in self.busy or self._queues.get(shape.queue, 1) <= 0:
                continue
            if shape.rate is not None and not self._room_in_rate(shape, shape.rate):
                at = opens_at(shape.rate, self._rates[shape.namespace, shape.rate.key])
                effects.reopen(number, max(at, now + 1))
                continue
            per_worker = self._catalog.per_worker(shape.queue)
            for worker, left in self.left.items():
                if left > 0 and self._rooms[worker].lacks(shape, per_worker) is not None:
                    effects.refused.append((worker, number))

    async def settle(self, given: Sequence[tuple[Ticket, Demand]]) -> dict[int, Indices]:
        """Counts these jobs, which are leased now, under their limits and rates.

        Returns the indices given to jobs.
        """
        bound: dict[int, list[int]] = {}
        rates: dict[RateKey, int] = {}
        for ticket, demand in given:
            self._work.effects.loads[demand.worker].given[ticket.job] = ticket.shape
            shape = self._opened.get(ticket.shape)
            if shape is None:
                continue
            limit = self._catalog.limit_of(shape.queue)
            if limit is not None and shape.queue in self._queues:
                bound.setdefault(limit, []).append(ticket.job)
            key = rate_key(shape)
            if key is not None and shape.rate is not None:
                rates[key] = max(rates.get(key, 0), shape.rate.max)
        for limit, jobs in bound.items():
            await self._work.tx.placement.bind(jobs, limit)
        if bound:
            await self._work.tx.limits.bump({limit: len(jobs) for limit, jobs in bound.items()})
        met = [
            demand.worker
            for ticket, demand in given
            if (kept := self._catalog.reserved.get(demand.worker)) and kept.shape == ticket.shape
        ]
        if met:
            await self._work.tx.placement.release(met)
            self._work.effects.catalog = True
        if rates:
            await self._work.slots.put_rates([self._rate_row(*rate) for rate in rates.items()])
        return await self._give_indices(given) if self._held else {}

    async def _give_indices(self, given: Sequence[tuple[Ticket, Demand]]) -> dict[int, Indices]:
        """Gives each job the first free indices it needs, and records them in its lease."""
        profile, chosen = self._profile, dict[int, Indices]()
        for ticket, demand in given:
            shape = self._opened.get(ticket.shape)
            if shape is None:
                continue
            held = self._held[demand.worker]
            picked = pick(needs_of(shape, profile.metadata), profile.indexed, held)
            if picked is not None:
                chosen[ticket.job] = picked
                for resource, names in picked.items():
                    held[resource].update(names)
        rows = [(job, write_indices(picked)) for job, picked in chosen.items()]
        await self._work.tx.placement.hold(rows)
        return chosen

    def _rate_row(self, key: RateKey, keep: int) -> RateRow:
        keep = max(keep, self._work.slots.kept_starts(key))
        return RateRow(*key, keep, write_starts(self._rates[key], keep))


def rate_key(shape: Shape) -> RateKey | None:
    """Returns the key under which starts of this shape's jobs are counted."""
    return None if shape.rate is None else (shape.namespace, shape.rate.key)
