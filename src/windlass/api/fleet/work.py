"""Finds the jobs that pools count as work: those that are ready, and those that workers hold."""

from collections.abc import Collection, Sequence

from windlass.ports.store import ReadTx


async def ready_jobs(tx: ReadTx, shapes: Sequence[int], limit: int) -> list[int]:
    """Returns the first ready jobs of these shapes; those of one shape as workers take them."""
    found: list[int] = []
    for shape in shapes:
        if len(found) >= limit:
            break
        sample = await tx.views.ready_sample(shape, limit)
        found += [waiting.job for waiting in sample]
    return found[:limit]


async def held_jobs(tx: ReadTx, shapes: Collection[int], limit: int) -> list[int]:
    """Returns the jobs of these shapes that workers hold, by number."""
    load = await tx.pools.load(1)
    return sorted(held.job for held in load.leases if held.shape in shapes)[:limit]
