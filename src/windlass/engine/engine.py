"""The engine: one object with every command, over one store.

It checks what comes in, gathers calls into transactions, and after each commit tells
the waiting syncs, the bounds and the other engines. It keeps caches, never state: it
can be killed at any moment, and another goes on from the store.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from windlass.domain.config import Config, validate
from windlass.domain.job.job import JobSpec, check_name
from windlass.domain.job.validation import ValidatedJob, Validator
from windlass.domain.matching.shapes import Shape
from windlass.domain.values.errors import InvalidInput
from windlass.engine.attempts.activity import Activity, note_activity
from windlass.engine.claim.alarm import Alarm
from windlass.engine.claim.rate_timer import Reopening
from windlass.engine.claim.wakeups import Waiter, WakeUps
from windlass.engine.commands.explain import ExplainCommands
from windlass.engine.commands.fleet import FleetCommands
from windlass.engine.commands.jobs import JobCommands
from windlass.engine.commands.workflows import WorkflowCommands
from windlass.engine.explain.forecast import Crowd
from windlass.engine.fleet.capability import asks_at_once, reject_at_once
from windlass.engine.jobs.deadlines import end_late, next_deadline
from windlass.engine.jobs.dependents import CHUNK
from windlass.engine.jobs.end_waiters import Endings
from windlass.engine.jobs.enqueue import promote_due
from windlass.engine.submit.submission import (
    Duplicate,
    Submission,
    Submitted,
    WorkflowSpec,
    bytes_of,
    check_workflow,
)
from windlass.engine.submit.write_jobs import is_plain, submit
from windlass.engine.sync.fast_path import Done, HotPaths, answers_of
from windlass.engine.sync.lookups import reject_unresolved
from windlass.engine.sync.sync import SyncCall, only_claim, sync
from windlass.engine.transaction.arguments import check_id, check_sync
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.counters import Counters, Metrics
from windlass.engine.transaction.effects import Effects
from windlass.engine.transaction.gc_pause import MANY, undisturbed
from windlass.engine.transaction.group_commit import A, Committer, Lane, Q, Run
from windlass.engine.transaction.unit_of_work import DEPTH, Work
from windlass.engine.workflows.cascade_runner import WorkingOff
from windlass.engine.workflows.cascades import advance
from windlass.ports.clock import Chance
from windlass.ports.store import News, Store, Tx
from windlass.ports.store_hot import hot_of
from windlass.ports.tasks import TaskKind
from windlass.wire.sync import SyncReply, SyncRequest

T = TypeVar("T")
Step = Callable[[Work], Awaitable[T]]


class Engine(JobCommands, WorkflowCommands, ExplainCommands, FleetCommands):
    """Moves jobs. One per process and store; any number of them on a shared store."""

    def __init__(
        self,
        store: Store,
        config: Config,
        chance: Chance,
        tasks: Mapping[str, TaskKind] | None = None,
    ) -> None:
        validate(config)
        self.config = config
        self.store = store
        self.wakeups = WakeUps()
        self.counters = Counters()
        self.heard: dict[int, int] = {}  # worker → when this engine last heard it
        self._chance = chance
        self._validator = Validator(config, tasks)
        self._catalog = Catalog(config)
        self._crowd = Crowd()
        self._bounds = Bounds(store.shared)
        self._committer = Committer(store, config, self._begin, self._committed, self._failed)
        self.told: dict[int, frozenset[tuple[int, int]]] = {}
        self._early: dict[int, int] = {}  # shape → waiters woken before its jobs are there
        self._alarm = Alarm(self.now, self._promote)
        self._rates = Reopening(self.now, self._reopen, self._spawn)
        self._endings = Endings(store)
        step = partial(advance, most=CHUNK if store.inline else 1)
        self._cascades = WorkingOff(lambda: self.run(step))
        self._unsubscribe: Callable[[], None] = lambda: None
        self._background: set[asyncio.Task[Any]] = set()
        self._closed = False
        self._make_lanes()

    def _make_lanes(self) -> None:
        lane = self._committer.lane
        tied = None if self.store.inline else 1
        hot = hot_of(self.store)
        paths = None if hot is None else HotPaths(hot, self.config, self._catalog, self._bounds)
        self._hot = paths
        self._plain = lane(Lane(submit, key=lambda s: s.key, size=bytes_of))
        self._tied = lane(Lane(submit, key=lambda s: s.key, size=bytes_of, most=tied))
        self._sync: Lane[SyncCall, SyncReply] = lane(
            Lane(self._run_syncs, key=lambda call: call.worker)
        )
        if paths is not None:
            self._plain.hot = partial(answers_of, paths.submit, self._done)
            self._sync.hot = partial(answers_of, paths.sync, self._done)
        self._activity = lane(Lane(note_activity))
        self._steps: Lane[Step[Any], Any] = lane(Lane(_run_steps, most=1))

    async def start(self) -> None:
        """Read what the engine caches and begin to hear other engines."""
        await self.store.read(self._catalog.refresh)
        self._unsubscribe = self.store.subscribe(self._hear)
        await self._set_next_alarm()
        self._cascades.start()

    async def close(self) -> None:
        """Answer the open syncs, let running transactions end, and stop."""
        self._closed = True
        self._unsubscribe()
        self._alarm.close()
        self._rates.close()
        self.wakeups.wake_all()
        self._endings.close()
        await self._committer.close()
        await asyncio.gather(*self._background, self._cascades.settled(), return_exceptions=True)

    # Commands

    async def submit(
        self,
        jobs: Sequence[JobSpec],
        workflow: WorkflowSpec | None = None,
        key: str | None = None,
        reopen: bool = False,
    ) -> Submitted:
        """Submit jobs, all or nothing; optionally as a new workflow.

        Said again with the same `key`, it is answered as before, and nothing is repeated.
        """
        if not jobs and workflow is None:
            raise InvalidInput("jobs", "at least one job", 0)
        if workflow is not None:
            check_workflow(workflow, self.config.payload_limit)
        if key is not None:
            check_name("key", key)
            if not jobs:
                raise InvalidInput("key", "none without jobs", key)
        if len(jobs) >= MANY:
            with undisturbed():
                return await self._submit(jobs, workflow, key, reopen)
        return await self._submit(jobs, workflow, key, reopen)

    async def _submit(
        self, jobs: Sequence[JobSpec], workflow: WorkflowSpec | None, key: str | None, reopen: bool
    ) -> Submitted:
        checked = self.validate_jobs(jobs)
        submission = Submission(checked, workflow, key, reopen)
        at_once = self.config.capability_grace_ms == 0
        if not is_plain(submission):
            done = await self._submit_checked(submission)
            at_once = at_once or asks_at_once(checked)
        else:
            if self.store.inline and not self._plain.pending:
                self._wake_early(checked)
            done = await self._committer.call(self._plain, submission)
        if at_once:
            await self.run(partial(reject_at_once, jobs=done.ids))
        return done

    async def _submit_checked(self, submission: Submission) -> Submitted:
        try:
            return await self._committer.call(self._tied, submission)
        except Duplicate as found:
            return await self._answer_duplicate(found, submission.jobs)

    def _wake_early(self, jobs: Sequence[ValidatedJob]) -> None:
        """Let waiting syncs join the very transaction that brings jobs for them.

        It saves a commit between submit and start. The syncs are called after the jobs,
        so they stand behind them in the same batch, or in a later one.
        """
        shape = self._catalog.ids.get(jobs[0].template.digest)
        if shape in self._catalog.shapes and not self._catalog.paused(shape):
            woken = self.wakeups.arrive(shape, len(jobs))
            self._early[shape] = self._early.get(shape, 0) + woken

    def validate_jobs(self, jobs: Sequence[JobSpec]) -> list[ValidatedJob]:
        try:
            return self._validator.validate_all(jobs)
        except InvalidInput:
            # Only now is it worth giving each its name.
            return [self._validator.validate(job, f"jobs[{n}]") for n, job in enumerate(jobs)]

    async def sync(
        self, worker: int, request: SyncRequest, woken: Callable[[], None] | None = None
    ) -> SyncReply:
        """Answer a worker's sync, at once or when there is something to say.

        `woken` is called when there may be a job for a worker that has waited.
        """
        check_id("worker", worker)
        check_sync(request, self.config.heartbeat_interval_ms)
        deadline = asyncio.get_running_loop().time() + request.wait_ms / 1000
        # Registered before the claim is tried, so that no job arrives unseen in between.
        waiter = self._open_waiter(worker, request)
        call = SyncCall(worker, request)
        try:
            while True:
                reply = await self._committer.call(self._sync, call)
                if self._is_answer(worker, call, reply) or (waiter is not None and waiter.ended):
                    return reply
                call = only_claim(call)
                if waiter is None:
                    waiter = self._open_waiter(worker, request)
                elif not await waiter.sleep(deadline) or waiter.ended:
                    return reply
                elif woken is not None and waiter.shape is not None:
                    woken()
        finally:
            if waiter is not None:
                self.wakeups.close(waiter)

    async def note_activity(self, sign: Activity) -> bool:
        """A running job shows signs of life; False means `lease_lost`."""
        for number, field in zip(sign, sign._fields, strict=True):
            check_id(field, number)
        return await self._committer.call(self._activity, sign)

    async def wait_ended(self, job: int, timeout_ms: int) -> bool:
        """Wait until a job has ended; whether it has."""
        return await self._endings.wait(job, timeout_ms)

    async def now(self) -> int:
        """The store's time."""
        return await self.store.read(_now)

    def shape(self, shape: int) -> Shape | None:
        """A shape this engine knows."""
        return self._catalog.shapes.get(shape)

    async def metrics(self) -> Metrics:
        """A reading of the counters."""
        found = await self.store.read(lambda tx: tx.log.counters())
        depth = {n.removeprefix(DEPTH): v for n, v in found.items() if n.startswith(DEPTH)}
        return self.counters.read(depth)

    # For the loops

    async def _step(self, step: Step[T]) -> T:
        return await self.run(step)

    async def run(self, step: Step[T]) -> T:
        """Run one step in a transaction of the group commit."""
        answer: T = await self._committer.call(self._steps, step)
        return answer

    def lane(self, run: Run[Q, A]) -> Callable[[Q], Awaitable[A]]:
        """A further kind of call, for parts beside the engine: calls share transactions."""
        lane: Lane[Q, A] = self._committer.lane(Lane(run))
        return lambda request: self._committer.call(lane, request)

    async def refresh(self) -> None:
        """Trust no cache any more, and let everyone look again."""
        if self._hot is not None:
            self._hot.forget()
        self._bounds.reset()
        await self.store.read(self._catalog.refresh)
        self.wakeups.wake_all()

    async def look_around(self) -> None:
        """Wake waiters for jobs that stand ready: the poll behind the notifications."""
        await self.store.read(self._catalog.refresh)
        if not len(self.wakeups):
            return
        self.wakeups.forget_refusals()
        if self._hot is not None:
            self._hot.forget()
        heads = await self.store.read(lambda tx: tx.places.heads())
        for shape, rank, job in heads:
            if shape in self._catalog.shapes and not self._catalog.paused(shape):
                self._bounds.lower(shape, rank, job)
                self.wakeups.arrive(shape, 1)

    async def settled(self) -> None:
        """Wait until the intents this engine knows of are worked off."""
        await self._cascades.settled()

    # After commits

    def _begin(self, tx: Tx) -> Work:
        return Work(tx, self.config, self._catalog, self._chance, self.store.inline)

    def _committed(self, work: Work) -> None:
        self._catalog.learn(work.shapes, work.shape_ids)
        self._apply(work.effects)

    def _done(self, done: Done[Any]) -> None:
        """A hot command has committed."""
        self.heard.update(done.heard)
        self._apply(done.effects)

    def _apply(self, effects: Effects) -> None:
        """What a commit means to the engine around it."""
        if effects.queues:
            self._catalog.learn_queues(effects.queues)
        if self._hot is not None:
            self._hot.learn(effects.loads, effects.leaving)
        for raised in effects.raises:
            self._bounds.raise_to(*raised)
        for queue, count in effects.freed.items():
            for rank, job, shape in self._bounds.best_of(self._catalog.shapes_in(queue), count):
                effects.arrive_at(shape, rank, job, 1)
        for shape, (rank, job, count) in effects.arrivals.items():
            self._bounds.lower(shape, rank, job)
            self.wakeups.arrive(shape, count - self._early.pop(shape, 0))
        for worker, shape in effects.refused:
            self.wakeups.refuse(worker, shape)
        if effects.opening:
            self._rates.set(effects.opening)
        self._poke(effects.pokes)
        self._endings.tell(effects.ended)
        self.counters.add(effects.counts)
        self._set_alarm(effects.due_at)
        if effects.cascades:
            self._cascades.start()
        if effects.unresolved:
            self._spawn(self.run(partial(reject_unresolved, unresolved=effects.unresolved)))
        if (
            self.store.shared
            and not effects.told
            and (
                effects.arrivals
                or effects.pokes
                or effects.due_at
                or effects.catalog
                or (effects.ended and self.store.inline)
            )
        ):
            self._spawn(self.store.announce(effects.news()))

    def _poke(self, workers: Sequence[int]) -> None:
        if self._hot is not None:
            self._hot.poke(workers)
        self.wakeups.poke(workers)

    def _failed(self) -> None:
        """A transaction ended in an error: the caches may hold what was rolled back."""
        if self._hot is not None:
            self._hot.forget()
        self._catalog.clear(numbers_return=self.store.inline)
        self._bounds.reset()
        self._early.clear()

    def _hear(self, news: News) -> None:
        """Another engine has committed something."""
        if self._closed:
            return
        unknown = any(shape not in self._catalog.shapes for shape, *_ in news.arrivals)
        if news.catalog or unknown:
            self._spawn(self.refresh())
            self._endings.look_again()
        self._endings.tell(news.ended)
        for shape, rank, job, count in () if unknown else news.arrivals:
            self._bounds.lower(shape, rank, job)
            self.wakeups.arrive(shape, count)
        self._poke(news.pokes)
        self._set_alarm(news.due_at)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(_end_quietly)
        task.add_done_callback(self._background.discard)

    def _set_alarm(self, due_at: int) -> None:
        """Look again when the earliest planned job is due."""
        if not self._alarm.is_set_before(due_at):
            self._spawn(self._alarm.set(due_at))

    def _reopen(self, shape: int) -> None:
        """The rate of a shape lets jobs start again."""
        self.wakeups.arrive(shape, 1)

    def _promote(self) -> None:
        self._spawn(self.promote_due())

    async def promote_due(self) -> int:
        """Move the jobs whose time has come, end those that are late, set the next alarm."""
        moved = 0
        while some := await self.run(lambda work: promote_due(work, self.config.chunk_rows)):
            moved += some
        while some := await self.run(end_late):
            moved += some
        await self._set_next_alarm()
        return moved

    async def _set_next_alarm(self) -> None:
        due = await self.store.read(lambda tx: tx.places.next_due())
        deadline = await self.store.read(next_deadline)
        self._set_alarm(min(due or deadline, deadline or due))

    # Syncs

    async def _run_syncs(self, work: Work, calls: Sequence[SyncCall]) -> Sequence[Any]:
        answers = await sync(work, self._bounds, calls)
        work.effects.leaving.update(call.worker for call in calls)
        for call, answer in zip(calls, answers, strict=True):
            # Neither a zombie's message nor our own second look is a sign of life.
            if not call.again and isinstance(answer, SyncReply) and answer.applied:
                self.heard[call.worker] = work.now
        return answers

    def _is_answer(self, worker: int, call: SyncCall, reply: SyncReply) -> bool:
        """Whether the worker should hear this reply now, or the sync may wait for more."""
        request = call.request
        news = self._has_news(worker, reply)
        if request.wait_ms <= 0 or not reply.applied or self._closed:
            return True
        # A worker that reported something wants to know that it is recorded.
        return bool(news or request.started or request.finished or request.released)

    def _has_news(self, worker: int, reply: SyncReply) -> bool:
        """Whether there is something to tell; a stop or a drain is news only once."""
        told = self.told.get(worker, frozenset())
        now: frozenset[tuple[int, int]] = frozenset((s.job, s.attempt) for s in reply.cancel)
        if reply.drain:
            now |= {(0, 0)}
        self.told[worker] = now
        return bool(reply.jobs or reply.lost or now - told)

    def _open_waiter(self, worker: int, request: SyncRequest) -> Waiter | None:
        profile = self._catalog.profile_of(worker)
        if profile is None or request.wait_ms <= 0:
            self.wakeups.end(worker)
            return None
        waiter = Waiter(worker, profile, request.want)
        self.wakeups.open(waiter)
        return waiter


async def _run_steps(work: Work, steps: Sequence[Step[Any]]) -> list[Any]:
    return [await step(work) for step in steps]


async def _now(tx: Tx) -> int:
    return tx.now


def _end_quietly(task: "asyncio.Task[Any]") -> None:
    """Background work that met an unavailable store is taken up again by the loops."""
    if not task.cancelled():
        task.exception()
