"""The whole check: reads log and state in one view, replays, compares and recounts.

Each safety invariant that one transition of one job can break is a function. It sees the state
before the transition (`job`) and the event that changes it. For S13, the log says what workers held
and what ran of each queue. What a worker has comes from the log or, since an agent may report new
metadata, from its row.
"""

from bisect import insort
from collections.abc import Iterable
from typing import Final

from windlass.domain.config import Config
from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import (
    ACTIVE_CODES,
    ASSIGNED,
    BLOCKED,
    COMPLETED,
    QUEUED,
    RUNNING,
    STATE_BY_CODE,
    TERMINAL_CODES,
    TRANSITION_CODES,
)
from windlass.domain.matching.indices import read_indices
from windlass.domain.matching.matching import metadata_of
from windlass.domain.matching.room import Room
from windlass.domain.matching.shapes import Shape, is_gated, room_in
from windlass.domain.matching.workers import may_claim
from windlass.domain.rows.events import Event
from windlass.domain.values.ids import ShapeId, WorkerId
from windlass.engine.verify import compare
from windlass.engine.verify.baseline import load, seed_ended, settle_seeded
from windlass.engine.verify.past import Findings, JobPast, SnapshotIndex, Violation
from windlass.engine.verify.replay import MoveCheck, Replay
from windlass.ports.loop_time import aside, gc_paused, give_way_if_long
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store


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


def _name(code: int) -> str:
    state = STATE_BY_CODE[code] if 0 <= code < len(STATE_BY_CODE) else None
    return "(new)" if state is None else str(state)


def count_holdings(replay: Replay, job: JobPast, event: Event) -> None:
    """Updates what is held before a transition is applied."""
    enters = event.to in ACTIVE_CODES and event.source not in ACTIVE_CODES
    leaves = event.source in ACTIVE_CODES and event.to not in ACTIVE_CODES
    row = replay.known.jobs.get(event.job)
    if row is None or enters == leaves:
        return
    holdings, number = replay.past.holdings, row.facts.shape
    shape = replay.known.shapes.get(number)
    if shape is None:
        return
    worker = event.worker if enters else job.worker
    holdings.take(worker, number, shape.queue, 1 if enters else -1)
    if enters and shape.rate is not None:
        starts = holdings.starts.setdefault((shape.namespace, shape.rate.key), [])
        insort(starts, event.at)


def check_placement(replay: Replay, job: JobPast, event: Event) -> None:
    """S13: a worker has room for a job, its queue for one more, and its rate for a start."""
    row = replay.known.jobs.get(event.job)
    shape = None if row is None else replay.known.shapes.get(row.facts.shape)
    if event.to == ASSIGNED and shape is not None:
        for message in _excesses(replay, shape, event):
            replay.found.add("S13", message, event.job, event.seq)
    count_holdings(replay, job, event)


def _excesses(replay: Replay, shape: Shape, event: Event) -> list[str]:
    holdings, found = replay.past.holdings, []
    queue = holdings.queue(shape.queue)
    if queue.max_running and queue.active >= queue.max_running:
        found.append(
            f"number {queue.active + 1} of queue {shape.queue}, {queue.max_running} may run"
        )
    rate = shape.rate
    if rate is not None:
        starts = holdings.starts.get((shape.namespace, rate.key), [])
        if not room_in(rate, starts, event.at):
            found.append(f"more than {rate.max} starts in {rate.per_ms} ms under rate {rate.key}")
    if is_gated(shape) or queue.max_per_worker:
        lacking = _lacking(replay, shape, event.worker, queue.max_per_worker)
        if lacking is not None:
            found.append(f"assigned to worker {event.worker}, which lacks room: {lacking}")
    return found


def _lacking(replay: Replay, shape: Shape, worker: int, per_worker: int) -> str | None:
    """Returns what the worker lacks both by the log and by its current metadata."""
    row, logged = replay.known.workers.get(WorkerId(worker)), replay.past.worker(worker)
    if row is None:
        return None
    lacking = None
    for dynamic, static in ((logged.dynamic, logged.static), (row.dynamic, row.static)):
        room = Room(
            metadata_of(
                row.static if static is None else static,
                row.dynamic if dynamic is None else dynamic,
            )
        )
        for number, jobs in replay.past.holdings.held(worker).items():
            room.take(replay.known.shapes[ShapeId(number)], jobs)
        lack = room.lacks(shape, per_worker)
        if lack is None:
            return None
        lacking = lack.text
    return lacking


def check_indices(known: SnapshotIndex, found: Findings) -> None:
    """S13: no two leases of one worker hold the same index of a resource."""
    holders: dict[tuple[int, str, str], int] = {}
    for lease in known.snapshot.leases:
        for resource, names in read_indices(lease.indices).items():
            for name in names:
                other = holders.setdefault((lease.worker, resource, name), lease.job)
                if other != lease.job:
                    said = f"holds index {name} of {resource}, as job {other} does"
                    found.add("S13", f"{said}, on worker {lease.worker}", lease.job)


CHECKS: Final[tuple[MoveCheck, ...]] = (
    check_known,
    check_transition,
    check_attempt,
    check_dependencies,
    check_capacity,
    check_match,
    check_placement,
)


CHUNK = 1_000  # events read at once


async def verify(store: Store, config: Config | None = None) -> list[Violation]:
    """Returns every violation, an empty list if there is none.

    It reads the whole log; memory grows with the jobs, not with the events. Log and state come
    from one snapshot, so others may write meanwhile.
    """

    async def check(tx: ReadTx, snapshot: Snapshot) -> list[Violation]:
        weight = len(snapshot.jobs)
        replay = await aside(weight, lambda: _replay_over(snapshot, config or Config()))
        await _replay_log(tx, replay)
        found = await aside(weight, lambda: _conclude(replay))
        await replay.release()
        return found

    with gc_paused():  # which would walk all jobs again and again
        return await store.read_beside(check)


def judge(
    events: Iterable[Event], snapshot: Snapshot, config: Config | None = None
) -> list[Violation]:
    """Checks events and a snapshot that the caller has read."""
    replay = _replay_over(snapshot, config or Config())
    for event in events:
        replay.apply(event)
    return _conclude(replay)


def _replay_over(snapshot: Snapshot, config: Config) -> Replay:
    replay = Replay(SnapshotIndex(snapshot), Findings(), (*CHECKS, retry_check(config)))
    load(replay, snapshot.baseline)
    seed_ended(replay)
    return replay


async def _replay_log(tx: ReadTx, replay: Replay) -> None:
    after = replay.past.seq
    while chunk := await tx.log.read(after, CHUNK):
        for event in chunk:
            replay.apply(event)
        after = chunk[-1].seq
        await give_way_if_long()


def _conclude(replay: Replay) -> list[Violation]:
    known, past, found = replay.known, replay.past, replay.found
    settle_seeded(replay)
    for job, seq in past.missing.items():
        found.add("S1", "the log has a job that does not exist", job, seq)
    compare.compare(known, past, found)
    compare.check_places(known, past, found)
    compare.check_suspects(known, found)
    compare.check_suspended(known, found)
    compare.check_counts(known, past, found)
    compare.check_schedules(known, past, found)
    compare.check_order(known, found)
    compare.check_pools(known, past, found)
    check_indices(known, found)
    return found.violations
