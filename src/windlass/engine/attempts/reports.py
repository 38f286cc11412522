"""Applies the reports of workers about their attempts, fenced by (job, attempt, incarnation).

A report *is* the removal of its lease. One that finds no lease of its own is compared with the
closed attempt: if the same incarnation recorded it, the report is a repetition and changes nothing;
otherwise the lease was lost and the worker must kill the process.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

import msgspec

from windlass.domain.lifecycle.failures import (
    FAILURE_BY_NAME,
    INFRASTRUCTURE,
    NOTHING_RAISED,
    FailureClass,
    classify,
)
from windlass.domain.lifecycle.states import ASSIGNED, COMPLETED, RUNNING, TIMED_OUT
from windlass.domain.lifecycle.timeouts import RunLimits, backstop_ms, run_deadline_ms
from windlass.domain.matching.probation import Trouble
from windlass.domain.matching.suspects import NOBODY, Company
from windlass.domain.rows.records import (
    Attempt,
    JobFacts,
    Lease,
    Worker,
)
from windlass.domain.tasks.built_in import MEDIA_TASKS
from windlass.domain.values.ids import JobId
from windlass.engine.jobs.close import Closing, Failure, lock_attempts
from windlass.engine.jobs.dependents import hold_dependents, satisfy_dependents
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import Finished, Refusal, Released, Started, SyncRequest

MAX_CODE = 2**31 - 1

_BACKSLASH = ord("\\")
_encode = msgspec.json.Encoder().encode


class NotHeld(NamedTuple):
    """An attempt that was assigned to a worker which does not hold it."""

    job: int
    attempt: int


Item = Started | Finished | Released | NotHeld


class AttemptReport(NamedTuple):
    """One report of one worker about one attempt."""

    worker: Worker
    item: Item


Done: TypeAlias = dict[int, tuple[Worker, Finished]]
"""Plain completions by job, as `Flow.complete` takes them."""


class ReportOutcome(NamedTuple):
    """Refused reports by worker, and infrastructure failures with their workers.

    `applied` holds the workers with at least one report that was neither refused nor a repetition;
    None means all of them.
    """

    lost: dict[int, list[Refusal]]
    troubles: list[tuple[int, Trouble]]
    applied: set[int] | None = None


def split_reports(
    worker: Worker, request: SyncRequest, limit: int, done: Done
) -> list[AttemptReport]:
    """Adds the plain completions of a sync to `done` and returns its other reports."""
    others: list[AttemptReport] = []
    for item in _items_of(request):
        if type(item) is Finished and item.outcome == "completed" and item.job not in done:
            code = item.exit_code
            fits = code is None or -MAX_CODE <= code <= MAX_CODE
            if item.result is None and fits:
                done[item.job] = worker, item
                continue
            result, problem = _storable(item.result, limit)
            if problem is not None:
                others.append(AttemptReport(worker, item))
                continue
            if not fits:
                code = exit_code_of(item)
            # By position, for speed: this runs for each job that has a result.
            stored = Finished(item.job, item.attempt, "completed", code, None, None, result)
            done[item.job] = worker, stored
        else:
            others.append(AttemptReport(worker, item))
    return others


def _items_of(request: SyncRequest) -> Iterable[Item]:
    """Returns at most one item per attempt: finished wins, then released."""
    finished = request.finished
    only = not request.started and not request.released
    if only and len({item.job for item in finished}) == len(finished):
        return finished
    items: dict[tuple[int, int], Item] = {}
    statements: Iterable[Item] = chain(request.started, request.released, request.finished)
    for item in statements:
        items[item.job, item.attempt] = item
    return items.values()


async def apply_reports(
    work: Work,
    done: Done,
    reports: list[AttemptReport],
) -> ReportOutcome:
    """Applies reports that hold their lease, and refuses the others unless they are repetitions."""
    applied: set[int] = set()
    if done:
        if reports:
            # Locks are taken once and in order, even if some reports need more work.
            await work.tx.jobs.lock(sorted({*done, *(report.item.job for report in reports)}))
        left = await _complete_plain(work, done)
        if left and not reports and await _complete_tied(work, left):
            left = ()
        if not left and not reports:
            return ReportOutcome({}, [])
        unsettled = {item.job for _, item in left}
        applied = {worker.id for job, (worker, _) in done.items() if job not in unsettled}
        reports = [*(_as_report(*report) for report in left), *reports]
    if not reports:
        return ReportOutcome({}, [])
    return await _apply_others(work, reports, applied)


def _as_report(worker: Worker, item: Finished) -> AttemptReport:
    if item.result is not None:
        item = msgspec.structs.replace(item, result=msgspec.Raw(item.result))
    return AttemptReport(worker, item)


async def _complete_plain(work: Work, done: Done) -> Sequence[tuple[Worker, Finished]]:
    """Completes jobs without dependents and returns the others."""
    ended = await work.tx.flow.complete(work.now, list(done.values()))
    if not ended:
        return list(done.values())
    _record_completed(work, ended, done)
    if len(ended) == len(done):
        return ()
    gone = set(ended)
    return [item for job, item in done.items() if job not in gone]


def _record_completed(work: Work, ended: Sequence[int], done: Done) -> None:
    """Records the transitions of completed jobs, those of one worker together."""
    holders: dict[tuple[int, int], tuple[list[int], list[int]]] = {}
    last: Worker | None = None
    for job in ended:
        worker, item = done[job]
        if worker is not last:
            last = worker
            jobs, attempts = holders.setdefault((worker.id, worker.incarnation), ([], []))
        jobs.append(job)
        attempts.append(item.attempt)
    for (who, incarnation), (jobs, attempts) in holders.items():
        work.move_all(jobs, attempts, ((RUNNING, COMPLETED),), who, incarnation)
    work.effects.ended += ended


async def _complete_tied(work: Work, done: Sequence[tuple[Worker, Finished]]) -> bool:
    """Completes all of these and releases their dependents; returns False if it cannot."""
    ended = await work.tx.flow.complete_tied(work.now, done)
    if not ended:
        return False
    jobs = [row.job for row in ended]
    _record_completed(work, jobs, {report[1].job: report for report in done})
    for (shape, workflow), alike in Counter([(row.shape, row.workflow) for row in ended]).items():
        work.count_moves(shape, workflow, RUNNING, COMPLETED, alike)
    edges = await work.tx.jobs.dependents(jobs, 0)
    if edges:
        await hold_dependents(work, (), edges)
        await satisfy_dependents(work, edges)
    return True


async def _apply_others(
    work: Work, reports: Sequence[AttemptReport], applied: set[int]
) -> ReportOutcome:
    """Applies the reports that are not plain completions."""
    facts, leases = await lock_attempts(work, sorted({report.item.job for report in reports}))
    held: list[tuple[AttemptReport, JobFacts, Lease]] = []
    doubtful: list[AttemptReport] = []
    for report in reports:
        lease = leases.get(report.item.job)
        if lease is not None and _holds(report, lease):
            held.append((report, facts[lease.job], lease))
        elif not isinstance(report.item, NotHeld):
            doubtful.append(report)
    applied.update(report.worker.id for report, _, _ in held)
    outcome = ReportOutcome({}, [], applied)
    await _apply(work, held, outcome)
    if doubtful:
        await _judge(work, doubtful, facts, outcome)
    return outcome


def _holds(report: AttemptReport, lease: Lease) -> bool:
    worker, item = report
    return (
        lease.attempt == item.attempt
        and lease.worker == worker.id
        and lease.incarnation == worker.incarnation
    )


async def _apply(
    work: Work, held: Sequence[tuple[AttemptReport, JobFacts, Lease]], outcome: ReportOutcome
) -> None:
    closing = Closing(work)
    limit = work.config.result_limit
    await closing.learn([lease.job for r, _, lease in held if _may_retry(r.item, lease, limit)])
    waits = await _ends_of_waits(work, held)
    started: list[tuple[int, int, int | None]] = []
    lost: dict[int, Company] = {}
    for report, _, lease in held:
        if _is_loss(report.item):
            lost[lease.worker] = lost.get(lease.worker, NOBODY).joined_by(lease.suspicion)
    for report, facts, lease in held:
        item = report.item
        company = lost[lease.worker] if _is_loss(item) else NOBODY
        if _suspends(item) and lease.state in (ASSIGNED, RUNNING):
            closing.suspend(facts, lease, waits.get(lease.job, 0))
        elif isinstance(item, Finished):
            _finish(closing, facts, lease, item, outcome, limit, company, work)
        elif isinstance(item, Released):
            if item.unable:
                closing.decline(facts, lease, _clean(item.reason), item.back_off)
            else:
                closing.hand_back(facts, lease, _clean(item.reason), item.back_off)
        elif isinstance(item, NotHeld):
            message = "The worker does not hold this job"
            closing.fail(facts, lease, Failure(FailureClass.WORKER_LOST, message, company=company))
        elif lease.state == ASSIGNED:
            closing.start(facts, lease)
            started.append((lease.job, work.now, run_deadline(work, lease, work.now, None)))
    if started:
        await work.tx.leases.start(started)
    await closing.write()


async def _ends_of_waits(
    work: Work, held: Sequence[tuple[AttemptReport, JobFacts, Lease]]
) -> dict[int, int]:
    """Returns until when suspended attempts wait; those whose wait is already over are absent.

    The lock makes a signal that comes now wait until the job can be found.
    """
    attempts = {lease.job: lease.attempt for r, _, lease in held if _suspends(r.item)}
    if not attempts:
        return {}
    ends: dict[int, int] = {}
    for step in await work.tx.steps.lock_pending(sorted(attempts)):
        if step.attempt == attempts[JobId(step.job)]:
            ends[step.job] = min(step.due_at, ends.get(step.job, step.due_at))
    return ends


def _suspends(item: Item) -> bool:
    return isinstance(item, Finished) and item.outcome == "suspended"


def _is_loss(item: Item) -> bool:
    """Returns True for an attempt that ended with its process, or with everything on its worker.

    Functions share processes: if one kills its process, the others in it are lost too.
    """
    if isinstance(item, Finished):
        return item.outcome == "failed" and item.failure == FailureClass.WORKER_LOST.value
    return isinstance(item, NotHeld)


def _may_retry(item: Item, lease: Lease, limit: int) -> bool:
    if isinstance(item, Finished):
        fine = item.outcome == "completed" and lease.state in (ASSIGNED, RUNNING)
        return not fine or _storable(item.result, limit)[1] is not None
    return isinstance(item, NotHeld) or (
        isinstance(item, Released) and (item.unable or lease.state != ASSIGNED)
    )


def run_deadline(work: Work, lease: Lease, started_at: int, activity_at: int | None) -> int | None:
    """Returns when the server ends an attempt whose agent did not; None: never."""
    limits = RunLimits(lease.timeout_ms, lease.idle_ms)
    deadline = run_deadline_ms(limits, started_at, activity_at)
    if deadline is None:
        return None
    return backstop_ms(deadline, work.config.term_grace_ms, work.config.heartbeat_interval_ms)


def _finish(
    closing: Closing,
    facts: JobFacts,
    lease: Lease,
    item: Finished,
    outcome: ReportOutcome,
    limit: int,
    company: Company,
    work: Work,
) -> None:
    if item.outcome == "completed" and lease.state != TIMED_OUT:
        result, problem = _storable(item.result, limit)
        if problem is None:
            closing.complete(facts, lease, exit_code_of(item), result)
            return
        item = msgspec.structs.replace(
            item, outcome="failed", failure=FailureClass.CONFIGURATION.value, message=problem
        )
    if lease.state == ASSIGNED and not item.misfit:
        lease = closing.start(facts, lease)
    if item.outcome == "canceled" and lease.state == RUNNING and lease.reason is not None:
        closing.hand_back(facts, lease, lease.reason)  # it was told to make room for another
        return
    if item.outcome == "canceled" and lease.state != TIMED_OUT:
        closing.cancel(facts, lease, _clean(item.message) or "Canceled on the worker")
        return
    failure = _failure_of(item, lease)
    failure = failure._replace(company=company)
    now, task = work.now, work.catalog.shapes[facts.shape].task
    if not failure.shared and _blames_worker(item, failure.failure, task):
        ran_ms = now - (now if lease.started_at is None else lease.started_at)
        trouble = Trouble(now, lease.job, facts.shape, max(0, ran_ms))
        outcome.troubles.append((lease.worker, trouble))
    closing.fail(facts, lease, failure)


def _blames_worker(item: Finished, failure: FailureClass, task: str) -> bool:
    """Returns True for failures that may be the worker's own fault.

    A connection error raised by a function points to the service it called, a MemoryError to what
    it requested, just as a job that exceeds its own limit. A full disk is the worker's own fault.
    """
    if failure not in INFRASTRUCTURE or item.own_limit:
        return False
    if failure is FailureClass.NETWORK and task in MEDIA_TASKS:
        return False  # most often a source that nobody can reach
    if item.raised is None:
        return True
    return failure is FailureClass.RESOURCE and "MemoryError" not in item.raised.names


def _failure_of(item: Finished, lease: Lease) -> Failure:
    message, code = _clean(item.message), exit_code_of(item)
    if item.outcome == "timed_out" or lease.state == TIMED_OUT:
        return Failure(FailureClass.TIMEOUT, message or lease.reason or "Timed out", code)
    named = FAILURE_BY_NAME.get(item.failure or "")
    if named is not None:
        misfit = item.misfit and named is FailureClass.CONFIGURATION
        return Failure(named, message, code, misfit=misfit, raised=item.raised or NOTHING_RAISED)
    return Failure(classify(message or ""), message, code)


def exit_code_of(item: Finished) -> int | None:
    """Returns the exit code within the range that every store keeps."""
    code = item.exit_code
    return code if code is None else max(-MAX_CODE, min(MAX_CODE, code))


def _storable(value: object, limit: int) -> tuple[bytes | None, str | None]:
    """Returns the result as JSON, or why it cannot be stored."""
    if value is None:
        return None, None
    try:
        result = _encode(value)
    except (UnicodeEncodeError, TypeError, ValueError, RecursionError, OverflowError) as error:
        return None, f"the result is not a JSON value: {error}"
    if len(result) > limit:
        return None, f"the result has {len(result)} bytes, the limit is {limit}"
    if _BACKSLASH in result and b"\\u0000" in result:
        return None, "the result holds NUL characters"
    return result, None


def _clean(message: str | None) -> str | None:
    """Returns text that every store takes: no NUL, no lone surrogates, not too long."""
    if message is None:
        return None
    text = message.replace("\x00", "\N{REPLACEMENT CHARACTER}")[:4_000]
    return text.encode("utf-8", "replace").decode("utf-8")


async def _judge(
    work: Work,
    reports: Sequence[AttemptReport],
    facts: dict[int, JobFacts],
    outcome: ReportOutcome,
) -> None:
    """Tells repetitions from lost leases by looking at the closed attempts."""
    history = await work.tx.jobs.attempts(sorted({report.item.job for report in reports}))
    for report in reports:
        fact = facts.get(report.item.job)
        if fact is None:
            _refuse(outcome, report, "no such job")
        elif not _repeats(report, fact, history.get(fact.id, [])):
            _refuse(outcome, report, "another attempt or worker holds this job, or it has ended")


def _repeats(report: AttemptReport, fact: JobFacts, closed: Sequence[Attempt]) -> bool:
    worker, item = report
    if isinstance(item, Started):  # nothing may be launched without a lease
        return False
    mine = worker.id, worker.incarnation
    ended_with = fact.attempt, fact.worker, fact.incarnation
    if not fact.is_open and ended_with == (item.attempt, *mine):
        return True
    return any(a.number == item.attempt and (a.worker, a.incarnation) == mine for a in closed)


def _refuse(outcome: ReportOutcome, report: AttemptReport, reason: str) -> None:
    refusal = Refusal(report.item.job, report.item.attempt, reason)
    outcome.lost.setdefault(report.worker.id, []).append(refusal)
