"""The search behind a claim: reads the best shapes until enough jobs are certain.

Tickets come shape by shape, each from a cursor upwards. A ticket is certain once no unread ticket
could precede it: neither the next shape's bound nor the cursor of a shape that has more. On the
way, jobs beyond their limit are parked and shapes with closed gates are skipped, so that neither
holds back the ones behind them.

If fair sharing is on, namespaces get their shares. The number of running jobs per namespace is read
at most once a second, and this server's own assignments are added. So shares are met on average,
for the price of one walk over the leases per second.
"""

from collections import Counter
from collections.abc import Callable, Mapping

from windlass.domain.matching.claim_planning import (
    Demand,
    assign,
    excludes,
    in_turn,
    last_of_level,
    level_of,
    settled,
)
from windlass.domain.matching.indices import Indices
from windlass.domain.matching.suspects import suspicion_of
from windlass.domain.rows.records import Ticket
from windlass.engine.claim.gates import Gates
from windlass.engine.claim.suspects import SuspectSearch, is_suspect
from windlass.engine.transaction.bounds import Bounds, Candidate, Place
from windlass.engine.transaction.catalog import Profile
from windlass.engine.transaction.effects import Raise
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.places import Probe

FIRST_SHAPES = 8  # minimum number of shapes in the first round; each further round doubles it
FEW = 2  # up to this many shapes, each is asked for all the wanted jobs
Given = list[tuple[Ticket, Demand]]
FRESH_MS = 1_000


def first_width(missing: int) -> int:
    """Returns how many shapes to read first: a few more than wanted, since bounds may be too
    low.
    """
    return max(FIRST_SHAPES, missing + missing // 8)


def most_of_each(shapes: int, missing: int) -> int:
    """Returns how many jobs to read from each of these shapes.

    With many shapes, usually only their heads are taken, so reading more would be wasted.
    """
    return missing if shapes <= FEW else min(missing, 2 * missing // shapes + 1)


class Search:
    """One search for jobs that workers of one profile can run."""

    def __init__(
        self,
        work: Work,
        bounds: Bounds,
        profile: Profile,
        demands: list[Demand],
        leave: Callable[[int], bool] | None = None,
    ) -> None:
        self._work = work
        self._leave = leave  # shapes that other workers should get if they can
        self._bounds = bounds
        self._profile = profile
        self._demands = demands
        self._want = sum(demand.want for demand in demands)
        self._pool: list[Ticket] = []
        self._passed: list[Ticket] = []  # none of these workers may have them for now
        self._cursors: dict[int, Place | None] = {}  # None: the shape has no more
        self._generations: dict[int, int] = {}
        self._shut: set[int] = set()  # shapes of which no worker here may get more for now
        self._gates: Gates | None = None  # until a shape has some
        self.given: Given = []
        self.closed: set[int] = set()  # workers that take nothing more in this claim
        self.any_suspects = False

    async def run(self) -> Given:
        """Finds the jobs, and plans how far the bounds may rise once they are taken."""
        rounds = 0
        while True:
            width = first_width(self._want - len(self.given)) << rounds
            following, probed_more = await self._fetch(width)
            if self._work.config.fair_share:
                sure = await in_fair_order(self._work, self._pool, following, self._cursors)
            else:
                sure = self._sure(self._certain_up_to(following))
            chose_some = await self._choose(sure)
            if len(self.given) >= self._want or not (probed_more or chose_some):
                if self._gates is not None:
                    self._say_why(self._gates)
                self._plan_raises()
                if self.any_suspects:  # only the next claim knows what they hold now
                    self.closed |= {d.worker for t, d in self.given if is_suspect(t)}
                return self.given
            rounds += 1

    def _say_why(self, gates: Gates) -> None:
        """Notes that other workers should be asked for closed shapes, or that these must look
        again.
        """
        gates.say_why()
        for shape in sorted(gates.busy):
            place = self._bounds.place_of(shape)
            if place is not None:
                self._work.effects.arrive_at(shape, *place, 1)

    async def settle(self) -> dict[int, Indices]:
        """Counts the assigned jobs, which are leased now; returns the indices they were given."""
        return {} if self._gates is None else await self._gates.settle(self.given)

    async def _fetch(self, width: int) -> tuple[Place | None, bool]:
        """Reads new shapes, and reads on in those that are used up."""
        candidates, following = await self._candidates(len(self._cursors) + width)
        places = [
            (shape, rank, job) for rank, job, shape in candidates if shape not in self._cursors
        ]
        waiting = {ticket.shape for ticket in self._pool}
        places += [
            (shape, *cursor)
            for shape, cursor in self._cursors.items()
            if cursor is not None and shape not in waiting and shape not in self._shut
        ]
        if not places:
            return following, False
        most = most_of_each(len(places), self._want - len(self.given))
        probes = [Probe(*place, most) for place in places]
        new = [probe.shape for probe in probes if probe.shape not in self._generations]
        self._generations.update(self._bounds.generations(new))
        await self._take_in(probes)
        return following, True

    async def _candidates(self, width: int) -> tuple[list[Candidate], Place | None]:
        """Returns the best shapes, without those that are paused or closed."""
        best, profile = self._bounds.best, self._profile
        plain = self._gates is None and self._leave is None
        skip = None if plain and not self._work.catalog.any_paused else self._is_closed
        candidates, following = best(profile, width, skip)
        while unopened := self._unopened(candidates):
            await self._open(unopened)
            if any(map(self._is_closed, unopened)):
                width += len(unopened)  # many may be closed, so read more of them at once
                candidates, following = best(profile, width, self._is_closed)
        return candidates, following

    def _unopened(self, candidates: list[Candidate]) -> list[int]:
        gated, profile = self._work.catalog.gated, self._profile
        found = [shape for _, _, shape in candidates if gated(shape, profile)]
        return found if self._gates is None else self._gates.unopened(found)

    async def _open(self, shapes: list[int]) -> None:
        if self._gates is None:
            self._gates = Gates(self._work, self._profile, self._room())
        await self._gates.open(shapes)

    def _room(self) -> dict[int, int]:
        """Returns how many jobs each worker still wants."""
        room = {demand.worker: demand.want for demand in self._demands}
        for _, demand in self.given:
            room[demand.worker] -= 1
        return room

    def _is_closed(self, shape: int) -> bool:
        catalog = self._work.catalog
        if catalog.any_paused and catalog.paused(shape):
            return True
        if self._leave is not None and self._leave(shape):
            return True
        return self._gates is not None and self._gates.closed(shape)

    async def _take_in(self, probes: list[Probe]) -> None:
        peeked = await self._work.tx.places.peek(probes)
        found: dict[int, list[Ticket]] = {probe.shape: [] for probe in probes}
        if len(found) == 1:
            found = {probes[0].shape: peeked}
        else:
            for ticket in peeked:
                found[ticket.shape].append(ticket)
        for probe in probes:
            tickets = found[probe.shape]
            full = len(tickets) == probe.most
            self._cursors[probe.shape] = (tickets[-1].rank, tickets[-1].job + 1) if full else None
            self._pool += tickets

    def _sure(self, bound: Place | None) -> list[Ticket]:
        """Returns the tickets that nothing can precede any more, best first."""
        if len(self._cursors) == 1 and (bound is None or bound in self._cursors.values()):
            return self._pool  # one shape, in its own order
        return settled(self._pool, bound)

    def _certain_up_to(self, following: Place | None) -> Place | None:
        ends = [
            cursor
            for shape, cursor in self._cursors.items()
            if cursor is not None and shape not in self._shut
        ]
        if following is not None:
            ends.append(following)
        return min(ends, default=None)

    async def _choose(self, sure: list[Ticket]) -> bool:
        """Assigns what is certain; returns True if that changed what is left to choose from."""
        gates = self._gates
        if (
            gates is None
            and len(self._demands) == 1
            and not [t for t in sure if t.limit or t.excluded]
        ):
            return self._give_all(sure)
        room = self._room()
        demands = [d._replace(want=room[d.worker]) for d in self._demands]
        if any(ticket.excluded and is_suspect(ticket) for ticket in sure):
            given = await self._assign_suspects(demands, sure)
        else:
            given = assign(demands, sure, self._work.now, gates)
        chosen, parked = await self._within_limits(given)
        self._take_back(given, chosen)
        self.given += chosen
        gone: set[int] = {ticket.job for ticket, _ in chosen}
        gone.update(parked)
        for _, demand in chosen:
            room[demand.worker] -= 1
        self._close_workers(room)
        passed = [t for t in sure if t.excluded and t.job not in gone and self._refuse(t, room)]
        self._passed += passed  # so that they do not hide what follows them
        gone.update(ticket.job for ticket in passed)
        gone.update(self._shut_closed(room, gone))
        if gone:
            self._pool = [ticket for ticket in self._pool if ticket.job not in gone]
        return bool(gone)

    async def _assign_suspects(self, demands: list[Demand], sure: list[Ticket]) -> Given:
        self.any_suspects = True
        company = {demand.worker: demand.company for demand in demands}
        for ticket, demand in self.given:
            joining = suspicion_of(ticket.excluded)
            company[demand.worker] = company[demand.worker].joined_by(joining)
        demands = [d._replace(company=company[d.worker]) for d in demands]
        apart = SuspectSearch(self._work, demands, self._gates)
        given = await apart.assign(sure)
        self.closed |= apart.closed
        return given

    def _close_workers(self, room: dict[int, int]) -> None:
        """Makes workers that take nothing more want only what they have."""
        if not self.closed:
            return
        for worker in self.closed:
            room[worker] = 0
        got = Counter(demand.worker for _, demand in self.given)
        self._demands = [
            d._replace(want=got[d.worker]) if d.worker in self.closed else d for d in self._demands
        ]
        self._want = sum(demand.want for demand in self._demands)

    def _take_back(self, planned: Given, chosen: Given) -> None:
        """Frees the room of jobs that a limit did not admit."""
        if self._gates is not None and len(chosen) < len(planned):
            kept = {ticket.job for ticket, _ in chosen}
            for ticket, demand in planned:
                if ticket.job not in kept:
                    self._gates.take(demand.worker, ticket.shape, -1)

    def _shut_closed(self, room: dict[int, int], gone: set[int]) -> set[int]:
        """Stops reading shapes that are closed now; keeps the jobs already read."""
        gates = self._gates
        if gates is None:
            return set()
        gates.left = room
        closed = {s for s in self._cursors if s not in self._shut and gates.closed(s)}
        self._shut |= closed
        shut = [t for t in self._pool if t.shape in closed and t.job not in gone]
        self._passed += shut
        return {ticket.job for ticket in shut}

    def _give_all(self, sure: list[Ticket]) -> bool:
        """Assigns everything to the only worker, since no limit or exclusion applies."""
        demand = self._demands[0]
        chosen = sure[: self._want - len(self.given)]
        self.given += [(ticket, demand) for ticket in chosen]
        if len(chosen) == len(self._pool):
            self._pool = []
        elif chosen:
            gone = {ticket.job for ticket in chosen}
            self._pool = [ticket for ticket in self._pool if ticket.job not in gone]
        return bool(chosen)

    def _refuse(self, ticket: Ticket, room: dict[int, int]) -> bool:
        """Returns True if no worker with room may have the ticket."""
        now = self._work.now
        if is_suspect(ticket):
            return True  # each of them was asked
        return all(excludes(ticket.excluded, w, now) for w, left in room.items() if left > 0)

    async def _within_limits(self, given: Given) -> tuple[Given, list[int]]:
        """Returns the jobs that their limits have room for; the others are parked."""
        limits = {ticket.limit for ticket, _ in (*given, *self.given) if ticket.limit}
        if not limits:
            return given, []
        rows = await self._work.slots.hold(limits)
        room = {limit: row.max - row.leased for limit, row in rows.items()}
        for ticket, _ in self.given:
            if ticket.limit:
                room[ticket.limit] -= 1
        kept: Given = []
        over: list[Ticket] = []
        busy = [ticket for ticket, _ in given if ticket.limit and ticket.limit not in room]
        for ticket, demand in given:
            if ticket.limit is None:
                kept.append((ticket, demand))
            elif ticket.limit in room:
                room[ticket.limit] -= 1
                if room[ticket.limit] >= 0:
                    kept.append((ticket, demand))
                else:
                    over.append(ticket)
        if over:
            await self._work.tx.places.park(over)
        self._passed += busy
        self._work.effects.arrive(busy)  # workers that want them look again
        return kept, [ticket.job for ticket in (*over, *busy)]

    def _plan_raises(self) -> None:
        """Plans to raise the bound of each read shape, after the commit, to what is left of it.

        Concurrent claims could not see the rows this one had locked. If it leaves some of them,
        their workers must look again. A claim that took nothing because its worker is kept for a
        suspect wakes nobody: two such claims would wake each other for ever.
        """
        if self._bounds.shared and self.given and len(self.given) >= self._want:
            self._work.effects.arrive(self._pool)
        left: dict[int, Place] = {}
        for ticket in (*self._pool, *self._passed):
            place = ticket.rank, ticket.job
            known = left.get(ticket.shape)
            if known is None or place < known:
                left[ticket.shape] = place
        raises = self._work.effects.raises
        for shape, cursor in self._cursors.items():
            raises.append(Raise(shape, left.get(shape, cursor), self._generations[shape]))


async def in_fair_order(
    work: Work, pool: list[Ticket], following: Place | None, cursors: Mapping[int, Place | None]
) -> list[Ticket]:
    """Returns tickets of the best level in fair order; none if more of its shapes may follow.

    Shapes with a cursor have more jobs beyond it.
    """
    if not pool:
        return []
    interval, now = work.catalog.interval_ms, work.now
    level = level_of(min(ticket.rank for ticket in pool), now, interval)
    last = last_of_level(level, now, interval)
    if following is not None and following[0] <= last:
        return []
    shares = work.catalog.shares
    if now - shares.read_at >= FRESH_MS or shares.read_at < 0:
        await _read_shares(work)
    of_level = [ticket for ticket in pool if ticket.rank <= last]
    more = {shape for shape, at in cursors.items() if at is not None and at[0] <= last}
    return in_turn(of_level, work.catalog.namespace_of, shares.running, shares.weights, more)


async def _read_shares(work: Work) -> None:
    running = await work.tx.placement.running()
    await work.catalog.know(work.tx, running)
    counts: dict[str, int] = {}
    for shape, leases in running.items():
        namespace = work.catalog.namespace_of(shape)
        counts[namespace] = counts.get(namespace, 0) + leases
    shares = work.catalog.shares
    shares.running, shares.read_at = counts, work.now
    shares.weights = dict(await work.tx.placement.namespace_weights())
