"""What must hold after a run, whatever the schedule was."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from tests.interleaver.commands import Synced
from tests.interleaver.stage import Performance, Stage
from tests.interleaver.world import HOUR
from windlass.domain.job.job import ALLOW_FAILURE
from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.records import KEPT_WHILE_RUNNING, Lease, Ticket, Worker
from windlass.domain.rows.steps import StepState
from windlass.domain.values.errors import WindlassError
from windlass.domain.values.ids import JobId
from windlass.engine.attempts.reports import AttemptReport, apply_reports
from windlass.engine.fleet import queues, workers
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.jobs import decide
from windlass.engine.sync.sync import SyncCall, sync
from windlass.engine.transaction.unit_of_work import Work
from windlass.engine.verify import judge
from windlass.engine.workflows import advance
from windlass.messages.sync import Finished, Outcome, SyncReply, SyncRequest
from windlass.store.sql.snapshot import Snapshot

CANCELING = State.CANCELING.code
COMPLETED = State.COMPLETED.code
TIMED_OUT = State.TIMED_OUT.code

ROUNDS = 40
OPEN_JOBS = "SELECT count(*) FROM jobs WHERE state IS NULL"


class Result(NamedTuple):
    """The commands' verdicts and the jobs' states: what serial orders are compared by."""

    answers: tuple[str, ...]
    jobs: tuple[tuple[str, str, int, int], ...]  # label, state, failed, lost
    workflows: tuple[tuple[str, int, int], ...]  # name, state, run


async def complaints(stage: Stage, performance: Performance, outcome: Snapshot) -> list[str]:
    """What is wrong right after a run."""
    found = list(_failures(performance))
    found += await _judged(stage, outcome, "at once")
    found += _lost_wakeups(performance, outcome)
    found += _lost_slots(outcome)
    found += _unheard(outcome)
    found += _doomed(outcome)
    return found


def _unheard(snapshot: Snapshot) -> Iterator[str]:
    """A function that waits has had every signal that came, or is about to be told of it."""
    created = {row.facts.id: row.facts.created_at for row in snapshot.jobs}
    for step in snapshot.steps:
        if step.state != StepState.PENDING:
            continue
        for signal in snapshot.signals:
            fits = step.name == signal.name and created[JobId(step.job)] <= signal.at <= step.due_at
            about_to_be_told = signal.is_open and (step.signal or 0) < signal.id
            if fits and not about_to_be_told:
                yield f"job {step.job} was not told of signal {signal.id}"


def _lost_slots(snapshot: Snapshot) -> Iterator[str]:
    """Under a limit that leaves room, a parked job moves up."""
    ready = Counter((ticket.limit, ticket.shape) for ticket in snapshot.ready)
    room = {row.id: row.max - row.leased for row in snapshot.limits}
    for ticket in snapshot.parked:
        if ready[ticket.limit, ticket.shape] < room[ticket.known_limit]:
            yield f"job {ticket.job} is parked under limit {ticket.limit}, which has a free slot"


def _doomed(snapshot: Snapshot) -> Iterator[str]:
    """A job that waits for a failure is about to be aborted."""
    facts = {row.facts.id: row.facts for row in snapshot.jobs}
    waits = {wait.job for wait in snapshot.waits if wait.manual != KEPT_WHILE_RUNNING}
    changing = {cascade.job for cascade in snapshot.cascades}
    for owner, edges in snapshot.dependents:
        state, forgiven = facts[JobId(owner)].state, facts[JobId(owner)].flags & ALLOW_FAILURE
        if state in (None, COMPLETED) or forgiven or owner in changing:
            continue
        for edge in edges:
            if not edge & 1 and edge >> 1 in waits:
                yield f"job {edge >> 1} waits for job {owner}, which has failed"


async def complaints_in_the_end(stage: Stage) -> list[str]:
    """What is left, or wrong, when all has ended that can end.

    The loops that are a safety net do not help: what only they would find was lost.
    """
    snapshot = await Drain(stage).run()
    standing = {
        "waits": snapshot.waits,
        "due": snapshot.due,
        "parked": snapshot.parked,
        "ready": snapshot.ready,
        "leases": snapshot.leases,
        "cascades": snapshot.cascades,
    }
    found = [f"left in {place}: {rows}" for place, rows in standing.items() if rows]
    found += [f"job {row.facts.id} has not ended" for row in snapshot.jobs if row.facts.is_open]
    return found + await _judged(stage, snapshot, "in the end")


def _failures(performance: Performance) -> Iterator[str]:
    if performance.deadlocks:
        yield f"{performance.deadlocks} deadlocks"
    for number, played in enumerate(performance.played):
        if played.place < 0:
            yield f"command {number} ended in {played.answer!r}"


async def _judged(stage: Stage, snapshot: Snapshot, when: str) -> list[str]:
    events = await stage.store.read(lambda tx: tx.log.read(0, 100_000))
    return [f"{when}: {violation}" for violation in judge(events, snapshot)]


def _lost_wakeups(performance: Performance, snapshot: Snapshot) -> Iterator[str]:
    """A worker that got too little is woken for what is ready now, by whoever left it."""
    if not any(isinstance(p.answer, Synced) and p.answer.short for p in performance.played):
        return
    told = {shape for played in performance.played for shape in played.effects.arrivals}
    freed = {queue for played in performance.played for queue in played.effects.freed}
    paused = any(queue.paused for queue in snapshot.queues)
    for ticket in snapshot.ready:
        if ticket.shape in told or ticket.excluded or paused:
            continue
        if not _is_held_back(snapshot, ticket, freed):
            yield f"job {ticket.job} is ready, a worker waits, and nobody wakes it"


def _is_held_back(snapshot: Snapshot, ticket: Ticket, freed: set[str]) -> bool:
    """Whether its queue is full, or was and is told of, or its rate allows no start now."""
    body = next(row.body for row in snapshot.shapes if row.id == ticket.shape)
    shape = msgspec.json.decode(body, type=Shape)
    full = {row.id for row in snapshot.limits if row.leased >= row.max}
    limited = {row.name for row in snapshot.queues if row.max_running and row.limit in full}
    started = {(row.namespace, row.key) for row in snapshot.rates if row.starts != "[]"}
    rated = shape.rate is not None and (shape.namespace, shape.rate.key) in started
    return shape.queue in limited or shape.queue in freed or rated


class Drain:
    """A capable worker that ends all jobs, while operators unblock and time passes."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._seq = 0
        self._received = 0
        self._finished: tuple[Finished, ...] = ()

    async def run(self) -> Snapshot:
        """The state when nothing moves any more."""
        hand = self._stage.hand
        hand.forget()
        enrolment = Enrolment(name="drainer", slots=1_000)
        self._worker = await hand.run(lambda work, _: workers.enrol(work, enrolment))
        now = await self._stage.helper.fetchval("SELECT at FROM injected_clock")
        for _ in range(ROUNDS):
            while await self._advance() or await self._sync():
                pass
            if not await self._stage.helper.fetchval(OPEN_JOBS):
                break
            now += HOUR
            await self._stage.set_clock(now)
            if not await self._help(await self._stage.store.snapshot()):
                break
        return await self._stage.store.snapshot()

    async def _advance(self) -> bool:
        return await self._stage.hand.run(lambda work, _: advance(work))

    async def _sync(self) -> bool:
        self._seq += 1
        request = SyncRequest(
            incarnation=self._worker.incarnation,
            seq=self._seq,
            received=self._received,
            want=100,
            finished=self._finished,
        )
        call = SyncCall(self._worker.worker, request)
        reply: Any
        (reply,) = await self._stage.hand.run(lambda work, bounds: sync(work, bounds, [call]))
        assert isinstance(reply, SyncReply), reply
        said = bool(self._finished)
        self._finished = tuple(Finished(job.job, job.attempt) for job in reply.jobs)
        self._received = max([self._received, *(job.lease for job in reply.jobs)])
        return said or bool(reply.jobs)

    async def _help(self, snapshot: Snapshot) -> bool:
        """What others have to do: workers report, operators accept; time has passed."""
        hand = self._stage.hand
        manual = [wait.job for wait in snapshot.waits if wait.manual == 1]
        paused = [queue.name for queue in snapshot.queues if queue.paused]
        if snapshot.leases:
            await hand.run(lambda work, _: _report_all(work, snapshot.leases))
        for job in manual:
            await hand.run(
                lambda work, _, job=job: decide.unblock(work, job, True, "", None)  # type: ignore[misc]
            )
        for queue in paused:
            await hand.run(
                lambda work, _, queue=queue: queues.set_paused(work, queue, False, None)  # type: ignore[misc]
            )
        if paused:
            hand.forget()
        rated = snapshot.rates and snapshot.ready
        return bool(snapshot.leases or snapshot.due or manual or paused or rated)


async def _report_all(work: Work, leases: Iterable[Lease]) -> None:
    outcomes: dict[int, Outcome] = {CANCELING: "canceled", TIMED_OUT: "timed_out"}
    reports = []
    for lease in leases:
        holder = Worker(
            lease.worker, "", lease.incarnation, 0, 1, 0, 0, 1, "{}", "{}", None, None, 0
        )
        outcome = outcomes.get(lease.state, "completed")
        reports.append(AttemptReport(holder, Finished(lease.job, lease.attempt, outcome)))
    await apply_reports(work, {}, reports)


def result_of(performance: Performance, snapshot: Snapshot) -> Result:
    """What the commands came to, without numbers that differ between orders."""
    names: dict[int, str] = {}
    jobs = []
    for row in snapshot.jobs:
        facts = row.facts
        if facts.supersedes:
            names[facts.id] = names[facts.supersedes] + "'"
        else:
            names[facts.id] = msgspec.json.decode(row.spec)["args"]["label"]
        jobs.append((names[facts.id], _state(snapshot, facts.id), facts.failed, facts.lost))
    return Result(
        tuple(_verdict(played.answer) for played in performance.played),
        tuple(sorted(jobs)),
        tuple(sorted((row.name, row.state, row.run) for row in snapshot.workflows)),
    )


def _state(snapshot: Snapshot, job: int) -> str:
    """The exact state of a job, from the place it stands in."""
    places = {
        "waits": [w.job for w in snapshot.waits],
        "due": [d.job for d in snapshot.due],
        "parked": [t.job for t in snapshot.parked],
        "ready": [t.job for t in snapshot.ready],
    }
    for place, standing in places.items():
        if job in standing:
            return place
    for lease in snapshot.leases:
        if lease.job == job:
            return str(STATE_BY_CODE[lease.state])
    (row,) = (row for row in snapshot.jobs if row.facts.id == job)
    return "nowhere" if row.facts.state is None else str(STATE_BY_CODE[row.facts.state])


def _verdict(answer: object) -> str:
    return answer.code if isinstance(answer, WindlassError) else "done"
