"""Sets the timeout of an attempt from the duration of its media, as measured by the worker.

The policy stays here: workers report the duration, and are told how long they may run.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from windlass.domain.job.forms import MAX_MS
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.timeouts import limits_for
from windlass.domain.rows.records import Lease
from windlass.domain.tasks.media import timed_as
from windlass.domain.values.errors import WindlassError
from windlass.engine.attempts.attempt_files import is_held, lease_lost
from windlass.engine.attempts.reports import run_deadline
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.gateway import Holder

RUNNING: Final = State.RUNNING.code


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
