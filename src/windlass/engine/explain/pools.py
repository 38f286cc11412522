"""Describes what pools do about a job that no existing worker can run."""

from collections.abc import Sequence

from windlass.domain.matching.shapes import Shape
from windlass.domain.pools.pools import (
    LIVING,
    Lifecycle,
    Pool,
    PoolRow,
    PoolState,
    PoolWorkerRow,
    decode_pool,
    template_of,
)
from windlass.domain.values.quantities import readable_duration
from windlass.store.sql.transaction import ReadTx


async def pools_for(tx: ReadTx, shape: Shape) -> str | None:
    """Returns what the pools that could run it are doing; None if there is no such pool."""
    living = await tx.pools.living()
    notes: list[str] = []
    for row in await tx.pools.all():
        pool = decode_pool(row.body)
        if row.state == PoolState.ACTIVE and template_of(row, pool).could_run(shape):
            members = [member for member in living if member.pool == row.id]
            notes.append(_doing(row, pool, members, tx.now))
    return "; ".join(notes) or None


async def workers_starting(tx: ReadTx) -> set[int]:
    """Returns the workers that pools have asked for and that have not enrolled yet."""
    on_their_way = (Lifecycle.REQUESTED, Lifecycle.STARTING)
    living = await tx.pools.living()
    return {member.known_worker for member in living if member.state in on_their_way}


def _doing(row: PoolRow, pool: Pool, members: Sequence[PoolWorkerRow], now: int) -> str:
    """Describes a pool from its rows; `windlass pools plan` shows the decision itself."""
    coming = sum(m.state in (Lifecycle.REQUESTED, Lifecycle.STARTING) for m in members)
    if coming:
        several = f"{coming} workers of pool {row.name} are on their way"
        return several if coming > 1 else f"a worker of pool {row.name} is on its way"
    could = f"pool {row.name} could start a worker for it"
    if not pool.enabled:
        return f"{could}, but is not enabled"
    if now < row.next_at:
        why = f": {row.message}" if row.message else ""
        return f"{could}, and tries again in {readable_duration(row.next_at - now)}{why}"
    if sum(m.state in LIVING for m in members) >= pool.max_workers:
        return f"{could}, but is at its limit (max_workers is {pool.max_workers})"
    return f"pool {row.name} can start a worker for it, as `windlass pools plan` shows"
