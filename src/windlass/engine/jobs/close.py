"""How attempts end: the job completes, fails for good, is retried, or is handed back.

Reports of workers, lost workers, timeouts and cancellations all close attempts here, so counters,
limits, dependents and events follow one set of rules. The callers have locked the jobs and leases.
We decide first and then write everything at once with `write`.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.domain.job.job import QUARANTINED, decode_spec
from windlass.domain.job.retry_options import policy_of
from windlass.domain.lifecycle.failures import NOTHING_RAISED, FailureClass, Raised
from windlass.domain.lifecycle.retries import (
    GiveUp,
    Retry,
    RetryPolicy,
    RetryRules,
    backoff_ms,
    decide_retry,
    decide_return,
)
from windlass.domain.lifecycle.states import (
    ASSIGNED,
    BLOCKED,
    CANCELED,
    CANCELING,
    COMPLETED,
    FAILED,
    QUEUED,
    REJECTED,
    RETRYING,
    RUNNING,
    SUSPENDED,
    TIMED_OUT,
)
from windlass.domain.lifecycle.timeouts import Late, late_for
from windlass.domain.matching.claim_planning import exclude
from windlass.domain.matching.functions import MISSING
from windlass.domain.matching.suspects import ALONE, NOBODY, Company, suspect, suspicion_of
from windlass.domain.rows.records import (
    Attempt,
    Due,
    JobEnd,
    JobFacts,
    JobTry,
    Lease,
    Ticket,
    Wait,
)
from windlass.domain.rows.steps import FOREVER
from windlass.domain.values.ids import shown_attempt
from windlass.engine.jobs.dependents import hold_waits, jobs_ended
from windlass.engine.jobs.places import make_ready
from windlass.engine.jobs.priority import pass_on_ended
from windlass.engine.transaction.unit_of_work import Work


class Failure(NamedTuple):
    """Why an attempt did not complete."""

    failure: FailureClass
    message: str | None = None
    exit_code: int | None = None
    blameless: bool = False
    company: Company = NOBODY  # what the worker held when it was lost; any of it may be the cause
    gone: bool = False  # its worker cannot report how it ended
    misfit: bool = False  # the arguments are wrong, and nothing was run
    unable: bool = False  # its worker cannot run such jobs, others may
    back_off: bool = False  # without blame, but the next attempt would fail as well
    raised: Raised = NOTHING_RAISED

    @property
    def shared(self) -> bool:
        """Returns True if the worker was lost with other jobs too."""
        return self.company.held > 1


async def lock_attempts(
    work: Work, jobs: Sequence[int]
) -> tuple[dict[int, JobFacts], dict[int, Lease]]:
    """Locks jobs and their leases, so that their attempts can be closed."""
    facts = await work.tx.jobs.lock(jobs)
    leases = await work.tx.leases.lock(jobs)
    await work.catalog.know(work.tx, {fact.shape for fact in facts.values()})
    return facts, leases


class Closing:
    """The attempts that one transaction closes."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._ends: list[JobEnd] = []
        self._facts: list[JobFacts] = []  # workers of the ended jobs
        self._tries: list[JobTry] = []
        self._attempts: list[Attempt] = []
        self._again: list[tuple[int, int, Ticket]] = []  # not before, state, ticket
        self._dropped: list[int] = []
        self._freed: list[int] = []
        self._left: list[tuple[int, str]] = []  # queue limits under which leases end
        self._specs: dict[int, bytes] = {}
        self._history: dict[int, list[Attempt]] = {}

    async def learn(self, failing: Sequence[int]) -> None:
        """Reads what decisions about failed attempts need: the jobs' own policies and histories."""
        missing = [job for job in failing if job not in self._specs]
        if missing:
            self._specs.update(await self._work.tx.jobs.specs(missing))
            self._history.update(await self._work.tx.jobs.attempts(missing))

    def start(self, facts: JobFacts, lease: Lease) -> Lease:
        """Records `running` first if a result arrives for an assigned attempt."""
        if lease.state != ASSIGNED:
            return lease
        self._move(facts, lease, ASSIGNED, RUNNING, None)
        return lease._replace(state=RUNNING, started_at=self._work.now)

    def complete(
        self, facts: JobFacts, lease: Lease, exit_code: int | None, result: bytes | None
    ) -> None:
        """Completes the attempt and its job."""
        lease = self.start(facts, lease)
        self._move(facts, lease, lease.state, COMPLETED, None)
        self._end(facts, lease, COMPLETED, None, exit_code=exit_code, result=result)

    def fail(self, facts: JobFacts, lease: Lease, failure: Failure) -> None:
        """Ends an attempt that failed, timed out or lost its worker: retries or gives up."""
        if lease.state == CANCELING:
            self._end_canceled(facts, lease, failure)
            return
        source = lease.state
        if failure.failure is FailureClass.TIMEOUT and source != TIMED_OUT:
            activity = lease.last_activity_at or lease.assigned_at
            self._move(facts, lease, source, TIMED_OUT, failure.message, last_activity=activity)
            self._work.effects.count("timeouts")
            source = TIMED_OUT
        verdict = self._verdict(facts, lease, failure)
        if isinstance(verdict, Retry):
            self._retry(facts, lease, source, failure, verdict)
        elif failure.misfit and source in (ASSIGNED, RUNNING):
            self._reject(facts, lease, source, failure)
        else:
            self._give_up(facts, lease, source, failure, verdict)

    def cancel(self, facts: JobFacts, lease: Lease, reason: str) -> None:
        """Ends an attempt whose process never existed or has stopped after a cancel."""
        if lease.state == RUNNING:
            self._move(facts, lease, RUNNING, CANCELING, reason)
            lease = lease._replace(state=CANCELING)
        self._end_canceled(facts, lease, Failure(FailureClass.CANCELED, reason))

    def hand_back(
        self, facts: JobFacts, lease: Lease, reason: str | None, back_off: bool = False
    ) -> None:
        """Ends an attempt that the worker hands back, through no fault of the job."""
        if lease.state == CANCELING:
            self.cancel(facts, lease, lease.reason or "Canceled")
        elif lease.state == TIMED_OUT:
            self.fail(facts, lease, Failure(FailureClass.TIMEOUT, lease.reason))
        elif lease.state == RUNNING:
            kind = FailureClass.RESOURCE if back_off else FailureClass.WORKER_LOST
            message = reason or "Stopped by its worker"
            self.fail(facts, lease, Failure(kind, message, blameless=True, back_off=back_off))
        else:
            self._return(facts, lease, reason)

    def suspend(self, facts: JobFacts, lease: Lease, at: int) -> None:
        """Ends an attempt whose function waits, until `at` or until it is resumed; 0: continue at
        once.
        """
        lease = self.start(facts, lease)
        self._move(facts, lease, RUNNING, SUSPENDED, None, not_before=at)
        self._close_try(
            facts, lease, SUSPENDED, None, facts.failed, facts.lost, facts.returned, facts.excluded
        )
        self._again.append((at, SUSPENDED, ticket_of(facts, lease)))

    def decline(self, facts: JobFacts, lease: Lease, reason: str | None, back_off: bool) -> None:
        """Ends an attempt whose worker cannot run such jobs: another worker gets it at once.

        If its shape does not require what the worker lacks, the same worker would get it again, so
        the job is rejected.
        """
        shape = self._work.catalog.shapes[facts.shape]
        asks = any(clause.key == MISSING for clause in shape.requires)
        failure = Failure(
            FailureClass.CONFIGURATION, reason, blameless=asks, misfit=not asks, unable=asks,
            back_off=back_off and asks,
        )  # fmt: skip
        if lease.state in (ASSIGNED, RUNNING):
            self.fail(facts, self.start(facts, lease), failure)
        else:
            self.hand_back(facts, lease, reason)

    async def write(self) -> None:
        """Writes all decisions, in the order of locks."""
        work, tx = self._work, self._work.tx
        if self._dropped:
            await tx.leases.drop(self._dropped)
        if self._ends:
            await tx.jobs.end(self._ends)
        if self._tries:
            await tx.jobs.note_tries(self._tries)
            await tx.jobs.record_attempts(self._attempts)
        await self._settle_waits()
        if self._ends:
            await jobs_ended(work, self._facts, self._ends)
            work.effects.ended += [end.job for end in self._ends]
        for limit in self._freed:
            work.slots.free(limit)
        for limit, queue in self._left:
            work.slots.leave(limit, queue)

    def _verdict(self, facts: JobFacts, lease: Lease, failure: Failure) -> Retry | GiveUp:
        spec = decode_spec(self._specs[facts.id])
        policy = policy_of(self._work.config.retry, spec)
        if late_for(None, spec.finish_before_ms, False, self._work.now):
            return GiveUp(Late.FINISH.reason)
        if failure.back_off:
            starved = sum(a.failure == RESOURCE_CODE for a in self._history.get(facts.id, ()))
            return Retry(backoff_ms(policy, starved, self._chance(policy)), "none")
        if failure.unable:
            return Retry(0, "none")
        lost = WORKER_LOST_CODE
        lost_on = {a.worker for a in self._history.get(facts.id, ()) if a.failure == lost}
        return decide_retry(
            policy,
            failure.failure,
            failed=facts.failed,
            lost=facts.lost,
            lost_on_workers=len(lost_on | {lease.worker}),
            rules=RetryRules(spec.retries is not None, spec.retry_on, spec.no_retry_on),
            raised=failure.raised,
            started=lease.state != ASSIGNED,
            misfit=failure.misfit,
            blameless=failure.blameless,
            shared=failure.shared,
            suspected=suspicion_of(facts.excluded) > 0,
            returned=facts.returned,
            chance=self._chance(policy),
        )

    def _used_up(self, facts: JobFacts, verdict: Retry) -> dict[str, int]:
        """Returns which retry this is, and of how many, for the log."""
        policy = self._work.config.retry
        if verdict.counts == "none":
            return {}
        if verdict.counts == "returned":
            return {"retry": facts.returned + 1, "of": policy.max_returned}
        own = policy_of(policy, decode_spec(self._specs[facts.id]))
        if verdict.counts == "lost":
            return {"retry": facts.lost + 1, "of": own.max_lost}
        return {"retry": facts.failed + 1, "of": own.max_retries}

    def _chance(self, policy: RetryPolicy) -> float:
        return self._work.chance.fraction() if policy.jitter else 0.0

    def _retry(
        self, facts: JobFacts, lease: Lease, source: int, failure: Failure, verdict: Retry
    ) -> None:
        reason = failure.message or f"{failure.failure} failure"
        failed = facts.failed + (verdict.counts == "failed")
        lost = facts.lost + (verdict.counts == "lost")
        returned = facts.returned + (verdict.counts == "returned")
        excluded = facts.excluded
        if failure.shared:
            excluded = suspect(excluded, failure.company)
            reason += _apart_text(facts.excluded, excluded)
        at = self._work.now + verdict.after_ms
        self._move(
            facts, lease, source, RETRYING, reason,
            failure=str(failure.failure), counts=verdict.counts, backoff_ms=verdict.after_ms,
            not_before=at, **_numbering(facts, lease, failure),
            **self._used_up(facts, verdict), **_gone(failure),
        )  # fmt: skip
        if verdict.counts != "none":
            self._work.effects.count("retries")
        state = QUEUED if failure.unable else source
        self._close_try(facts, lease, state, failure, failed, lost, returned, excluded)
        ticket = ticket_of(facts, lease)._replace(excluded=excluded)
        self._again.append((at if verdict.after_ms else 0, RETRYING, ticket))

    def _give_up(
        self, facts: JobFacts, lease: Lease, source: int, failure: Failure, verdict: GiveUp
    ) -> None:
        why = f"{failure.message}: {verdict.reason}" if failure.message else verdict.reason
        counts = "lost" if failure.failure is FailureClass.WORKER_LOST else "failed"
        if failure.shared:
            counts = "returned"
        self._move(
            facts, lease, source, FAILED, why, failure=str(failure.failure), counts=counts,
            quarantined=verdict.quarantined, **_gone(failure),
        )  # fmt: skip
        counted = facts._replace(
            failed=facts.failed + (counts == "failed"),
            lost=facts.lost + (counts == "lost"),
            flags=facts.flags | (QUARANTINED if verdict.quarantined else 0),
        )
        self._end(counted, lease, FAILED, why, failure=failure)

    def _reject(self, facts: JobFacts, lease: Lease, source: int, failure: Failure) -> None:
        """Rejects a job that never began: requeues it, as the table demands, and ends it."""
        self._work.effects.count("assignment_failures")
        why = failure.message or "its arguments do not fit"
        kind = str(failure.failure)
        ticket = ticket_of(facts, lease)
        if source == RUNNING:
            self._move(facts, lease, RUNNING, RETRYING, why, failure=kind, counts="none")
            self._move_ticket(ticket, RETRYING, QUEUED, "Nothing of it ran")
        else:
            self._move(facts, lease, ASSIGNED, QUEUED, why, failure=kind)
        self._move_ticket(ticket, QUEUED, REJECTED, why)
        self._close_try(
            facts, lease, source, failure, facts.failed, facts.lost, facts.returned, facts.excluded
        )
        ended = facts._replace(attempt=lease.attempt)
        end = end_without_attempt(ended, REJECTED, self._work.now, why)
        self._ends.append(end._replace(failure=failure.failure.code, message=failure.message))
        self._facts.append(ended)

    def _end_canceled(self, facts: JobFacts, lease: Lease, failure: Failure) -> None:
        reason = lease.reason or failure.message or "Canceled"
        self._move(facts, lease, lease.state, CANCELED, reason)
        canceled = Failure(FailureClass.CANCELED, failure.message, failure.exit_code)
        self._end(facts, lease, CANCELED, reason, failure=canceled)

    def _return(self, facts: JobFacts, lease: Lease, reason: str | None) -> None:
        work = self._work
        policy = work.config.retry
        verdict = decide_return(
            policy,
            returned=facts.returned,
            with_reason=reason is not None,
            chance=self._chance(policy),
        )
        work.effects.count("assignment_failures")
        given_back = Failure(FailureClass.WORKER_LOST, reason or "Handed back unstarted")
        if isinstance(verdict, GiveUp):
            self._move(
                facts, lease, ASSIGNED, FAILED, verdict.reason, counts="returned",
            )  # fmt: skip
            self._end(facts, lease, FAILED, verdict.reason, failure=given_back)
            return
        at = work.now + verdict.after_ms if verdict.after_ms else 0
        excluded = facts.excluded
        if reason is not None:
            until = work.now + work.config.returned_exclusion_ms
            excluded = exclude(excluded, lease.worker, until, work.now)
        self._move(
            facts, lease, ASSIGNED, QUEUED, given_back.message, counts="returned", not_before=at
        )
        self._close_try(
            facts, lease, QUEUED, None, facts.failed, facts.lost, facts.returned + 1, excluded
        )
        self._again.append((at, QUEUED, ticket_of(facts, lease)._replace(excluded=excluded)))

    def _close_try(
        self, facts: JobFacts, lease: Lease, state: int, failure: Failure | None,
        failed: int, lost: int, returned: int, excluded: str | None,
    ) -> None:  # fmt: skip
        handed_back = facts.handed_back + (state == QUEUED)
        self._tries.append(
            JobTry(facts.id, lease.attempt, failed, lost, returned, handed_back, excluded)
        )
        self._attempts.append(
            Attempt(
                facts.id,
                lease.attempt,
                lease.worker,
                lease.incarnation,
                state if state in (QUEUED, TIMED_OUT, SUSPENDED) else FAILED,
                failure.failure.code if failure else 0,
                failure.exit_code if failure else None,
                failure.message if failure else None,
                lease.assigned_at,
                lease.started_at,
                self._work.now,
            )
        )
        self._drop(facts, lease)

    def _end(
        self, facts: JobFacts, lease: Lease, state: int, reason: str | None, *,
        failure: Failure | None = None, exit_code: int | None = None, result: bytes | None = None,
    ) -> None:  # fmt: skip
        self._ends.append(
            JobEnd(
                facts.id,
                state,
                facts.flags,
                lease.attempt,
                facts.failed,
                facts.lost,
                lease.worker,
                lease.incarnation,
                lease.assigned_at,
                lease.started_at,
                self._work.now,
                failure.failure.code if failure else 0,
                failure.exit_code if failure else exit_code,
                failure.message if failure else None,
                reason,
                failure.raised.stored() if failure else result,
            )
        )
        self._facts.append(facts)
        self._drop(facts, lease)

    def _drop(self, facts: JobFacts, lease: Lease) -> None:
        self._dropped.append(facts.id)
        self._work.effects.leaving.add(lease.worker)
        if facts.limit:
            self._freed.append(facts.limit)
        if lease.queue_limit:
            self._left.append((lease.queue_limit, self._work.catalog.queue_of(facts.shape)))

    def _move(
        self, facts: JobFacts, lease: Lease, source: int, to: int, reason: str | None,
        **data: object,
    ) -> None:  # fmt: skip
        self._work.move(
            facts.id, facts.shape, facts.workflow, lease.attempt, source, to, reason,
            worker=lease.worker, incarnation=lease.incarnation, data=data or None,
        )  # fmt: skip

    async def _settle_waits(self) -> None:
        """Settles waits that jobs kept while they ran (see `engine/jobs/supersede.py`)."""
        ended = [end.job for end in self._ends]
        if not ended and not self._again:
            return
        again = [ticket.job for _, _, ticket in self._again]
        waits = await hold_waits(self._work, again, ended)
        over = [job for job in ended if job in waits]
        if over:
            await self._work.tx.places.take_waits(over)
            flags = {fact.id: fact.flags for fact in self._facts}
            pass_on_ended(self._work, ((job, flags[job]) for job in over))
        if self._again:
            await self._requeue(waits)

    async def _requeue(self, waits: Mapping[int, Wait]) -> None:
        """Puts jobs that continue back into a place; unmet dependencies block them again."""
        work = self._work
        blocked = await self._blocked_again(waits)
        ready: list[Ticket] = []
        later: list[Due] = []
        for at, state, ticket in self._again:
            if ticket.job in blocked:
                self._move_ticket(ticket, state, BLOCKED, "A dependency was retried")
            elif at > work.now:
                later.append(Due(at, ticket.job, state, ticket))
                if at < FOREVER:
                    work.effects.fall_due(at)
            else:
                if state == RETRYING:
                    self._move_ticket(ticket, RETRYING, QUEUED, "Retried at once")
                elif state == SUSPENDED:
                    self._move_ticket(ticket, SUSPENDED, QUEUED, "Its wait is over")
                ready.append(ticket)
        if later:
            await work.tx.places.add_due(later)
        await make_ready(work, ready)

    async def _blocked_again(self, waits: Mapping[int, Wait]) -> set[int]:
        """Returns the continuing jobs that have kept a wait, which counts from now on."""
        kept = [
            waits[ticket.job]._replace(manual=0, ticket=ticket)
            for _, _, ticket in self._again
            if ticket.job in waits
        ]
        if kept:
            await self._work.tx.places.take_waits([wait.job for wait in kept])
            await self._work.tx.places.add_waits(kept)
        return {wait.job for wait in kept}

    def _move_ticket(self, ticket: Ticket, source: int, to: int, reason: str) -> None:
        self._work.move(
            ticket.job, ticket.shape, ticket.workflow, ticket.attempt, source, to, reason
        )


def end_without_attempt(facts: JobFacts, state: int, now: int, reason: str) -> JobEnd:
    """Ends a job that has no active attempt."""
    return JobEnd(
        facts.id, state, facts.flags, facts.attempt, facts.failed, facts.lost,
        None, None, None, None, now, 0, None, None, reason, None,
    )  # fmt: skip


def _numbering(facts: JobFacts, lease: Lease, failure: Failure) -> dict[str, object]:
    """Returns the next shown attempt number, if attempts of the job were handed back."""
    handed_back = facts.handed_back + failure.unable
    if not handed_back:
        return {}
    shown: dict[str, object] = {"next": shown_attempt(lease.attempt + 1, handed_back)}
    return {**shown, "handed_back": True} if failure.unable else shown


def _gone(failure: Failure) -> dict[str, bool]:
    return {"gone": True} if failure.gone else {}


def _apart_text(before: str | None, excluded: str) -> str:
    most = suspicion_of(excluded)
    if not suspicion_of(before):
        return "; other jobs ran there, so none is blamed"
    if most == ALONE:
        return "; other jobs ran there, so it is retried alone on a worker"
    return f"; other jobs ran there, so at most {most} of them are retried on one worker"


WORKER_LOST_CODE = FailureClass.WORKER_LOST.code
RESOURCE_CODE = FailureClass.RESOURCE.code


def ticket_of(facts: JobFacts, lease: Lease) -> Ticket:
    """Returns the ticket of a job whose attempt has just closed."""
    return Ticket(
        facts.shape, facts.rank, facts.id, lease.attempt, facts.workflow, facts.limit,
        facts.excluded,
    )  # fmt: skip
