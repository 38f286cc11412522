"""What a running attempt writes besides its outcome, fenced by its lease.

The log of an attempt may arrive after the attempt has ended, since completion does not wait for it.
So we also accept log bytes from the worker that reported the end. Artifacts and progress are
accepted only from the holder of the lease. All of them count as activity, which moves
`last_activity_at`, and with it the deadline. The worker also reports the duration of media; how
long it may run for that is decided here.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from windlass.domain.job.forms import MAX_MS
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import RUNNING
from windlass.domain.lifecycle.timeouts import limits_for
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.files import LogRow, LogState
from windlass.domain.rows.records import Lease
from windlass.domain.rows.statistics import Usage
from windlass.domain.tasks.media import timed_as
from windlass.domain.values.errors import Conflict, WindlassError
from windlass.engine.attempts.log_segments import grown
from windlass.engine.attempts.reports import run_deadline
from windlass.engine.transaction.arguments import check_id
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.gateway import Holder
from windlass.store.sql.transaction import ReadTx

WORKER_LOST = FailureClass.WORKER_LOST.code
Apply = Callable[[Work, Holder, Lease | None], Awaitable[Any]]


class Write(NamedTuple):
    """Something an attempt writes; `apply` gets the lease if the writer holds it."""

    holder: Holder
    apply: Apply


async def write_all(work: Work, writes: Sequence[Write]) -> list[Any | WindlassError]:
    """Applies a batch; refused writes change nothing, accepted ones count as activity."""
    leases = await work.tx.leases.lock(sorted({write.holder.job for write in writes}))
    touched: dict[int, tuple[int, int, int | None]] = {}
    answers: list[Any | WindlassError] = []
    for holder, apply in writes:
        lease = leases.get(holder.job)
        if lease is not None and not is_held(lease, holder):
            lease = None
        try:
            answers.append(await apply(work, holder, lease))
        except WindlassError as refusal:
            answers.append(refusal)
            continue
        if lease is not None and lease.state == RUNNING:
            deadline = run_deadline(work, lease, lease.known_start, work.now)
            touched[lease.job] = (lease.job, work.now, deadline)
    if touched:
        await work.tx.leases.touch([touched[job] for job in sorted(touched)])
    return answers


def check_holder(holder: Holder) -> None:
    """Raises `InvalidInput` for numbers that cannot identify a holder."""
    for field, number in zip(holder._fields, holder, strict=True):
        check_id(field, number)


def is_held(lease: Lease, holder: Holder) -> bool:
    """Returns True if this is the holder's lease."""
    return lease.job == holder.job and (lease.worker, lease.incarnation, lease.attempt) == (
        holder.worker,
        holder.incarnation,
        holder.attempt,
    )


async def held_lease(tx: ReadTx, holder: Holder) -> Lease:
    """Returns the lease; raises unless this is its holder."""
    lease = (await tx.leases.read([holder.job])).get(holder.job)
    if lease is None or not is_held(lease, holder):
        raise lease_lost(holder)
    return lease


def lease_lost(holder: Holder) -> Conflict:
    """Returns the error for a worker that does not hold the attempt."""
    return Conflict(
        "lease_lost",
        f"attempt {holder.attempt} of job {holder.job} is not held by incarnation "
        f"{holder.incarnation} of worker {holder.worker}: stop it",
    )


async def may_log(
    tx: ReadTx, holder: Holder, lease: Lease | None, *, only_lost: bool = False
) -> None:
    """Raises unless this is the holder, or the worker that reported the end.

    With `only_lost`, a worker that has lost its lease may also report that the log is lost.
    """
    if lease is not None:
        return
    facts = (await tx.jobs.read([holder.job])).get(holder.job)
    mine = holder.attempt, holder.worker, holder.incarnation
    if facts is not None and not facts.is_open:
        ended_by = facts.attempt, facts.worker, facts.incarnation
        if ended_by == mine:
            return
    attempts = (await tx.jobs.attempts([holder.job])).get(holder.job, [])
    if any(
        (row.number, row.worker, row.incarnation) == mine
        and (only_lost or row.failure != WORKER_LOST)
        for row in attempts
    ):
        return
    raise lease_lost(holder)


async def log_of(tx: ReadTx, holder: Holder) -> LogRow:
    """Returns the row of the attempt's log, or a new one."""
    row = await tx.files.log(holder.job, holder.attempt)
    return row or LogRow(holder.job, holder.attempt, int(LogState.NONE), 0, 0, 0)


def is_ended(row: LogRow) -> bool:
    """Returns True if nothing more is added to a log."""
    return row.state in (LogState.COMMITTED, LogState.LOST)


def extend_log(before: LogRow, offset: int, size: int) -> Apply:
    """Returns an update that adds a segment to the log's row, if the row is still `before`."""

    async def apply(work: Work, holder: Holder, lease: Lease | None) -> tuple[LogRow, LogRow]:
        await may_log(work.tx, holder, lease)
        row = await log_of(work.tx, holder)
        if row.bytes != before.bytes or is_ended(row):
            return row, row
        after = grown(row, offset, size, work.config.log_limit)
        await work.tx.files.put_log(after)
        return row, after

    return apply


def finish_log(size: int, state: LogState, peak_memory: int = 0) -> Apply:
    """Returns an update that marks a log as complete, or its rest as lost."""

    async def apply(work: Work, holder: Holder, lease: Lease | None) -> None:
        await may_log(work.tx, holder, lease, only_lost=state is LogState.LOST)
        row = await log_of(work.tx, holder)
        if is_ended(row):
            return
        if state is LogState.COMMITTED and row.bytes != size:
            raise Conflict(
                "log_incomplete", f"expected all {size} bytes of the log, got {row.bytes}"
            )
        await end_log(work, row, max(size, row.bytes), state, holder)
        if peak_memory:
            await work.tx.statistics.put_usage(Usage(holder.job, holder.attempt, peak_memory))

    return apply


async def end_log(
    work: Work, row: LogRow, size: int, state: LogState, holder: Holder | None
) -> None:
    """Writes the end of a log, with an event."""
    if size > row.bytes:
        row = grown(row, size, 0, 0)
    await work.tx.files.put_log(row._replace(state=int(state)))
    work.say(
        EventKind.LOG,
        f"The log is {state.name.lower()}",
        job=row.job,
        worker=holder.worker if holder else 0,
        incarnation=holder.incarnation if holder else 0,
        data={"attempt": row.attempt, "state": state.name.lower(), "bytes": size},
    )


class Measured(NamedTuple):
    """A worker's report about the media of an attempt it holds."""

    holder: Holder
    duration_ms: int


async def measure_all(work: Work, found: Sequence[Measured]) -> list[int | WindlassError | None]:
    """Returns the time limit of each attempt, in ms from its start; None: while it is active."""
    jobs = sorted({item.holder.job for item in found})
    known = await work.tx.jobs.lock(jobs)
    leases = await work.tx.leases.lock(jobs)
    answers: list[int | WindlassError | None] = []
    rows: dict[int, tuple[int, int | None, int | None]] = {}
    for holder, duration_ms in found:
        lease = leases.get(holder.job)
        if lease is None or not is_held(lease, holder):
            answers.append(lease_lost(holder))
            continue
        timeout_ms = await _timeout(work, lease, duration_ms)
        answers.append(timeout_ms)
        if timeout_ms != lease.timeout_ms and lease.state == RUNNING:
            changed = lease._replace(timeout_ms=timeout_ms)
            deadline = run_deadline(work, changed, lease.known_start, lease.last_activity_at)
            rows[lease.job] = (lease.job, timeout_ms, deadline)
    if rows:
        await work.tx.leases.allow([rows[job] for job in sorted(rows)])
        # Shown with the job, even after it has ended; also limits its next attempt.
        await work.tx.jobs.set_timeouts([rows[job][:2] for job in sorted(rows) if job in known])
    return answers


async def _timeout(work: Work, lease: Lease, duration_ms: int) -> int | None:
    view = await work.tx.views.job(lease.job)
    if view is None:
        return lease.timeout_ms
    spec = decode_spec(view.spec)
    limits = limits_for(
        work.config.timeouts,
        task=timed_as(spec.task, spec.args),
        queue=spec.queue,
        duration_ms=min(duration_ms, MAX_MS),
        own_run_ms=spec.timeout_ms,
        own_idle_ms=spec.idle_timeout_ms,
        queue_ms=work.catalog.timeouts.get(spec.queue),
    )
    return limits.run_ms or None
