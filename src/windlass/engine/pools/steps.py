"""The steps of pools, one transaction each: decide, and record what providers answered.

Every row changes under its pool's lock. We call a provider only after the row that records the
request is committed. What pools had and wanted is recorded by the minute, so that pages can show it
over time: each round overwrites one row per pool and slot length, so the rows grow with time and
pools, not with rounds; retention removes old ones.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.pools.pools import (
    Lifecycle,
    Pool,
    PoolRow,
    PoolState,
    PoolWorkerRow,
    decode_pool,
)
from windlass.domain.pools.sizing import (
    Fleet,
    PoolNow,
    Verdict,
    after_failure,
    is_spent,
    leavers,
    size,
)
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import Worker
from windlass.domain.rows.series import (
    STEPS,
    PlanFigures,
    SeriesKey,
    SeriesKind,
    as_series,
    read_plan,
    slot_of,
)
from windlass.domain.values.ids import WorkerId
from windlass.domain.values.quantities import counted
from windlass.engine.claim.make_room import tell_to_stop
from windlass.engine.fleet.workers import remove, set_status
from windlass.engine.pools.snapshot import FleetSnapshot, KnownPool, Survey, take_snapshot
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.provider import Machine

GONE_KEPT_MS: Final = 7 * 86_400_000
_encode = msgspec.json.Encoder(order="deterministic").encode
ACTOR: Final = "pools"
MAX_REASON: Final = 300  # characters


async def decide(work: Work, survey: Survey, tokens: Sequence[str]) -> list[Verdict]:
    """Requests the workers that are missing, and drains those that are not needed."""
    for row in sorted(await work.tx.pools.all()):
        await work.tx.pools.lock(row.id)
    seen = await take_snapshot(work, survey)
    verdicts = size(seen.fleet)
    left = list(tokens)
    rows = {known.pool.name: known.row for known in seen.pools}
    for verdict in verdicts:
        count = min(verdict.start, len(left))
        if count:
            names, left = [f"{verdict.pool}-{one}" for one in left[:count]], left[count:]
            known = next(k for k in seen.pools if k.pool.name == verdict.pool)
            await _request(work, rows[verdict.pool], known, names)
    await _send_away(work, seen)
    await _take_back(work, seen)
    await _end_pools(work, seen)
    await note_plans(work, seen.fleet, verdicts)
    return verdicts


async def _request(work: Work, row: PoolRow, known: KnownPool, tokens: Sequence[str]) -> None:
    """Records the new workers: the worker row with its token, and the intent."""
    pool, slots = known.pool, known.template.slots
    static = _encode(pool.template()).decode()
    fresh: list[PoolWorkerRow] = []
    for token in tokens:
        worker = Worker(
            WorkerId(0), token, 0, 0, int(WorkerStatus.OFFLINE), work.now, 0, slots, static, "{}",
            None, None, work.now,
        )  # fmt: skip
        number = await work.tx.workers.insert(worker)
        work.say(
            EventKind.WORKER, f"was requested by pool {pool.name}", worker=number,
            actor=ACTOR, data={"name": token, "status": "offline", "static": pool.template()},
        )  # fmt: skip
        row_of = PoolWorkerRow(
            0, row.id, int(Lifecycle.REQUESTED), number, 0, work.now, work.now, None, work.now, 0,
            int(pool.spot), token, None, None,
        )  # fmt: skip
        fresh.append(row_of)
    await work.tx.pools.add_workers(fresh)
    await work.tx.pools.update(row._replace(started_at=work.now, updated_at=work.now))
    asked = {"tokens": list(tokens), "most": pool.max_workers}
    say(work, row, f"Pool {pool.name} asks for {counted(len(fresh), 'worker')}", **asked)


async def _send_away(work: Work, seen: FleetSnapshot) -> None:
    """Drains the workers that should leave; one that just got a job stays, unless all go."""
    for known, now in zip(seen.pools, seen.fleet.pools, strict=True):
        going = leavers(now, seen.members_of(known), work.now)
        for member in known.members:
            if member.id not in going:
                continue
            worker = (await work.tx.workers.lock([member.known_worker])).get(member.known_worker)
            held = await work.tx.leases.count([member.known_worker])
            idles = worker is not None and worker.last_lease == member.last_lease and not held
            if worker is None or (member.idle_since is not None and not idles):
                continue
            why = going[member.id]
            await set_status(work, member.known_worker, WorkerStatus.DRAINING, why, ACTOR)
            draining = move(work, known.row, member, Lifecycle.DRAINING, why)
            await work.tx.pools.update_workers([draining])


async def _take_back(work: Work, seen: FleetSnapshot) -> None:
    """Requeues the running jobs of a pool whose budget is spent, without blame."""
    for known, now in zip(seen.pools, seen.fleet.pools, strict=True):
        if known.members and is_spent(now):
            held = await work.tx.leases.of_workers(
                [member.known_worker for member in known.members]
            )
            why = f"the budget of pool {known.row.name} for this month is used up"
            stopped = await tell_to_stop(work, {lease.job: why for lease in held})
            if stopped:
                say(work, known.row, f"took back {counted(stopped, 'job')}: {why}")


async def _end_pools(work: Work, seen: FleetSnapshot) -> None:
    """Removes deleted pools after their last worker, and old rows of workers and codes."""
    for known in seen.pools:
        if known.row.state == PoolState.DELETING and not known.members:
            await work.tx.pools.remove(known.row.id)
            say(work, known.row, f"Pool {known.row.name} is gone")
    await work.tx.pools.trim_gone(work.now - GONE_KEPT_MS, work.config.chunk_rows)
    await work.tx.access.trim_codes(work.now - GONE_KEPT_MS, work.config.chunk_rows)


async def note_launch(work: Work, member: PoolWorkerRow, machine: Machine) -> None:
    """Records that the provider has started a machine."""
    await _note(work, member, Lifecycle.STARTING, None, machine.id)


async def note_refusal(work: Work, member: PoolWorkerRow, why: str) -> None:
    """Records that the provider refused or did not answer; whatever it made anyway must go."""
    row = await _note(work, member, Lifecycle.TERMINATING, why, None)
    if row is not None:
        await work.tx.pools.update(failed(work, row, decode_pool(row.body), why))


async def _note(
    work: Work, member: PoolWorkerRow, state: Lifecycle, why: str | None, machine: str | None
) -> PoolRow | None:
    """Moves a worker on from `requested`; returns None if it has moved on meanwhile."""
    row = await work.tx.pools.lock(member.pool)
    now = await work.tx.pools.worker(member.id)
    if row is None or now is None or now.state != Lifecycle.REQUESTED:
        return None
    moved = move(work, row, now, state, why)
    await work.tx.pools.update_workers([moved._replace(machine=machine or moved.machine)])
    return row


async def note_ended(work: Work, pool_id: int, tokens: Sequence[str]) -> None:
    """Records that machines of a provider without lists were ended."""
    await work.tx.pools.lock(pool_id)
    living = await work.tx.pools.living()
    ended = [m._replace(machine=None) for m in living if m.pool == pool_id and m.token in tokens]
    await work.tx.pools.update_workers(ended)


async def note_fault(work: Work, pool_id: int, why: str) -> None:
    """Records that a provider could not list its machines; concludes nothing from that.

    Removes workers that were never requested from it, so that nothing counts on them.
    """
    row = await work.tx.pools.lock(pool_id)
    if row is None:
        return
    for member in await work.tx.pools.living():
        unasked = member.state == Lifecycle.REQUESTED and not member.tries
        if member.pool == pool_id and unasked:
            gone = move(work, row, member, Lifecycle.GONE, why)
            await work.tx.pools.update_workers([gone._replace(worker=None)])
            await remove(work, member.known_worker, False, ACTOR)
    if row.message != why[:500]:
        say(work, row, f"Pool {row.name}: {why}")
    pause = max(row.next_at, after_failure(decode_pool(row.body), 1, work.now))
    await work.tx.pools.update(row._replace(message=why[:500], next_at=pause, updated_at=work.now))


def move(
    work: Work, row: PoolRow, member: PoolWorkerRow, state: Lifecycle, why: str | None
) -> PoolWorkerRow:
    """Moves a worker to its next state, with an event."""
    text = f"Worker {member.token} of pool {row.name} is {state.name.lower()}"
    say(work, row, f"{text}: {why}" if why else text, token=member.token, state=state.name.lower())
    tries = 0 if state != Lifecycle.REQUESTED else member.tries
    return member._replace(
        state=int(state), changed_at=work.now, reason=why, idle_since=None, tries=tries
    )


def failed(work: Work, row: PoolRow, pool: Pool, why: str) -> PoolRow:
    """Records a failed launch; the wait before the next grows with each failure."""
    failures = row.failures + 1
    say(work, row, f"Pool {row.name}: {why}", failures=failures)
    return row._replace(
        failures=failures, next_at=after_failure(pool, failures, work.now), message=why[:500]
    )


def say(work: Work, row: PoolRow, reason: str, **data: object) -> None:
    """Adds an event about a pool."""
    work.say(EventKind.POOL, reason, actor=ACTOR, data={"pool": row.name, **data})


async def note_plans(work: Work, fleet: Fleet, verdicts: Sequence[Verdict]) -> None:
    """Adds this round to the series of every pool."""
    series, rows = work.tx.series, []
    pools = {now.pool.name: now for now in fleet.pools}
    found = {verdict.pool: _figures(pools[verdict.pool], verdict) for verdict in verdicts}
    for step in STEPS:
        at = slot_of(work.now, step)
        known = await series.between([SeriesKind.PLAN], step, at, at + 1)
        earlier = {row.name: read_plan(row) for row in known}
        for name, figures in found.items():
            before = earlier.get(name)
            key = SeriesKey(SeriesKind.PLAN, step, at, "", name)
            rows.append(as_series(key, figures if before is None else figures.after(before)))
    await series.put(sorted(rows))


def _figures(now: PoolNow, verdict: Verdict) -> PlanFigures:
    pool = now.pool
    return PlanFigures(
        wanted=verdict.size,
        machines=now.serving + now.leaving + verdict.start,
        ready=now.serving - now.starting,
        most=pool.max_workers,
        latency_ms=verdict.latency_ms,
        target_ms=verdict.target_ms,
        used_ms=now.used_ms,
        used_micros=now.used_micros,
        budget_ms=pool.max_ms_per_month,
        reason=verdict.reason[:MAX_REASON],
    )
