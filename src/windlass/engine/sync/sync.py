"""The one message of a worker: heartbeat, starts, results, claims, cancellations.

A batch of syncs, each of a different worker, is one transaction. Under the workers' row locks we
apply the reports, resend open leases that the agent has not seen (they count against what it
wants), and claim the rest. So a lost reply never claims twice.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import NamedTuple, cast

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.matching.indices import read_indices
from windlass.domain.matching.isolation import Isolation
from windlass.domain.matching.probation import may_take, read_conduct
from windlass.domain.matching.suspects import NOBODY
from windlass.domain.matching.workers import LEAVING, WorkerStatus, may_claim
from windlass.domain.rows.records import (
    Lease,
    Worker,
)
from windlass.domain.values.errors import Conflict, NotFound, WindlassError
from windlass.domain.values.ids import WorkerId
from windlass.engine.attempts.reports import (
    AttemptReport,
    Done,
    Item,
    NotHeld,
    apply_reports,
    split_reports,
)
from windlass.engine.claim.claims import Claimant, claim
from windlass.engine.fleet.capability import note_past
from windlass.engine.fleet.epochs import first_incarnation, refuse_old_store
from windlass.engine.fleet.probation import note_completed, note_failure
from windlass.engine.jobs.deadlines import FINISH_BEFORE, cut_timeout
from windlass.engine.jobs.places import promote_due
from windlass.engine.sync.lookups import has_names, resolve, resolve_again
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import Assignment, Refusal, Stop, SyncReply, SyncRequest

DUE_PER_CLAIM = 100  # due jobs that a claim moves first

_encode = msgspec.json.Encoder(order="deterministic").encode


class _Queued(msgspec.Struct):
    """The fields of a spec about its queue."""

    queue: str = "default"


_read_queue = msgspec.json.Decoder(_Queued).decode


class SyncCall(NamedTuple):
    """One worker's request in a batch."""

    worker: int
    request: SyncRequest
    again: bool = False  # the engine checks again for a waiting sync


def only_claim(call: SyncCall) -> SyncCall:
    """Returns the same sync without its reports, which are already applied."""
    bare = msgspec.structs.replace(
        call.request, started=(), finished=(), released=(), held=None, metadata=None
    )
    return SyncCall(call.worker, bare, again=True)


class _WorkerSync:
    """One worker's part of the batch."""

    __slots__ = (
        "arrived", "claims", "company", "held", "lost", "newest", "repeats", "request", "resent",
        "stops", "worker",
    )  # fmt: skip

    def __init__(self, worker: Worker, call: SyncCall) -> None:
        self.worker = worker
        self.request = call.request
        self.arrived = not call.again  # the worker sent something just now
        self.held = {(item.job, item.attempt) for item in call.request.held or ()}
        self.lost: list[Refusal] = []
        self.resent: list[Assignment] = []
        self.claims: list[Assignment] = []
        self.stops: list[Stop] = []
        self.repeats = False  # it reported something, and none of it changed anything
        self.company = NOBODY  # the suspects that it holds
        self.newest = 0  # the newest lease that the worker knows or is sent again


async def sync(
    work: Work, bounds: Bounds, calls: Sequence[SyncCall]
) -> list[SyncReply | WindlassError]:
    """Answers a batch of syncs, in the order of the calls."""
    rows = await work.tx.workers.lock(sorted(call.worker for call in calls))
    answers: dict[int, SyncReply | WindlassError] = {}
    turns: list[_WorkerSync] = []
    for call in calls:
        admitted = _admit(work, rows.get(call.worker), call)
        if isinstance(admitted, Worker):
            turns.append(_WorkerSync(admitted, call))
        else:
            answers[call.worker] = admitted
    if turns:
        await _run_syncs(work, bounds, turns)
        answers.update({turn.worker.id: _reply(work, turn) for turn in turns})
    return [answers[call.worker] for call in calls]


def _admit(work: Work, worker: Worker | None, call: SyncCall) -> Worker | SyncReply | WindlassError:
    """Returns the worker if its sync may be applied, else the refusal."""
    if worker is None:
        return NotFound("worker", call.worker)
    if call.request.epoch > work.catalog.epoch:
        return refuse_old_store(work, worker, call.request.epoch)
    ended = worker.incarnation != call.request.incarnation or worker.status == WorkerStatus.OFFLINE
    if ended or call.request.incarnation < first_incarnation(work):
        return Conflict(
            "incarnation_ended",
            f"incarnation {call.request.incarnation} of worker {worker.name} has ended: "
            "stop its jobs and enrol again",
        )
    if call.request.seq < worker.seq + (not call.again):
        return SyncReply(applied=False, stale=True)
    return worker


async def _run_syncs(work: Work, bounds: Bounds, turns: list[_WorkerSync]) -> None:
    before: dict[int, Worker] = {turn.worker.id: turn.worker for turn in turns}
    for turn in turns:
        turn.worker = _note_heartbeat(work, turn)
        work.catalog.remember(turn.worker)
    await _apply_reports(work, turns)
    await _resend(work, turns, bounds.shared)
    await _add_stops(work, turns)
    await _claim(work, bounds, turns)
    await _write_workers(work, before, turns)


def _note_heartbeat(work: Work, turn: _WorkerSync) -> Worker:
    """Returns the worker after this sync: just seen, healthy, maybe with new metadata."""
    worker, request = turn.worker, turn.request
    if not turn.arrived:
        return worker
    if worker.status == WorkerStatus.UNHEALTHY:
        work.say_of(worker, f"Worker {worker.name} is back", status="online")
        worker = worker._replace(status=int(WorkerStatus.ONLINE))
    if request.stopping and may_claim(worker.status):
        worker = _note_leaving(work, worker)
    if request.metadata is not None:
        worker = _note_metadata(work, worker, _encode(request.metadata).decode())
    if work.now - worker.last_seen >= work.config.heartbeat_interval_ms // 3:
        worker = worker._replace(last_seen=work.now)
    return worker


def _note_leaving(work: Work, worker: Worker) -> Worker:
    """Returns the worker as draining: its process takes no more jobs."""
    work.say_of(worker, f"Worker {worker.name} is draining: {LEAVING}", status="draining")
    return worker._replace(status=int(WorkerStatus.DRAINING), reason=LEAVING)


def _note_metadata(work: Work, worker: Worker, dynamic: str) -> Worker:
    """Returns the worker with its agent's new metadata; the log records the time."""
    if dynamic != worker.dynamic:
        work.say_of(worker, f"Worker {worker.name} reports new metadata", metadata=dynamic)
    return worker._replace(dynamic=dynamic)


async def _apply_reports(work: Work, turns: list[_WorkerSync]) -> None:
    done: Done = {}
    reports: list[AttemptReport] = []
    limit = work.config.result_limit
    for turn in turns:
        reports += split_reports(turn.worker, turn.request, limit, done)
    reports += await _audit(work, turns)
    if not reports and not done:
        return
    verdicts = await apply_reports(work, done, reports)
    for turn in turns:
        turn.worker = turn.worker._replace(seq=turn.request.seq)
        turn.lost += verdicts.lost.get(turn.worker.id, ())
        if verdicts.applied is not None and turn.worker.id not in verdicts.applied:
            turn.repeats = _reports(turn.request)
        for who, trouble in verdicts.troubles:
            if who == turn.worker.id:
                turn.worker = note_failure(work, turn.worker, trouble)
        if turn.worker.status == WorkerStatus.PROBATION and not turn.repeats:
            _note_tests(work, turn)


def _note_tests(work: Work, turn: _WorkerSync) -> None:
    """Records what completed on a worker on probation."""
    refused = {(item.job, item.attempt) for item in turn.lost}
    completed = [
        item
        for item in turn.request.finished
        if item.outcome == "completed" and (item.job, item.attempt) not in refused
    ]
    if completed:
        turn.worker = note_completed(work, turn.worker, len(completed))


async def _resend(work: Work, turns: list[_WorkerSync], lags: bool) -> None:
    """Resends open leases above `received`, and tells workers which of their attempts have none.

    With `lags` the workers' rows may miss their newest leases: the fast path writes them rarely.
    """
    behind: dict[int, int] = {
        turn.worker.id: turn.request.received
        for turn in turns
        if lags or turn.worker.last_lease > turn.request.received
    }
    unseen: dict[int, list[Lease]] = {}
    for lease in await work.tx.leases.newer(behind):
        unseen.setdefault(lease.worker, []).append(lease)
    for turn in turns:
        turn.newest = max(turn.worker.last_lease, turn.request.received)
        again = unseen.get(turn.worker.id)
        if again:
            turn.newest = again[-1].lease
            specs = await work.tx.jobs.specs([lease.job for lease in again])
            specs = await resolve_again(work, again, specs)
            facts = await work.tx.jobs.read([lease.job for lease in again])
            turn.resent = [
                _assignment_again(x, specs[x.job], facts[x.job].handed_back)
                for x in again
                if x.job in specs
            ]
    await _tell_lost(work, [turn for turn in turns if turn.held])


async def _tell_lost(work: Work, turns: list[_WorkerSync]) -> None:
    """Tells workers which attempts they hold without a lease."""
    leases = await work.tx.leases.of_workers([turn.worker.id for turn in turns])
    leased = {(lease.worker, lease.job, lease.attempt) for lease in leases}
    for turn in turns:
        for job, attempt in sorted(turn.held):
            if (turn.worker.id, job, attempt) not in leased:
                turn.lost.append(Refusal(job, attempt, "this attempt is not leased to the worker"))


async def _audit(work: Work, turns: list[_WorkerSync]) -> list[AttemptReport]:
    """Returns the attempts assigned to workers that they neither hold nor report.

    These become reports too, so that all jobs of a sync are locked at once and in order.
    """
    audited = {turn.worker.id: turn for turn in turns if turn.request.held is not None}
    if not audited:
        return []
    accounted = {turn.worker.id: turn.held | _reported(turn.request) for turn in audited.values()}
    missing = []
    for lease in await work.tx.leases.of_workers(list(audited)):
        turn, attempt = audited[lease.worker], (lease.job, lease.attempt)
        if lease.lease <= turn.request.received and attempt not in accounted[lease.worker]:
            missing.append(AttemptReport(turn.worker, NotHeld(*attempt)))
    return missing


def _reports(request: SyncRequest) -> bool:
    return bool(request.finished or request.started or request.released)


def _reported(request: SyncRequest) -> set[tuple[int, int]]:
    items: Iterable[Item] = chain(request.started, request.released, request.finished)
    return {(item.job, item.attempt) for item in items}


def _assignment_again(lease: Lease, spec: bytes, handed_back: int) -> Assignment:
    return Assignment(
        lease.job,
        lease.attempt,
        lease.lease,
        str(STATE_BY_CODE[lease.state]),
        lease.timeout_ms,
        lease.idle_ms,
        msgspec.Raw(spec),
        read_indices(lease.indices) or None,
        handed_back=handed_back,
    )


async def _add_stops(work: Work, turns: list[_WorkerSync]) -> None:
    """Adds the attempts that workers must stop, and notes which of them hold suspects."""
    by_worker = {turn.worker.id: turn for turn in turns}
    for marked in await work.tx.leases.marked(list(by_worker)):
        turn = by_worker[WorkerId(marked.worker)]
        if marked.reason is not None:
            turn.stops.append(Stop(marked.job, marked.attempt, marked.reason))
        if marked.suspicion:
            turn.company = turn.company.joined_by(marked.suspicion)


async def _claim(work: Work, bounds: Bounds, turns: list[_WorkerSync]) -> None:
    seekers = []
    if work.now < work.catalog.hold_until:
        return
    hungry = [t for t in turns if t.request.want > 0 and may_claim(t.worker.status)]
    held = await work.tx.leases.count([t.worker.id for t in hungry]) if hungry else {}
    for turn in hungry:
        company = turn.company._replace(held=held.get(turn.worker.id, 0))
        want = min(turn.request.want - len(turn.resent), turn.worker.slots - company.held)
        if turn.worker.status == WorkerStatus.PROBATION:
            conduct = read_conduct(turn.worker.troubles)
            want = min(want, may_take(conduct, company.held, work.now))
        if want > 0 and not company.admits(0):
            work.effects.declined.append(turn.worker.id)
        elif want > 0:
            seekers.append(
                Claimant(
                    turn.worker.id,
                    turn.worker.incarnation,
                    want,
                    work.catalog.profile(turn.worker),
                    turn.request.prefetch,
                    company,
                )
            )
    if not seekers:
        return
    await promote_due(work, DUE_PER_CLAIM)
    await work.slots.settle()
    _see_arrivals(work, bounds)
    claimed = await claim(work, bounds, seekers)
    for turn in turns:
        mine = claimed.get(turn.worker.id)
        if mine:
            specs = [bytes(assignment.spec) for assignment in mine]
            mine = cut_timeouts(mine, specs, work.now)
            if any(map(has_names, specs)):
                mine = await resolve(work, mine)
        if mine:
            turn.claims = mine
            turn.worker = turn.worker._replace(seq=turn.request.seq, last_lease=mine[-1].lease)
        load = work.effects.loads.get(turn.worker.id)
        if load is not None:
            load.incarnation = turn.worker.incarnation
            load.last_lease = mine[-1].lease if mine else turn.newest


def cut_timeouts(granted: list[Assignment], specs: Sequence[bytes], now: int) -> list[Assignment]:
    """Returns these with shorter timeouts for jobs that must end by some time."""
    if not [spec for spec in specs if FINISH_BEFORE in spec]:
        return granted
    return [
        msgspec.structs.replace(it, timeout_ms=cut_timeout(it.timeout_ms, spec, now))
        if FINISH_BEFORE in spec
        else it
        for it, spec in zip(granted, specs, strict=True)
    ]


def add_isolation(catalog: Catalog, jobs: Sequence[Assignment]) -> Sequence[Assignment]:
    """Returns these with the weakest isolation that their queues allow."""
    if not catalog.isolated:
        return jobs
    return [msgspec.structs.replace(job, isolation=_isolation(catalog, job)) for job in jobs]


def _isolation(catalog: Catalog, job: Assignment) -> Isolation | None:
    return cast("Isolation | None", catalog.isolated.get(_read_queue(job.spec).queue))


def _see_arrivals(work: Work, bounds: Bounds) -> None:
    """Makes jobs that this transaction made ready claimable in it as well.

    If it is rolled back, the bounds are too low, which only costs a read.
    """
    for shape, (rank, job, _) in work.effects.arrivals.items():
        if shape in work.catalog.shapes:
            bounds.lower(shape, rank, job)


async def _write_workers(work: Work, before: dict[int, Worker], turns: list[_WorkerSync]) -> None:
    beats: list[tuple[int, int, int, int]] = []
    changed: list[Worker] = []
    for turn in turns:
        worker = turn.worker
        old = before[worker.id]
        if worker == old:
            continue
        unchanged = worker._replace(seq=old.seq, last_seen=old.last_seen, last_lease=old.last_lease)
        if unchanged == old:
            beats.append((worker.id, worker.seq, worker.last_seen, worker.last_lease))
        else:
            changed.append(worker)
            await note_past(work, old, worker)
    if beats:
        await work.tx.workers.beat(beats)
    if changed:
        await work.tx.workers.update(changed)


def _reply(work: Work, turn: _WorkerSync) -> SyncReply:
    return SyncReply(
        jobs=tuple(add_isolation(work.catalog, (*turn.resent, *turn.claims))),
        cancel=tuple(turn.stops),
        lost=tuple(turn.lost),
        drain=turn.worker.status == WorkerStatus.DRAINING,
        epoch=work.catalog.epoch,
        applied=bool(turn.claims) or not turn.repeats,
        pending=turn.worker.status == WorkerStatus.PENDING_APPROVAL,
    )
