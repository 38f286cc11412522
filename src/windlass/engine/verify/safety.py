"""The safety invariants that one transition of one job can break, one function each.

They see the state before the transition (`job`) and the event that changes it.
"""

from typing import Final

from windlass.domain.config import Config
from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import STATE_BY_CODE, TRANSITION_CODES, State
from windlass.domain.matching.workers import may_claim
from windlass.domain.rows.events import Event
from windlass.domain.values.ids import WorkerId
from windlass.engine.verify.past import ACTIVE_CODES, TERMINAL_CODES, JobPast
from windlass.engine.verify.placement import check_placement
from windlass.engine.verify.replay import MoveCheck, Replay

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code
ASSIGNED = State.ASSIGNED.code
RUNNING = State.RUNNING.code
COMPLETED = State.COMPLETED.code


def check_transition(replay: Replay, job: JobPast, event: Event) -> None:
    """S8: only transitions of the table, from the current state. S11: a join fires once."""
    if event.source != job.state:
        joined = event.source == BLOCKED and event.to == QUEUED
        message = f"left {_name(event.source)} for {_name(event.to)}, it was {_name(job.state)}"
        replay.found.add("S11" if joined else "S8", message, event.job, event.seq)
    elif (event.source, event.to) not in TRANSITION_CODES:
        message = f"{_name(event.source)} may not become {_name(event.to)}"
        replay.found.add("S8", message, event.job, event.seq)


def check_attempt(replay: Replay, job: JobPast, event: Event) -> None:
    """S3–S6: attempt numbers rise; each is assigned once, ends once, and is reported by its
    holder.
    """
    if event.to == ASSIGNED:
        _check_new_attempt(replay, job, event)
        return
    if event.source in ACTIVE_CODES:
        if event.to not in ACTIVE_CODES and event.attempt <= job.closed:
            message = f"attempt {event.attempt} has a second outcome, {_name(event.to)}"
            replay.found.add("S3", message, event.job, event.seq)
        holder = job.worker, job.incarnation
        if (event.worker, event.incarnation) != holder:
            message = (
                f"worker {event.worker}/{event.incarnation} reported, {holder} holds the attempt"
            )
            replay.found.add("S5", message, event.job, event.seq)
    if event.attempt != job.attempt:
        message = f"attempt {event.attempt} reported, but the newest is {job.attempt}"
        replay.found.add("S5", message, event.job, event.seq)


def _check_new_attempt(replay: Replay, job: JobPast, event: Event) -> None:
    found, attempt = replay.found, event.attempt
    if attempt == job.attempt:
        found.add("S3", f"attempt {attempt} was assigned twice", event.job, event.seq)
    elif attempt < job.attempt:
        message = f"attempt {attempt} follows attempt {job.attempt}"
        found.add("S4", message, event.job, event.seq)
    if job.active or job.closed != job.attempt:
        message = f"attempt {attempt} began while attempt {job.attempt} was active"
        found.add("S6", message, event.job, event.seq)
    if job.told_to_stop:
        found.add("S12", f"attempt {attempt} began after a cancel", event.job, event.seq)
    worker = replay.past.worker(event.worker)
    if worker.incarnation != event.incarnation or worker.removed or not may_claim(worker.status):
        message = (
            f"assigned to incarnation {event.incarnation} of worker {event.worker}, "
            f"which is in incarnation {worker.incarnation} and status {worker.status}"
        )
        found.add("S5", message, event.job, event.seq)


def check_dependencies(replay: Replay, job: JobPast, event: Event) -> None:
    """Checks S10: each dependency, or the job that superseded it, has met its condition."""
    if event.to != ASSIGNED or job.attempt:
        return
    ties = replay.known.ties(event.job)
    for conditional, names in ((True, ties.after), (False, ties.after_any)):
        for name in names:
            if isinstance(name, int) and not _met(replay, name, conditional):
                message = f"assigned before job {name} met its condition"
                replay.found.add("S10", message, event.job, event.seq)


def _met(replay: Replay, dependency: int | None, conditional: bool) -> bool:
    while dependency is not None:
        job, row = replay.past.jobs.get(dependency), replay.known.jobs.get(dependency)
        if row is None:  # Retention removed it after it had ended.
            return job.state in TERMINAL_CODES if job else bool(replay.past.trimmed)
        if job is None:
            return False
        forgiven = not conditional or bool(row.facts.flags & ALLOW_FAILURE)
        if job.state == COMPLETED or (forgiven and job.state in TERMINAL_CODES):
            return True
        dependency = job.superseded_by
    return False


def check_capacity(replay: Replay, job: JobPast, event: Event) -> None:
    """S13: no more jobs run than the worker has slots and a limit allows."""
    row = replay.known.jobs.get(event.job)
    if event.to == ASSIGNED and row is not None and row.facts.limit:
        limit = replay.past.limit(row.facts.limit)
        if limit.active + 1 > limit.max:
            message = f"the {limit.active + 1}th under limit {row.facts.limit}, {limit.max} allowed"
            replay.found.add("S13", message, event.job, event.seq)
    if event.to == RUNNING:
        worker = replay.past.worker(event.worker)
        if worker.slots and worker.running + (job.state != RUNNING) > worker.slots:
            message = f"worker {event.worker} runs more than its {worker.slots} slots"
            replay.found.add("S13", message, event.job, event.seq)


def check_match(replay: Replay, job: JobPast, event: Event) -> None:
    """S14: the worker met the shape, by the log or by its current metadata."""
    del job
    row, worker = replay.known.jobs.get(event.job), replay.known.workers.get(WorkerId(event.worker))
    if event.to != ASSIGNED or row is None or worker is None:
        return
    past = replay.past.worker(event.worker)
    static = worker.static if past.static is None else past.static
    dynamic = worker.dynamic if past.dynamic is None else past.dynamic
    shape = row.facts.shape
    if replay.known.runs(shape, dynamic, static):
        return
    if not replay.known.runs(shape, worker.dynamic, worker.static):
        message = f"assigned to worker {event.worker}, which cannot run it"
        replay.found.add("S14", message, event.job, event.seq)


def retry_check(config: Config) -> MoveCheck:
    """S9: failed, lost and returned attempts stay within their limits."""
    policy = config.retry

    def check(replay: Replay, job: JobPast, event: Event) -> None:
        if event.to != ASSIGNED:
            return
        own = replay.known.ties(event.job).retries
        most = policy.max_retries if own is None else own
        for name, count, limit in (
            ("failed", job.failed, most),
            ("lost", job.lost, max(policy.max_lost, own or 0)),
            ("returned", job.returned, policy.max_returned),
        ):
            if count > limit:
                message = f"retried after {count} {name} attempts, {limit} are allowed"
                replay.found.add("S9", message, event.job, event.seq)

    return check


def check_known(replay: Replay, job: JobPast, event: Event) -> None:
    """Checks S1: a job that was ever submitted can be read."""
    if job.state == 0 and event.job not in replay.known.jobs:
        # Unless a later event says that retention has removed it.
        replay.past.missing.setdefault(event.job, event.seq)


CHECKS: Final[tuple[MoveCheck, ...]] = (
    check_known,
    check_transition,
    check_attempt,
    check_dependencies,
    check_capacity,
    check_match,
    check_placement,
)


def _name(code: int) -> str:
    state = STATE_BY_CODE[code] if 0 <= code < len(STATE_BY_CODE) else None
    return "(new)" if state is None else str(state)
