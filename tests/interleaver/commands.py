"""The engine's commands as steps of a run: each says what one caller asks for.

A command is made from a world, so that it can name jobs by their labels.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tests.interleaver.stage import HotStep, Step
from tests.interleaver.world import MINUTE, World, job, submission_of
from windlass.domain.job.job import JobSpec
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.records import Lease
from windlass.domain.rows.steps import SignalRow, StepKind
from windlass.domain.values.errors import WindlassError
from windlass.engine import steps, workflows
from windlass.engine.attempts.writes import Write, write_all
from windlass.engine.fleet import lost_workers as upkeep
from windlass.engine.fleet import queues, workers
from windlass.engine.fleet.capability import reject_at_once
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.jobs import cancel as canceling
from windlass.engine.jobs import decide, places, priority, supersede
from windlass.engine.jobs.deadlines import end_late
from windlass.engine.steps import WaitSpec, begin_wait
from windlass.engine.submit.write_jobs import submit as submit_jobs
from windlass.engine.sync.sync import SyncCall
from windlass.engine.sync.sync import sync as sync_workers
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import Held, Released, Started, SyncReply
from windlass.messages.workers import QueueLimits
from windlass.ports.gateway import Holder

Command = Callable[[World], Step[Any] | HotStep]


class Synced(NamedTuple):
    """A worker's answer, and how many jobs it had asked for."""

    want: int
    reply: SyncReply

    @property
    def short(self) -> bool:
        """Whether the worker, wanting more, now waits to be woken."""
        said = self.reply
        return said.applied and not said.drain and len(said.jobs) < self.want


def _alone(step: Callable[[Work], Any]) -> Step[Any]:
    async def run(work: Work, bounds: Bounds) -> Any:
        return await step(work)

    return run


def submit(*specs: Callable[[World], JobSpec], workflow: str = "") -> Command:
    def make(world: World) -> Step[Any]:
        submission = submission_of([spec(world) for spec in specs], workflow)
        return _alone(lambda work: submit_jobs(work, [submission]))

    return make


def new(
    label: str,
    *,
    after: Sequence[str] = (),
    after_any: Sequence[str] = (),
    workflow: str = "",
    **fields: Any,
) -> Callable[[World], JobSpec]:
    """A job to submit, whose dependencies are named by label."""

    def make(world: World) -> JobSpec:
        ties: dict[str, Any] = {
            "after": tuple(world.jobs[name] for name in after),
            "after_any": tuple(world.jobs[name] for name in after_any),
        }
        if workflow:
            ties["workflow"] = world.workflows[workflow]
        return job(label, **ties, **fields)

    return make


def sync(worker: str, **fields: Any) -> Command:
    """A worker's sync; a field may be a function of the world."""

    def make(world: World) -> Step[Any]:
        chosen = {name: v(world) if callable(v) else v for name, v in fields.items()}
        request = world.request(worker, **chosen)
        call = SyncCall(world.workers[worker].id, request)

        async def run(work: Work, bounds: Bounds) -> Synced:
            (answer,) = await sync_workers(work, bounds, [call])
            if isinstance(answer, WindlassError):
                raise answer
            return Synced(request.want, answer)

        return run

    return make


def hot_submit(*specs: Callable[[World], JobSpec], key: str | None = None) -> Command:
    """The same submit in one round trip, where that is possible."""

    def make(world: World) -> HotStep:
        submission = submission_of([spec(world) for spec in specs])._replace(key=key)
        return HotStep(
            lambda paths: paths.submit([submission]),
            _alone(lambda work: submit_jobs(work, [submission])),
        )

    return make


def hot_sync(worker: str, *labels: str, old: bool = False, **fields: Any) -> Command:
    """A worker's sync in one round trip, where that is possible; it finishes these jobs."""

    def make(world: World) -> HotStep:
        finished = tuple(world.finished(name) for name in labels)
        request = world.request(worker, finished=finished, **fields)
        call = SyncCall(world.workers[worker].id, request)
        ordinary = sync(worker, finished=finished, **fields)(world)
        assert not isinstance(ordinary, HotStep)
        return HotStep(
            lambda paths: paths.sync([call]),
            ordinary,
            lambda answers: Synced(request.want, answers[0]),
            old,
        )

    return make


def sync_both(*asked: tuple[str, dict[str, Any]]) -> Command:
    """The syncs of several workers in one batch, as the committer puts them together."""

    def make(world: World) -> Step[Any]:
        calls = [
            SyncCall(world.workers[name].id, world.request(name, **fields))
            for name, fields in asked
        ]

        async def run(work: Work, bounds: Bounds) -> None:
            await sync_workers(work, bounds, calls)

        return run

    return make


def held(*labels: str) -> Callable[[World], tuple[Held, ...]]:
    """What a worker believes to hold."""
    return lambda world: tuple(
        Held(world.held[name].job, world.held[name].attempt) for name in labels
    )


def claim(worker: str, want: int = 1, prefetch: bool = False) -> Command:
    return sync(worker, want=want, prefetch=prefetch)


def finish(worker: str, *labels: str, want: int = 0) -> Command:
    return sync(
        worker, want=want, finished=lambda world: tuple(world.finished(name) for name in labels)
    )


def fail(worker: str, label: str, failure: str = "configuration", want: int = 0) -> Command:
    return sync(
        worker,
        want=want,
        finished=lambda world: (world.finished(label, "failed", failure=failure),),
    )


def release(worker: str, label: str, reason: str | None = None) -> Command:
    def released(world: World) -> tuple[Released, ...]:
        held = world.held[label]
        return (Released(held.job, held.attempt, reason),)

    return sync(worker, released=released)


def start(worker: str, label: str) -> Command:
    def started(world: World) -> tuple[Started, ...]:
        held = world.held[label]
        return (Started(held.job, held.attempt),)

    return sync(worker, started=started)


def cancel(*labels: str) -> Command:
    return lambda world: _alone(
        lambda work: canceling.cancel(work, [world.jobs[n] for n in labels], "Canceled", None)
    )


def retry(label: str) -> Command:
    return lambda world: _alone(lambda work: supersede.retry(work, world.jobs[label], None))


def cancel_flow(name: str) -> Command:
    """The command alone; its intent is worked off by `advance`."""
    return lambda world: _alone(
        lambda work: workflows.cancel_workflow(work, world.workflows[name], "Canceled", None)
    )


def retry_flow(name: str) -> Command:
    return lambda world: _alone(
        lambda work: workflows.retry_failed(work, world.workflows[name], None)
    )


def unblock(label: str, accept: bool = True) -> Command:
    return lambda world: _alone(
        lambda work: decide.unblock(work, world.jobs[label], accept, "Rejected", None)
    )


def adjust(label: str, by: int = 5) -> Command:
    return lambda world: _alone(lambda work: priority.adjust(work, world.jobs[label], by, None))


def pause(queue: str = "default") -> Command:
    return lambda world: _alone(lambda work: queues.set_paused(work, queue, True, None))


def limit_queue(most: int, queue: str = "default") -> Command:
    limits = QueueLimits(max_running=most)
    return lambda world: _alone(lambda work: queues.set_limits(work, queue, limits, None))


def adopt(world: World) -> Step[Any]:
    return _alone(queues.adopt_leases)


def activity(worker: str, label: str) -> Command:
    def make(world: World) -> Step[Any]:
        facts, held = world.workers[worker], world.held[label]
        holder = Holder(facts.id, facts.incarnation, held.job, held.attempt)

        async def note_lease(work: Work, holder: Holder, lease: Lease | None) -> bool:
            return lease is not None

        return _alone(lambda work: write_all(work, [Write(holder, note_lease)]))

    return make


def enrol(name: str, takeover: bool = False) -> Command:
    enrolment = Enrolment(name=name, slots=10, takeover=takeover)
    return lambda world: _alone(lambda work: workers.enrol(work, enrolment))


def remove(name: str, force: bool = False) -> Command:
    return lambda world: _alone(
        lambda work: workers.remove(work, world.workers[name].id, force, None)
    )


def drain(name: str) -> Command:
    return lambda world: _alone(
        lambda work: workers.set_status(
            work, world.workers[name].id, WorkerStatus.DRAINING, None, None
        )
    )


def label_worker(name: str) -> Command:
    return lambda world: _alone(
        lambda work: workers.set_static(work, world.workers[name].id, lambda _: {"rack": 1}, None)
    )


def advance(world: World) -> Step[Any]:
    return _alone(workflows.advance)


def promote(world: World) -> Step[Any]:
    return _alone(lambda work: places.promote_due(work, 100))


def late(world: World) -> Step[Any]:
    """Deal with deadlines that have passed."""
    return _alone(end_late)


def reject(*labels: str) -> Command:
    """Reject those of these jobs that nobody can run."""
    return lambda world: _alone(
        lambda work: reject_at_once(work, [world.jobs[label] for label in labels])
    )


def refill(world: World) -> Step[Any]:
    return _alone(upkeep.refill_limits)


def expire(world: World) -> Step[Any]:
    return _alone(lambda work: upkeep.judge_silence(work, {}, True))


def overdue(world: World) -> Step[Any]:
    return _alone(upkeep.end_overdue)


def orphans(world: World) -> Step[Any]:
    return _alone(upkeep.recover_orphans)


def suspend(worker: str, label: str) -> Command:
    """The worker reports that the function waits."""
    return sync(worker, finished=lambda world: (world.finished(label, "suspended"),))


def wait_for(worker: str, label: str) -> Command:
    """The function of a running job waits for the signal `go`."""

    def make(world: World) -> Step[Any]:
        facts, held = world.workers[worker], world.held[label]
        holder = Holder(facts.id, facts.incarnation, held.job, held.attempt)
        apply = begin_wait(WaitSpec("w", StepKind.SIGNAL, MINUTE, "go"))
        return _alone(lambda work: write_all(work, [Write(holder, apply)]))

    return make


def ask(worker: str, label: str) -> Command:
    """The function of a running job asks a question."""

    def make(world: World) -> Step[Any]:
        facts, held = world.workers[worker], world.held[label]
        holder = Holder(facts.id, facts.incarnation, held.job, held.attempt)
        apply = begin_wait(WaitSpec("q", StepKind.QUESTION, MINUTE, body=b"{}"))
        return _alone(lambda work: write_all(work, [Write(holder, apply)]))

    return make


def send(key: str = "k") -> Command:
    """Somebody sends the signal `go`."""
    signal = SignalRow(0, "default", "go", key, 0, 1, None, b"1")
    return lambda world: _alone(lambda work: steps.send(work, signal))


def deliver(world: World) -> Step[Any]:
    """The sender, or the loop behind it, tells those who wait."""
    return _alone(steps.deliver_open)


def answer(label: str) -> Command:
    """Somebody answers the question of a job."""
    return lambda world: _alone(lambda work: steps.answer(work, world.jobs[label], "q", b"1", None))


def hear(world: World) -> Step[Any]:
    return _alone(upkeep.note_server_alive)
