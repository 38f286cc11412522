"""Works out from the log when a job's limits were used up.

We know the current usage and walk the log backwards to the time when the job was queued. If the log
has grown too long since, we do not know. For a rate we count the starts that the store remembers,
and those among the last events before the job was queued.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.explain.waiting_time import Interval, while_true
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.states import ACTIVE, State
from windlass.domain.matching.rates import opens_at, read_starts
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import JobFacts
from windlass.engine.transaction.catalog import Catalog
from windlass.store.sql.transaction import ReadTx

MAX_EVENTS: Final = 100_000
BEFORE: Final = 20_000  # events before the job was queued, which may be starts under its rate
PAGE: Final = 5_000

ASSIGNED: Final = State.ASSIGNED.code
ACTIVE_CODES: Final = frozenset(state.code for state in ACTIVE)


class Limits(NamedTuple):
    """The limits of one job: of its key, its queue, and its rate."""

    job: int
    active: bool
    key: int | None
    key_max: int
    shape: Shape

    def any(self, fleet: Iterable[Event]) -> bool:
        """Returns True if the job had any limit."""
        return bool(self.key or self.shape.rate or any(_most_running(self, e) for e in fleet))


async def full_times(
    tx: ReadTx, catalog: Catalog, limits: Limits, first: Event, fleet: Sequence[Event], until: int
) -> list[Interval] | None:
    """Returns when one of these limits had no room, since `first`; None if the log is too long."""
    if not limits.any(fleet):
        return []
    back = BEFORE if limits.shape.rate is not None else 0
    events = await _events_since(tx, max(0, first.seq - back))
    if events is None:
        return None
    facts = await _facts(tx, {event.job for event in events} - {limits.job})
    await catalog.know(tx, {fact.shape for fact in facts.values()})
    past = _Past(tx, catalog, limits, first, events, facts)
    return [
        *while_true(await past.of_key(), until),
        *while_true(await past.of_queue(fleet), until),
        *await past.of_rate(),
    ]


class _Past:
    """The events since a job was queued, as each of its limits sees them."""

    def __init__(
        self, tx: ReadTx, catalog: Catalog, limits: Limits, first: Event,
        events: Sequence[Event], facts: dict[int, JobFacts],
    ) -> None:  # fmt: skip
        self._tx = tx
        self._catalog = catalog
        self._limits = limits
        self._first = first
        self._events = events
        self._facts = facts

    async def of_key(self) -> list[tuple[int, bool]]:
        """Returns changes of its concurrency limit; the newest submit set its maximum."""
        limits = self._limits
        row = (await self._tx.limits.read([limits.key])).get(limits.key) if limits.key else None
        if row is None:
            return []
        moves = self._moves(lambda fact: fact.limit == limits.key, self._first.seq)
        asked = await self._asked({event.job for event in moves if not event.source})
        most = [(e.at, asked[e.job]) for e in moves if e.job in asked and not e.source]
        return self._changes(moves, row.leased - limits.active, limits.key_max, most)

    async def of_queue(self, fleet: Iterable[Event]) -> list[tuple[int, bool]]:
        """Returns changes of its queue's limit, which operators set."""
        set_to = [
            (event.at, _data(event)["max_running"])
            for event in fleet
            if _is_limit_of(event, self._limits.shape.queue)
        ]
        if not set_to:
            return []
        queue, shapes = self._limits.shape.queue, self._catalog.shapes
        running = await self._tx.placement.running()
        await self._catalog.know(self._tx, running)
        now = sum(leases for shape, leases in running.items() if shapes[shape].queue == queue)
        moves = self._moves(lambda fact: shapes[fact.shape].queue == queue, self._first.seq)
        before = [most for at, most in set_to if at <= self._first.at]
        later = [(at, most) for at, most in set_to if at > self._first.at]
        start = before[-1] if before else 0
        return self._changes(moves, now - self._limits.active, start, later)

    async def of_rate(self) -> list[Interval]:
        """Returns when enough jobs with its rate's key had started."""
        shape = self._limits.shape
        rate = shape.rate
        if rate is None:
            return []
        row = await self._tx.views.rate(shape.namespace, rate.key)
        own = self._starts(shape.namespace, rate.key)
        starts = sorted({*own, *([] if row is None else read_starts(row.starts))})
        ends = [opens_at(rate, starts[: n + 1]) for n in range(len(starts))]
        return [(at, end) for at, end in zip(starts, ends, strict=True) if end > at]

    def _starts(self, namespace: str, key: str) -> list[int]:
        shapes = self._catalog.shapes

        def counts(fact: JobFacts) -> bool:
            shape = shapes[fact.shape]
            rate = shape.rate
            return rate is not None and (shape.namespace, rate.key) == (namespace, key)

        return [event.at for event in self._moves(counts, 0) if event.to == ASSIGNED]

    def _moves(self, counts: Callable[[JobFacts], bool], after: int) -> list[Event]:
        """Returns the transitions of other jobs that count against a limit."""
        mine = {job for job, fact in self._facts.items() if counts(fact)}
        return [event for event in self._events if event.seq > after and event.job in mine]

    async def _asked(self, jobs: set[int]) -> dict[int, int]:
        specs = await self._tx.jobs.specs(sorted(jobs))
        asked = {job: decode_spec(body).concurrency for job, body in specs.items()}
        return {job: one.max for job, one in asked.items() if one is not None}

    def _changes(
        self, moves: Sequence[Event], now: int, most: int, set_to: Sequence[tuple[int, int]]
    ) -> list[tuple[int, bool]]:
        """Returns when the limit became used up or free, after moves and new maximums."""
        used = now - sum(map(_change, moves))
        changes = [(self._first.at, 0 < most <= used)]
        steps = [(event.at, _change(event), -1) for event in moves]
        steps += [(at, 0, maximum) for at, maximum in set_to]
        for at, change, maximum in sorted(steps, key=lambda one: one[0]):
            used += change
            most = most if maximum < 0 else maximum
            changes.append((at, 0 < most <= used))
        return changes


async def _events_since(tx: ReadTx, after: int) -> list[Event] | None:
    found: list[Event] = []
    while len(found) <= MAX_EVENTS:
        page = await tx.log.read(found[-1].seq if found else after, PAGE)
        found += page
        if len(page) < PAGE:
            return [event for event in found if event.kind == EventKind.JOB]
    return None


async def _facts(tx: ReadTx, jobs: set[int]) -> dict[int, JobFacts]:
    ordered = sorted(jobs)
    found: dict[int, JobFacts] = {}
    for start in range(0, len(ordered), PAGE):
        found |= await tx.jobs.read(ordered[start : start + PAGE])
    return found


def _most_running(limits: Limits, event: Event) -> int:
    found: int = _data(event)["max_running"] if _is_limit_of(event, limits.shape.queue) else 0
    return found


def _is_limit_of(event: Event, queue: str) -> bool:
    if event.kind != EventKind.QUEUE:
        return False
    data = _data(event)
    return data.get("queue") == queue and "max_running" in data


def _change(event: Event) -> int:
    """Returns by how much a transition changes the use of a limit."""
    return (event.to in ACTIVE_CODES) - (event.source in ACTIVE_CODES)


def _data(event: Event) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(event.data) if event.data else {}
    return found
