"""Queues: what can be done with them, how deep they are now, and the shares of namespaces.

How deep they are is counted already, but for the newest events: those are counted again for every
answer until the figures hold them, half a minute later. So answers share what they counted for a
moment, and add what came after it. On PostgreSQL an event may become visible after one with a
higher number: it is missing for that moment at most.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from windlass.domain.access.rights import FLEET, Action, Identity, may, sees
from windlass.domain.job.forms import NONE
from windlass.domain.lifecycle.rank import queue_weight
from windlass.domain.lifecycle.states import QUEUED, State
from windlass.domain.matching.shapes import Rate, Shape, opens_at, read_starts, room_in
from windlass.domain.rows.records import LimitRow, QueueRow
from windlass.domain.rows.series import Mark
from windlass.domain.values.quantities import format_moment
from windlass.engine.history.series import Depths, read_counted
from windlass.engine.transaction.catalog import Catalog
from windlass.messages.workers import (
    Changed,
    NamespaceInfo,
    NamespaceWeights,
    QueueInfo,
    QueueLimits,
    QueueList,
    QueueRate,
    WeightRequest,
)
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.past import Moved, add_moves
from windlass.store.sql.transaction import ReadTx

RUNNING: Final = (State.ASSIGNED, State.RUNNING, State.CANCELING, State.TIMED_OUT)
MAX_RATES: Final = 100
MAX_NEW: Final = 20_000  # events that are added to what is counted already
SHARED_MS: Final = 1_000  # how long answers share what they counted

Rates = Mapping[str, list[QueueRate]]  # by queue

_shape = msgspec.json.Decoder(Shape).decode

routes = Routes("/api/v1/queues", "queues")
namespace_routes = Routes("/api/v1/namespaces", "queues")


@routes.get("", needs=Action.READ_FLEET)
async def list_queues(call: Call) -> QueueList:
    """Returns the queues that have jobs or settings, and that the caller's namespaces use.

    Callers who do not see the whole fleet get the numbers of their own namespaces.
    """
    who, services = call.who, call.services
    catalog = services.engine.catalog
    sees_all = may(who, Action.READ_FLEET, FLEET)
    depth = (await services.engine.metrics()).queue_depth if sees_all else None

    async def read(tx: ReadTx) -> list[QueueInfo]:
        known = {row.name: row for row in await tx.catalog.queues()}
        depths = _seen_by(who, await services.depths.read(tx, *await read_counted(tx)))
        rates = await read_rates(tx, catalog, who)
        queued = _summed(depths, (QUEUED,)) if depth is None else depth
        running = _summed(depths, tuple(state.code for state in RUNNING))
        names = {*known, *queued, *running}
        limits: Mapping[int, LimitRow] = {}
        if sees_all:
            limited = (row.limit for row in known.values() if row.max_running)
            limits = await tx.limits.read([limit for limit in limited if limit is not None])
        else:
            names &= await _used_by(tx, who)
        return [
            show_queue(row, limits, queued.get(name, 0), running.get(name, 0), rates.get(name, []))
            for name in sorted(names)
            for row in (known.get(name, QueueRow(name, queue_weight(name), 0)),)
        ]

    return QueueList(await services.engine.store.read(read))


async def _used_by(tx: ReadTx, who: Identity) -> set[str]:
    """Returns the queues that jobs of the caller's namespaces have used."""
    shapes = [_shape(row.body) for row in await tx.catalog.shapes_after(0)]
    return {one.queue for one in shapes if sees(who, one.namespace, Action.READ_FLEET)}


def _seen_by(who: Identity, depths: Depths) -> Depths:
    """Returns the counts of the namespaces that the caller sees."""
    return {
        (namespace, queue): counts
        for (namespace, queue), counts in depths.items()
        if sees(who, namespace, Action.READ_FLEET)
    }


def _summed(depths: Depths, codes: tuple[int, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (_, queue), counts in depths.items():
        jobs = sum(counts.get(code, 0) for code in codes)
        if jobs > 0:
            found[queue] = found.get(queue, 0) + jobs
    return found


async def read_rates(tx: ReadTx, catalog: Catalog, who: Identity) -> Rates:
    """Returns the rates under which jobs wait now, by queue; at most 100 of them."""
    heads = {head.shape for head in await tx.places.heads()}
    await catalog.know(tx, heads)
    shapes = (catalog.shapes[number] for number in sorted(heads))
    found: dict[tuple[str, str, Rate], Shape] = {
        (one.queue, one.namespace, one.rate): one
        for one in shapes
        if one.rate is not None and sees(who, one.namespace, Action.READ_FLEET)
    }
    rates: dict[str, list[QueueRate]] = {}
    for queue, namespace, rate in sorted(found, key=str)[:MAX_RATES]:
        rates.setdefault(queue, []).append(await _rate(tx, namespace, rate))
    return rates


async def _rate(tx: ReadTx, namespace: str, rate: Rate) -> QueueRate:
    row = await tx.views.rate(namespace, rate.key)
    starts = [] if row is None else read_starts(row.starts)
    room = room_in(rate, starts, tx.now)
    return QueueRate(
        namespace=namespace,
        key=rate.key,
        max=rate.max,
        seconds=rate.per_ms / 1000,
        used=rate.max - room,
        next_at=None if room else format_moment(opens_at(rate, starts)),
    )


def show_queue(
    row: QueueRow,
    limits: Mapping[int, LimitRow],
    depth: int,
    running: int,
    rates: list[QueueRate],
) -> QueueInfo:
    """Renders a queue: `depth` jobs wait and `running` run in it, or in all queues of its limit."""
    counted = limits.get(row.limit) if row.max_running and row.limit is not None else None
    return QueueInfo(
        row.name, row.weight, bool(row.paused), depth, row.max_running, row.max_per_worker,
        bool(row.preempts), running if counted is None else counted.leased, row.isolation, rates,
        None if row.timeout_ms is None else row.timeout_ms / 1000 or NONE,
    )  # fmt: skip


@routes.post("/{name:str}/pause", needs=Action.MANAGE_QUEUES)
async def pause(call: Call, name: str) -> Changed:
    """Pauses a queue: workers get no more jobs from it."""
    return Changed(await call.services.engine.queues.pause(name, call.who.name))


@routes.post("/{name:str}/resume", needs=Action.MANAGE_QUEUES)
async def resume(call: Call, name: str) -> Changed:
    """Resumes a queue."""
    return Changed(await call.services.engine.queues.resume(name, call.who.name))


@routes.post("/{name:str}/limits", needs=Action.MANAGE_QUEUES)
async def limit(call: Call, name: str, data: Body[QueueLimits]) -> Changed:
    """Sets how many jobs of a queue may run, how, and for how long."""
    return Changed(await call.services.engine.queues.set_limits(name, data, call.who.name))


@namespace_routes.get("/weights", needs=Action.MANAGE_QUEUES)
async def list_weights(call: Call) -> NamespaceWeights:
    """Returns the namespaces whose weight was set; all others have weight 1."""
    store = call.services.engine.store
    weights = await store.read(lambda tx: tx.placement.namespace_weights())
    return NamespaceWeights([NamespaceInfo(*pair) for pair in weights.items()])


@namespace_routes.post("/{name:str}/weight", needs=Action.MANAGE_QUEUES)
async def set_weight(call: Call, name: str, data: Body[WeightRequest]) -> Changed:
    """Sets the weight of a namespace."""
    return Changed(
        await call.services.engine.queues.set_namespace_weight(name, data.weight, call.who.name)
    )


class _Tail(NamedTuple):
    """What the events in (after, upto] moved, as it was first counted at a time."""

    after: int
    upto: int
    counted_at: int
    moved: tuple[Moved, ...]


class LiveDepths:
    """Counts for all answers of one server."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tail: _Tail | None = None

    async def read(self, tx: ReadTx, counted: Mark | None, totals: Depths) -> Depths:
        """Returns jobs by state of each namespace and queue, now unless too much has happened.

        `counted` is how far events are added up already, to `totals`.
        """
        after = 0 if counted is None else counted.seq
        depths: Depths = {} if counted is None else {pair: {**totals[pair]} for pair in totals}
        upto = await tx.log.newest()
        if upto - after <= MAX_NEW:
            await add_moves(tx, self._catalog, depths, await self._moved(tx, after, upto))
        return depths

    async def _moved(self, tx: ReadTx, after: int, upto: int) -> tuple[Moved, ...]:
        known = self._tail
        fresh = (
            known is not None
            and known.after == after
            and known.upto <= upto
            and 0 <= tx.now - known.counted_at < SHARED_MS
        )
        start = known if known is not None and fresh else _Tail(after, after, tx.now, ())
        more = () if start.upto == upto else await tx.series.moved(start.upto, upto, MAX_NEW)
        tail = start._replace(upto=upto, moved=(*start.moved, *(more or ())))
        self._tail = tail
        return tail.moved
