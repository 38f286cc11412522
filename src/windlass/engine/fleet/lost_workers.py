"""The steps of the maintenance loops, each one transaction on a bounded number of rows."""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.domain.config import outage_ms
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import ASSIGNED, RUNNING, TIMED_OUT
from windlass.domain.matching.workers import LEASED, WorkerStatus, offline
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import Lease, Worker
from windlass.domain.values.quantities import counted, format_duration
from windlass.engine.fleet.epochs import HOLD
from windlass.engine.fleet.workers import end_leases
from windlass.engine.jobs.close import Closing, Failure, lock_attempts
from windlass.engine.jobs.deadlines import time_out
from windlass.engine.transaction.unit_of_work import Work

_ONLINE = (WorkerStatus.ONLINE,)
# statuses that silence does not change
_SHUT_OUT = (WorkerStatus.DISABLED, WorkerStatus.PENDING_APPROVAL)


class SilenceReport(NamedTuple):
    """What a check of the workers' heartbeats found."""

    unhealthy: int
    lost: int
    orphans: int


async def note_server_alive(work: Work) -> bool:
    """Records that a server listens to workers; returns True if leases may end now.

    After a gap in which no server did so, or a jump of the clock, nothing ends until every worker
    had a full lease to sync again.
    """
    meta = await work.tx.catalog.meta()
    heard_at = meta.get("heard_at", 0)
    grace_until = meta.get("grace_until", 0)
    gap = work.now - heard_at
    if gap > outage_ms(work.config) or gap < 0:
        grace_until = work.now + work.config.heartbeat_timeout_ms
        await work.tx.catalog.set_meta("grace_until", grace_until)
    await work.tx.catalog.set_meta("heard_at", work.now)
    if 0 < meta.get(HOLD, 0) <= work.now:
        await work.tx.catalog.set_meta(HOLD, 0)
        work.effects.catalog = True
    return work.now >= grace_until


async def judge_silence(work: Work, last_heard: dict[int, int], may_end: bool) -> SilenceReport:
    """Marks workers that missed a heartbeat, and ends the incarnations of lost ones."""
    config = work.config
    late = await _unheard(work, last_heard, config.heartbeat_interval_ms * 4 // 3, _ONLINE)
    lost: list[Worker] = []
    left: list[Worker] = []
    if may_end:
        lost = await _unheard(work, last_heard, config.heartbeat_timeout_ms, LEASED)
        left = await _unheard(work, last_heard, config.heartbeat_timeout_ms, _SHUT_OUT)
    # Lock all at once and in order; workers that synced meanwhile are left alone.
    seen = {worker.id: worker.last_seen for worker in (*late, *lost, *left)}
    locked = await work.tx.workers.lock(sorted(seen)) if seen else {}
    silent: dict[int, Worker] = {w.id: w for w in locked.values() if w.last_seen == seen[w.id]}
    unhealthy = await _mark_unhealthy(work, silent, late)
    gone = await _lose(work, [silent[w.id] for w in lost if w.id in silent])
    gone += [silent[w.id] for w in left if w.id in silent]
    leases = await work.tx.leases.of_workers(sorted(worker.id for worker in gone))
    orphans = await end_orphans(work, leases, {worker.id: worker.name for worker in gone})
    return SilenceReport(unhealthy, len(lost), orphans)


async def _unheard(
    work: Work, last_heard: dict[int, int], silence_ms: int, statuses: Sequence[WorkerStatus]
) -> list[Worker]:
    """Returns workers that neither the store nor this engine has heard from; not locked."""
    cutoff = work.now - silence_ms
    codes = tuple(int(status) for status in statuses)
    found = await work.tx.workers.silent_since(cutoff, codes)
    return [w for w in found if last_heard.get(w.id, 0) < cutoff][: work.config.chunk_rows]


async def _mark_unhealthy(work: Work, silent: dict[int, Worker], late: list[Worker]) -> int:
    """Marks those that are still online; `silent` holds their locked rows."""
    marked = []
    for worker in (silent[w.id] for w in late if w.id in silent):
        if worker.status == WorkerStatus.ONLINE:
            silent[worker.id] = worker._replace(status=int(WorkerStatus.UNHEALTHY))
            marked.append(silent[worker.id])
            work.say_of(worker, f"Worker {worker.name} missed a heartbeat", status="unhealthy")
    if marked:
        await work.tx.workers.update(marked)
    return len(marked)


async def _lose(work: Work, silent: list[Worker]) -> list[Worker]:
    """Ends these incarnations; their leases become orphans."""
    lost = [worker for worker in silent if worker.status in LEASED]
    threshold = format_duration(work.config.heartbeat_timeout_ms)
    for worker in lost:
        silence = format_duration((work.now - worker.last_seen) // 1000 * 1000)
        message = f"dead - no heartbeat for {silence} (threshold: {threshold})"
        work.say_of(worker, message, name=worker.name, status="offline")
    if lost:
        await work.tx.workers.update([offline(worker, "lost") for worker in lost])
        work.effects.count("worker_failures", len(lost))
    return lost


async def end_orphans(work: Work, leases: list[Lease], names: dict[int, str]) -> int:
    """Ends the attempts of workers that are gone."""
    if not leases:
        return 0
    reasons = {
        worker: f"Worker {names.get(worker, str(worker))} died mid-execution"
        for worker in {lease.worker for lease in leases}
    }
    ended = await end_leases(work, leases, reasons)
    if ended:
        work.say(EventKind.LOOP, f"Found {counted(ended, 'orphaned job')}", actor="cleanup")
        work.effects.count("orphans", ended)
    return ended


async def recover_orphans(work: Work) -> int:
    """Ends leases whose worker was removed or has started a new incarnation."""
    return await end_orphans(work, await work.tx.leases.orphans(work.config.chunk_rows), {})


async def end_overdue(work: Work) -> int:
    """Times out attempts past their deadline that their agents did not end."""
    overdue = await work.tx.leases.overdue(work.now, work.config.chunk_rows)
    if not overdue:
        return 0
    facts, present = await lock_attempts(work, sorted(lease.job for lease in overdue))
    closing = Closing(work)
    assigned = [job for job, lease in present.items() if lease.state == ASSIGNED]
    await closing.learn(assigned)
    stopping: list[int] = []
    for job, lease in present.items():
        if lease.deadline_at is None or lease.deadline_at > work.now:
            continue
        if lease.state == ASSIGNED:
            reason = "Assigned, but never started"
            closing.fail(facts[job], lease, Failure(FailureClass.TIMEOUT, reason))
        elif lease.state == RUNNING:
            time_out(work, facts[job], lease, "Timed out")
            stopping.append(job)
    if stopping:
        await work.tx.leases.mark(stopping, TIMED_OUT, "Timed out")
    await closing.write()
    return len(stopping) + len(assigned)


async def refill_limits(work: Work) -> int:
    """Queues parked jobs wherever a limit has room, as a safety net."""
    limits = await work.tx.limits.parked()
    for limit in limits:
        work.slots.refill(limit)
    return len(limits)
