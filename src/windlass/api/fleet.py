"""Queues as callers see them."""

from collections.abc import Mapping

from windlass.api.queries import Queries
from windlass.domain.access.actions import Action
from windlass.domain.access.may import FLEET, may
from windlass.domain.access.roles import Identity
from windlass.domain.lifecycle.rank import queue_weight
from windlass.domain.rows.records import LimitRow, QueueRow
from windlass.engine.engine import Engine
from windlass.wire.workers import QueueInfo


async def list_queues(engine: Engine, queries: Queries, who: Identity) -> list[QueueInfo]:
    """Returns the queues that have jobs or settings, and that the caller's namespaces use."""
    rows = await engine.store.read(lambda tx: tx.catalog.queues())
    depths = (await engine.metrics()).queue_depth
    known = {row.name: row for row in rows}
    names = {*known, *depths}
    if not may(who, Action.READ_FLEET, FLEET):
        names &= await queries.queues(who)
    counted = [row.limit for row in rows if row.max_running and row.limit is not None]
    limits = await engine.store.read(lambda tx: tx.limits.read(counted))
    return [
        _info(known.get(name, QueueRow(name, queue_weight(name), 0)), limits, depth)
        for name in sorted(names)
        for depth in (depths.get(name, 0),)
    ]


def _info(row: QueueRow, limits: Mapping[int, LimitRow], depth: int) -> QueueInfo:
    counted = limits.get(row.limit) if row.max_running and row.limit is not None else None
    return QueueInfo(
        row.name, row.weight, bool(row.paused), depth, row.max_running, row.max_per_worker,
        bool(row.preempts), None if counted is None else counted.leased, row.isolation,
    )  # fmt: skip
