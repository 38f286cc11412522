"""The engine: puts the parts together over one store.

`engine.submit` and `engine.sync` are the two hot commands; the others are grouped as `engine.jobs`,
`engine.workflows`, `engine.workers`, `engine.queues`, `engine.explain`, `engine.steps` and
`engine.bulk`. The engine holds caches, never state: it can be killed at any moment, and another
continues from the store.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from windlass.domain.config import Config, validate
from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import Validator
from windlass.domain.tasks.kind import TaskKind
from windlass.engine.after_commit import AfterCommit
from windlass.engine.claim.wakeups import WaitingSyncs
from windlass.engine.commands.explain import Explain
from windlass.engine.commands.jobs import Bulk, Jobs
from windlass.engine.commands.steps import Steps
from windlass.engine.commands.submit import SubmitCommand
from windlass.engine.commands.sync import SyncCommand
from windlass.engine.commands.workers import Workers
from windlass.engine.commands.workflows import Workflows
from windlass.engine.fleet.epochs import TimelineFollower
from windlass.engine.fleet.queues import Queues
from windlass.engine.jobs.dependents import CHUNK
from windlass.engine.jobs.end_waiters import EndWaiters
from windlass.engine.submit.submission import Submitted, WorkflowSpec
from windlass.engine.sync.fast_path import FastPath
from windlass.engine.sync.stacks import StackRequests
from windlass.engine.timers import BackgroundTasks, DueJobs, RateTimer
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.effects import Counters, Metrics
from windlass.engine.transaction.group_commit import A, Committer, Lane, Q, Run, Step
from windlass.engine.transaction.unit_of_work import DEPTH, Work
from windlass.engine.workflows import CascadeRunner, advance
from windlass.messages.sync import SyncReply, SyncRequest
from windlass.ports.clock import Chance
from windlass.store.fast_path import fast_path_of
from windlass.store.sql.transaction import WriteTx
from windlass.store.store import Followed, Store

T = TypeVar("T")
BeginTrace = Callable[[Sequence[JobSpec]], Sequence[JobSpec]]


class Engine:
    """Moves jobs. One per process and store; a shared store can have any number of them.

    `fast_path=False` runs every command in a normal transaction, even where the store offers the
    fast path.
    """

    def __init__(
        self,
        store: Store,
        config: Config,
        chance: Chance,
        tasks: Mapping[str, TaskKind] | None = None,
        *,
        fast_path: bool = True,
    ) -> None:
        validate(config)
        self.config = config
        self.store = store
        self.catalog = Catalog(config)
        self.waiting_syncs = WaitingSyncs()
        self.stacks = StackRequests(self.waiting_syncs, chance)
        self.counters = Counters()
        self.background = BackgroundTasks()
        self.last_heard: dict[int, int] = {}  # worker → when this engine last heard from it
        self._joined: dict[int, set[int]] = {}  # child → jobs whose functions wait for it
        self.due_jobs = DueJobs(store, config, self.run, self.background)
        step = partial(advance, most=CHUNK if store.inline else 1)
        self.cascades = CascadeRunner(lambda: self.run(step))
        self._chance = chance
        self._bounds = Bounds(store.shared)
        self._rates = RateTimer(self.now, self._wake_for_rate, self.background)
        self._end_waiters = EndWaiters(store)
        self._committer = Committer(store, config, self._begin)
        self._unsubscribe: Callable[[], None] = lambda: None
        hot = fast_path_of(store) if fast_path else None
        path = None if hot is None else FastPath(hot, config, self.catalog, self._bounds)
        self._after_commit = self._listen(path)
        self._follower = TimelineFollower(self._begin, self._after_commit.reread)
        self._add_commands(Validator(config, tasks), path)

    def _listen(self, path: FastPath | None) -> AfterCommit:
        after_commit = AfterCommit(
            store=self.store,
            catalog=self.catalog,
            bounds=self._bounds,
            fast_path=path,
            waiting_syncs=self.waiting_syncs,
            stacks=self.stacks,
            end_waiters=self._end_waiters,
            counters=self.counters,
            cascades=self.cascades,
            due_jobs=self.due_jobs,
            rates=self._rates,
            background=self.background,
            last_heard=self.last_heard,
            run=self.run,
            joined=self._joined,
        )
        self._committer.listen(after_commit)
        return after_commit

    def _add_commands(self, validator: Validator, path: FastPath | None) -> None:
        """Makes the parts. Those with lanes come in the order in which a batch runs them."""
        store, config, run, committer = self.store, self.config, self.run, self._committer
        catalog, waiting_syncs = self.catalog, self.waiting_syncs
        self.begin_trace: BeginTrace = lambda jobs: jobs  # for jobs without a namespace
        self.submissions = SubmitCommand(
            store=store, config=config, validator=validator, catalog=catalog,
            waiting_syncs=waiting_syncs, committer=committer, run=run,
        )  # fmt: skip
        self._syncs = SyncCommand(
            config=config, catalog=catalog, bounds=self._bounds, waiting_syncs=waiting_syncs,
            last_heard=self.last_heard, committer=committer, stacks=self.stacks,
        )  # fmt: skip
        self.jobs = Jobs(store, catalog, run, self.cascades, self._end_waiters, self.submissions)
        self.steps = Steps(
            store=store, config=config, catalog=catalog, committer=committer, run=run,
            joined=self._joined,
        )  # fmt: skip
        self._steps: Lane[Step[Any], Any] = committer.lane(Lane(_run_steps, most=1))
        self.workflows = Workflows(store, run, self.cascades, self._end_waiters, self.submissions)
        self.workers = Workers(run=run, syncs=self._syncs, waiting_syncs=waiting_syncs)
        self.queues = Queues(run=run, refresh=self._after_commit.refresh)
        self.explain = Explain(store=store, config=config, catalog=catalog)
        self.bulk = Bulk(store, self.jobs)
        if path is not None:
            self.submissions.use_fast_path(path, self._after_commit.fast_committed)
            self._syncs.use_fast_path(path, self._after_commit.fast_committed)

    async def start(self) -> None:
        """Fills the caches and subscribes to the news of other engines."""
        if isinstance(self.store, Followed):
            await self.store.be_followed(self._follower)
        else:
            self._follower.since = await self.now()
        await self.store.read(self.catalog.refresh)
        self._unsubscribe = self.store.subscribe(self._after_commit.on_news)
        await self.due_jobs.set_next_alarm()
        self.cascades.start()

    @property
    def known_since(self) -> int:
        """Returns since when this engine has watched the database; 0 before `start`."""
        return self._follower.since

    @property
    def is_stopping(self) -> bool:
        """Returns whether waiting calls should return at once."""
        return self._end_waiters.is_closed

    def stop_waiting(self) -> None:
        """Answers all waiting calls, and later ones at once; `close` comes next.

        Some wait for cascades, which may take minutes: the next engine continues those.
        """
        self.cascades.stop()
        self._syncs.close()
        self._end_waiters.close()

    async def close(self) -> None:
        """Answers the open syncs, waits for running transactions, and stops."""
        self._after_commit.closed = True
        self._unsubscribe()
        self.due_jobs.close()
        self._rates.close()
        self.stop_waiting()
        await self._committer.close()
        await asyncio.gather(
            self.background.finish(), self.cascades.settled(), return_exceptions=True
        )

    # The hot commands

    async def submit(
        self,
        jobs: Sequence[JobSpec],
        workflow: WorkflowSpec | None = None,
        key: str | None = None,
        reopen: bool = False,
    ) -> Submitted:
        """Submits jobs, all or nothing; optionally as a new workflow.

        Submitting again with the same `key` returns the first answer and repeats nothing.
        With `reopen` jobs may join a workflow that has ended.
        """
        return await self.submissions.submit(self.begin_trace(jobs), workflow, key, reopen)

    async def sync(
        self, worker: int, request: SyncRequest, woken: Callable[[], None] | None = None
    ) -> SyncReply:
        """Answers a worker's sync, at once or when there is something to tell.

        `woken` is called when there may be a job for a waiting worker.
        """
        return await self._syncs.sync(worker, request, woken)

    # Reading

    async def now(self) -> int:
        """Returns the store's time."""
        return await self.store.now()

    async def metrics(self) -> Metrics:
        """Returns the counters of this engine and the queue depths of the store."""
        found = await self.store.read(lambda tx: tx.log.counters())
        depth = {n.removeprefix(DEPTH): v for n, v in found.items() if n.startswith(DEPTH)}
        return self.counters.read(depth)

    @property
    def busy(self) -> bool:
        """Returns whether a transaction or a background task is running."""
        return self._committer.busy or len(self.background) > 0

    # For loops and services

    async def run(self, step: Step[T], rows: int = 0) -> T:
        """Runs one step in a transaction of the group commit; see `Store.transact` for `rows`."""
        answer: T = await self._committer.call(self._steps, step, rows)
        return answer

    async def exhaust(self, step: Step[int]) -> int:
        """Runs a step, each time in another transaction, until it does nothing; returns the sum."""
        done = 0
        while some := await self.run(step):
            done += some
        return done

    def lane(self, run: Run[Q, A]) -> Callable[[Q], Awaitable[A]]:
        """Adds a kind of call that shares transactions, and returns the function that makes such a
        call.
        """
        lane: Lane[Q, A] = self._committer.lane(Lane(run))
        return lambda request: self._committer.call(lane, request)

    async def refresh(self) -> None:
        """Reads the caches again and wakes every waiting sync."""
        await self._after_commit.refresh()

    async def wake_for_ready_jobs(self) -> None:
        """Wakes syncs for jobs that are ready: the poll behind the notifications."""
        await self._after_commit.wake_for_ready_jobs()

    async def settled(self) -> None:
        """Waits until every cascade this engine knows of is done."""
        await self.cascades.settled()

    def _begin(self, tx: WriteTx) -> Work:
        return Work(tx, self.config, self.catalog, self._chance, self.store.inline)

    def _wake_for_rate(self, shape: int) -> None:
        self.waiting_syncs.wake_for(shape, 1)


async def _run_steps(work: Work, steps: Sequence[Step[Any]]) -> list[Any]:
    return [await step(work) for step in steps]
