"""Applies the shares of namespaces to a claim, if fair sharing is on.

The number of running jobs per namespace is read at most once a second, and this server's own
assignments are added. So shares are met on average, for the price of one walk over the leases per
second.
"""

from collections.abc import Mapping

from windlass.domain.matching.claim_planning import in_turn, last_of_level, level_of
from windlass.domain.rows.records import Ticket
from windlass.engine.transaction.bounds import Place
from windlass.engine.transaction.unit_of_work import Work

FRESH_MS = 1_000


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
        await _read(work)
    of_level = [ticket for ticket in pool if ticket.rank <= last]
    more = {shape for shape, at in cursors.items() if at is not None and at[0] <= last}
    return in_turn(of_level, work.catalog.namespace_of, shares.running, shares.weights, more)


async def _read(work: Work) -> None:
    running = await work.tx.placement.running()
    await work.catalog.know(work.tx, running)
    counts: dict[str, int] = {}
    for shape, leases in running.items():
        namespace = work.catalog.namespace_of(shape)
        counts[namespace] = counts.get(namespace, 0) + leases
    shares = work.catalog.shares
    shares.running, shares.read_at = counts, work.now
    shares.weights = dict(await work.tx.placement.namespace_weights())
