"""Charges for the machines of a pool: which jobs they held since the last time, from the log.

These are the current attempts and those that ended since. The caller has locked the pool and its
workers, so none of them can report meanwhile. How far we read the log is written with the charges,
so a server that dies in between charges nothing twice.
"""

from collections.abc import Iterable, Mapping
from typing import Final

from windlass.domain.pools.costs import Held, charges
from windlass.domain.pools.pools import CostRow, Pool, PoolWorkerRow
from windlass.domain.rows.records import Worker
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.pools import Spell, position_name

MAX_EVENTS: Final = 1_000_000  # events read at once; older ones count as idle time


async def charge(
    work: Work,
    pool_id: int,
    pool: Pool,
    members: Iterable[PoolWorkerRow],
    workers: Mapping[int, Worker],
) -> None:
    """Charges what each worker has cost since it was last charged."""
    charged = {member.known_worker: member for member in members}
    active = (n for n, member in charged.items() if not _has_idled(member, workers.get(n)))
    spells = await _spells(work, pool_id, sorted(active))
    catalog = work.catalog
    await catalog.know(work.tx, {spell.shape for spell in spells})
    held: dict[int, list[Held]] = {}
    for worker, shape, since, until in spells:
        payer = catalog.namespace_of(shape), catalog.queue_of(shape)
        held.setdefault(worker, []).append(Held(since, until, payer))
    sums: dict[tuple[int, str, str], CostRow] = {}
    for worker, member in charged.items():
        for row in charges(pool, member.charged_until, work.now, held.get(worker, ())):
            old = sums.get(row[1:4])
            sums[row[1:4]] = row if old is None else _added(old, row)
    await work.tx.pools.charge([sums[key] for key in sorted(sums)])


def _has_idled(member: PoolWorkerRow, worker: Worker | None) -> bool:
    """Returns True if it held no job when last seen and got none since."""
    if member.idle_since is None or worker is None:
        return False
    return worker.last_lease == member.last_lease


def _added(one: CostRow, other: CostRow) -> CostRow:
    return one._replace(ms=one.ms + other.ms, micros=one.micros + other.micros)


async def _spells(work: Work, pool_id: int, workers: list[int]) -> list[Spell]:
    """Returns the jobs these workers hold, and those they held since the last charge."""
    name, newest = position_name(pool_id), await work.tx.log.newest()
    known = (await work.tx.catalog.meta()).get(name)
    after = newest if known is None else max(known, newest - MAX_EVENTS)
    ended = await work.tx.pools.spells(after, workers)
    if known != newest:
        await work.tx.catalog.set_meta(name, newest)
    load, mine = await work.tx.pools.load(1), frozenset(workers)
    return ended + [
        Spell(held.worker, held.shape, held.since, work.now)
        for held in load.leases
        if held.worker in mine
    ]
