"""Notes on a job: deadlines, suspicion, a worker reserved for it, its rejection, its run time.

Also what pools do about a job that no existing worker can run.
"""

from collections.abc import Sequence
from typing import Final

from windlass.domain.config import Config
from windlass.domain.explain.forecast import remaining
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.states import RETRYING, SUSPENDED
from windlass.domain.matching.shapes import Shape, can_run
from windlass.domain.matching.suspects import ALONE, suspicion_of
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
from windlass.domain.rows.records import JobRecord
from windlass.domain.values.quantities import counted, format_moment, readable_duration
from windlass.engine.explain.fleet import Fleet
from windlass.engine.fleet.capability import MISMATCH, REMEMBERED_MS, grace_ms, read_templates
from windlass.engine.history.statistics import Kinds
from windlass.engine.transaction.catalog import Catalog
from windlass.store.sql.transaction import ReadTx

MANY: Final = 1_000  # with more workers than this, we do not search their past


async def deadlines_and_holds(tx: ReadTx, view: JobRecord, fleet: Fleet) -> list[str]:
    """Returns notes on its deadlines, on suspicion, and on the worker reserved for it."""
    spec = decode_spec(view.spec)
    late = "fails" if view.state in (RETRYING, SUSPENDED) else "is canceled"
    start_before = None if view.state == SUSPENDED else spec.start_before_ms
    ends = ((start_before, "is canceled unless it starts"),
            (spec.finish_before_ms, f"{late} unless it ends"))  # fmt: skip
    notes = []
    for at, what in ends:
        if at:
            left = readable_duration(max(0, at - tx.now) // 1_000 * 1_000)
            notes.append(f"it {what} before {format_moment(at)}, {left} from now")
    suspicion = suspicion_of(view.facts.excluded)
    if suspicion == ALONE:
        notes.append(
            "it lost several workers that held other jobs too, so it runs alone on a worker"
        )
    elif suspicion:
        notes.append(
            "it lost a worker that held other jobs too, so it shares a worker with at most "
            f"{counted(suspicion - 1, 'other such job')}"
        )
    for kept in await tx.placement.reservations():
        if kept.job == view.facts.id:
            name = fleet.name_of(kept.worker)
            notes.append(
                f"worker {name} has been reserved for it since {format_moment(kept.since)}"
            )
    return notes


async def run_time(tx: ReadTx, catalog: Catalog, view: JobRecord) -> tuple[str, ...]:
    """Returns a note on when a running job will likely end, or that it is past its estimate."""
    if view.lease is None or view.lease.started_at is None:
        return ()
    known = await Kinds(tx, catalog).of_job(view.facts.shape, view.spec)
    found = remaining(known, tx.now - view.lease.started_at)
    if found.overdue_ms is not None:
        past = readable_duration(max(found.overdue_ms // 1_000, 1) * 1_000)
        return (f"it is past its estimate: it has run {past} longer than 90 % of such jobs",)
    if found.end is None:
        return ()
    end = format_moment((tx.now + found.end.likely) // 1_000 * 1_000)
    return (f"it will likely end at about {end[:19]}Z, as such jobs did",)


async def rejection(tx: ReadTx, config: Config, view: JobRecord, shape: Shape, fleet: Fleet) -> str:
    """Describes what happens to a job that none of the current workers can run."""
    own = decode_spec(view.spec).capability_grace
    grace = grace_ms(own, config.capability_grace_ms)
    pools = await pools_for(tx, shape)
    if pools is not None:
        return f"{pools}: it is not rejected"
    if grace is None or not (len(fleet) or await read_templates(tx)):
        return "it is not rejected, however long it waits"
    becomes = f"after {readable_duration(grace)} it is rejected, reason {MISMATCH}"
    if len(fleet) > MANY:
        return f"if no worker could have run it within the last week, {becomes}"
    for row in await tx.workers.past(tx.now - REMEMBERED_MS):
        profile = fleet.profile_with(row.worker, row.dynamic)
        if profile is not None and can_run(shape, profile.metadata) is None:
            name, until = fleet.name_of(row.worker), format_moment(row.until)
            return f"worker {name} could have run it until {until}: it is not rejected"
    return f"no known worker could ever run it: {becomes}"


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
