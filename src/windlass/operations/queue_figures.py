"""The queues as callers see them: what waits in them and runs, and what limits them."""

from collections.abc import Mapping
from typing import Final

from windlass.domain.access.rights import Action, Identity, sees
from windlass.domain.lifecycle.states import State
from windlass.domain.matching.shapes import Rate, Shape, opens_at, read_starts, room_in
from windlass.domain.values.quantities import format_moment
from windlass.engine.history.series import Depths
from windlass.engine.transaction.catalog import Catalog
from windlass.messages.workers import QueueRate
from windlass.operations.live_depths import RUNNING
from windlass.store.sql.transaction import ReadTx

MAX_RATES: Final = 100

Rates = Mapping[str, list[QueueRate]]  # by queue


def running_in(depths: Depths) -> dict[str, int]:
    """Returns how many jobs of each queue workers hold, as the overview counts them."""
    codes = tuple(state.code for state in RUNNING)
    return _summed(depths, codes)


def queued_in(depths: Depths) -> dict[str, int]:
    """Returns how many jobs of each queue are queued."""
    return _summed(depths, (State.QUEUED.code,))


def seen_by(who: Identity, depths: Depths) -> Depths:
    """Returns the counts of the namespaces that the caller sees."""
    return {
        (namespace, queue): counts
        for (namespace, queue), counts in depths.items()
        if sees(who, namespace, Action.READ_FLEET)
    }


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


def _summed(depths: Depths, codes: tuple[int, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for (_, queue), counts in depths.items():
        jobs = sum(counts.get(code, 0) for code in codes)
        if jobs > 0:
            found[queue] = found.get(queue, 0) + jobs
    return found
