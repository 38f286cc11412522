"""Deadlines: cancels jobs that did not start in time, fails those that did not end in time.

A job that still waits for its first start when `finish_before` passes is canceled: it has nothing
that could time out. A running job times out, and one that backs off or is suspended fails.

Only jobs with a deadline have a row in its table, which is ordered by time, so the check costs
nothing while there are none.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from windlass.domain.job.forms import moment_ms
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import (
    ASSIGNED,
    FAILED,
    RETRYING,
    RUNNING,
    SUSPENDED,
    TIMED_OUT,
)
from windlass.domain.lifecycle.timeouts import Late, late_for
from windlass.domain.rows.records import JobFacts, Lease
from windlass.engine.jobs.cancel import end_waiting
from windlass.engine.jobs.close import Closing, Failure
from windlass.engine.jobs.dependents import hold_waits
from windlass.engine.jobs.places import Withdrawn, lock_leased, withdraw
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx

FINISH_BEFORE: Final = b'"finish_before"'  # text that occurs in specs that may have one
SLACK_MS: Final = 2_000


class Deadlines(msgspec.Struct, frozen=True):
    """The deadline fields of a stored spec."""

    start_before: str | None = None
    finish_before: str | None = None


_decode = msgspec.json.Decoder(Deadlines).decode


def cut_timeout(timeout_ms: int | None, spec: bytes, now: int) -> int | None:
    """Returns how long the agent lets an attempt run that must end by some time.

    It is slightly longer, so that the server acts first, if one is running.
    """
    finish_before = moment_ms(_decode(spec).finish_before)
    if finish_before is None:
        return timeout_ms
    left = max(1, finish_before - now + SLACK_MS)
    return left if timeout_ms is None else min(timeout_ms, left)


def deadlines_of(spec: JobSpec, job: int) -> list[tuple[int, int]]:
    """Returns the rows of a job's deadlines."""
    return [(at, job) for at in (spec.start_before_ms, spec.finish_before_ms) if at is not None]


def without_passed(spec: JobSpec, now: int) -> JobSpec:
    """Returns the spec of a retried job without the deadlines that have passed."""
    if spec.start_before is None and spec.finish_before is None:
        return spec
    return msgspec.structs.replace(
        spec,
        start_before=_ahead(spec.start_before, now),
        finish_before=_ahead(spec.finish_before, now),
    )


def _ahead(at: str | None, now: int) -> str | None:
    time = moment_ms(at)
    return at if time is not None and time > now else None


async def note_deadlines(work: Work, rows: Sequence[tuple[int, int]]) -> None:
    """Records deadlines, and sets the alarm for the first."""
    if rows:
        await work.tx.deadlines.add(rows)
        work.effects.fall_due(min(at for at, _ in rows))


async def next_deadline(tx: ReadTx) -> int | None:
    """Returns the earliest deadline."""
    first = await tx.deadlines.passed(2**62, 1)
    return first[0][0] if first else None


async def end_late(work: Work) -> int:
    """Handles jobs whose deadlines have passed; returns how many deadlines."""
    passed = await work.tx.deadlines.passed(work.now, work.config.chunk_rows)
    if not passed:
        return 0
    jobs = sorted({job for _, job in passed})
    facts = await work.tx.jobs.lock(jobs)
    await work.catalog.know(work.tx, {fact.shape for fact in facts.values()})
    specs = await work.tx.jobs.specs(sorted(facts))
    begun = await work.tx.steps.of_jobs(sorted(facts))  # only a job that started has steps
    late = {
        job: why
        for job, fact in facts.items()
        if (why := _late(fact, specs[job], job in begun, work.now))
    }
    if late:
        await _end(work, [facts[job] for job in sorted(late)], late)
    await work.tx.deadlines.drop(passed)
    return len(passed)


def _late(fact: JobFacts, spec: bytes, begun: bool, now: int) -> Late | None:
    if not fact.is_open:
        return None
    known = _decode(spec)
    start_before, finish_before = moment_ms(known.start_before), moment_ms(known.finish_before)
    return late_for(start_before, finish_before, bool(fact.failed or fact.lost or begun), now)


async def _end(work: Work, facts: Sequence[JobFacts], late: Mapping[int, Late]) -> None:
    await hold_waits(work, (), [fact.id for fact in facts])
    found = await withdraw(work, facts)
    leased = list(found.leased)
    for why in Late:
        waiting = [w for w in found.withdrawn if late[w.facts.id] is why and not _runs(w)]
        begun = [w for w in waiting if w.state in (RETRYING, SUSPENDED) and why is Late.FINISH]
        others = [w for w in waiting if w not in begun]
        await end_waiting(work, others, why.reason, None)
        timeout = FailureClass.TIMEOUT.code
        await end_waiting(work, begun, why.reason, None, FAILED, timeout)
    kept = [gone for gone in found.withdrawn if _runs(gone)]
    if kept:
        leased += await lock_leased(work, [gone.facts for gone in kept])
        await work.tx.places.add_waits([gone.wait for gone in kept if gone.wait is not None])
    await _end_leased(work, leased, late)


def _runs(gone: Withdrawn) -> bool:
    """Returns True if the job runs, and the wait is only kept for when it is requeued."""
    return gone.wait is not None and gone.wait.is_running


async def _end_leased(
    work: Work, leased: Sequence[tuple[JobFacts, Lease]], late: Mapping[int, Late]
) -> None:
    closing = Closing(work)
    await closing.learn(sorted(fact.id for fact, _ in leased))
    stopping: list[int] = []
    for fact, lease in leased:
        why = late[fact.id]
        if lease.state == ASSIGNED and why is Late.START:
            closing.cancel(fact, lease._replace(reason=why.reason), why.reason)
        elif lease.state == ASSIGNED:
            closing.fail(fact, lease, Failure(FailureClass.TIMEOUT, why.reason))
        elif lease.state == RUNNING and why is Late.FINISH:
            time_out(work, fact, lease, why.reason)
            stopping.append(fact.id)
    if stopping:
        await work.tx.leases.mark(stopping, TIMED_OUT, Late.FINISH.reason)
    await closing.write()


def time_out(work: Work, fact: JobFacts, lease: Lease, reason: str) -> None:
    """Records the timeout: the process has to stop, and the job ends with it."""
    activity = lease.last_activity_at
    work.move(
        fact.id, fact.shape, fact.workflow, lease.attempt, RUNNING, TIMED_OUT, reason,
        worker=lease.worker, incarnation=lease.incarnation, data={"last_activity": activity},
    )  # fmt: skip
    work.effects.count("timeouts")
    work.effects.pokes.append(lease.worker)
