"""Applies a commit to the caches, timers and waiting calls of an engine.

Commands collect `Effects` while their transaction runs; nothing here happens before the commit.
Commits of other engines arrive as `News` and are applied in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from windlass.engine.claim.wakeups import WaitingSyncs
from windlass.engine.fleet.probation import judge_conduct
from windlass.engine.jobs.end_waiters import EndWaiters
from windlass.engine.steps import end_joins
from windlass.engine.sync.fast_path import FastPath, FastResult
from windlass.engine.sync.lookups import reject_unresolved
from windlass.engine.sync.stacks import StackRequests
from windlass.engine.timers import BackgroundTasks, DueJobs, RateTimer
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.effects import Counters, Effects
from windlass.engine.transaction.group_commit import RunStep
from windlass.engine.transaction.unit_of_work import Work
from windlass.engine.workflows import CascadeRunner
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import News, Store


@dataclass(kw_only=True, eq=False)
class AfterCommit:
    """Applies the effects of commits; the group commit calls it."""

    store: Store
    catalog: Catalog
    bounds: Bounds
    fast_path: FastPath | None
    waiting_syncs: WaitingSyncs
    stacks: StackRequests
    end_waiters: EndWaiters
    counters: Counters
    cascades: CascadeRunner
    due_jobs: DueJobs
    rates: RateTimer
    background: BackgroundTasks
    last_heard: dict[int, int]  # worker → when this engine last heard from it
    run: RunStep
    joined: dict[int, set[int]]  # child → jobs whose functions wait for it
    closed: bool = False

    def committed(self, work: Work) -> None:
        """Applies a committed transaction."""
        self.catalog.learn(work.shapes, work.shape_ids)
        self.apply(work.effects)

    def fast_committed(self, result: FastResult[Any]) -> None:
        """Applies a command that has committed on the fast path."""
        self.last_heard.update(result.heard)
        self.apply(result.effects)

    def failed(self) -> None:
        """Drops the caches, which may hold data of a transaction that was rolled back."""
        if self.fast_path is not None:
            self.fast_path.forget()
        self.catalog.clear(numbers_return=self.store.inline)
        self.bounds.reset()
        self.waiting_syncs.forget_woken_early()

    def apply(self, effects: Effects) -> None:
        """Updates caches and timers, wakes waiting calls, and tells other engines."""
        if effects.queues:
            self.catalog.learn_queues(effects.queues)
        if self.fast_path is not None and (effects.loads or effects.leaving):
            self.fast_path.learn(effects.loads, effects.leaving)
        for raised in effects.raises:
            self.bounds.raise_to(*raised)
        for queue, count in effects.freed.items():
            for rank, job, shape in self.bounds.best_of(self.catalog.shapes_in(queue), count):
                effects.arrive_at(shape, rank, job, 1)
        for shape, (rank, job, count) in effects.arrivals.items():
            self.bounds.lower(shape, rank, job)
            self.waiting_syncs.wake_for_committed(shape, count)
        for worker, shape in effects.refused:
            self.waiting_syncs.refuse(worker, shape)
        for worker in effects.declined:
            self.waiting_syncs.decline(worker)
        if effects.opening:
            self.rates.set(effects.opening)
        if effects.pokes:
            self._wake_workers(effects.pokes)
        if effects.ended or effects.ended_workflows:
            self.end_waiters.wake(effects.ended, effects.ended_workflows)
            self._end_joins(effects.ended)
        self.counters.add(effects.counts)
        self.due_jobs.set_alarm(effects.due_at)
        if effects.any_suspects:
            self.background.start(self.run(judge_conduct))
        if effects.cascades:
            self.cascades.start()
        if effects.unresolved:
            self.background.start(
                self.run(partial(reject_unresolved, unresolved=effects.unresolved))
            )
        if self.store.shared and self._concerns_others(effects):
            self.store.announce(effects.news())

    def on_news(self, news: News) -> None:
        """Applies what another engine has committed."""
        if self.closed:
            return
        unknown = any(shape not in self.catalog.shapes for shape, *_ in news.arrivals)
        if news.catalog or unknown:
            self.background.start(self.refresh())
            self.end_waiters.wake_all()
        self.end_waiters.wake(news.ended, news.ended_workflows)
        self._end_joins(news.ended)
        for shape, rank, job, count in () if unknown else news.arrivals:
            self.bounds.lower(shape, rank, job)
            self.waiting_syncs.wake_for(shape, count)
        self._wake_workers(news.pokes)
        if news.stacks:
            self.stacks.hear(news.stacks)
        self.due_jobs.set_alarm(news.due_at or None)

    async def refresh(self) -> None:
        """Reads the caches again and wakes every waiting sync."""
        if self.fast_path is not None:
            self.fast_path.forget()
        self.bounds.reset()
        await self.store.read(self.catalog.refresh)
        self.waiting_syncs.wake_all()

    async def reread(self, tx: ReadTx) -> None:
        """Forgets everything about a database that was replaced, and reads the new one."""
        self.failed()
        self.catalog.clear(numbers_return=True)
        await self.catalog.refresh(tx)
        self.end_waiters.wake_all()
        self.waiting_syncs.wake_all()
        if self.store.shared:
            self.store.announce(News(catalog=True))

    async def wake_for_ready_jobs(self) -> None:
        """Wakes syncs for jobs that are ready: the poll behind the notifications."""
        await self.store.read(self.catalog.refresh)
        if not len(self.waiting_syncs):
            return
        self.waiting_syncs.forget_refusals()
        if self.fast_path is not None:
            self.fast_path.forget()
        heads = await self.store.read(lambda tx: tx.places.heads())
        for shape, rank, job in heads:
            if shape in self.catalog.shapes and not self.catalog.paused(shape):
                self.bounds.lower(shape, rank, job)
                self.waiting_syncs.wake_for(shape, 1)

    def _end_joins(self, ended: Sequence[int]) -> None:
        """Continues the jobs that wait for these; the scheduling loop catches what is missed
        here.
        """
        if not self.joined:
            return
        parents = {parent for job in ended for parent in self.joined.pop(job, ())}
        if parents:
            self.background.start(self.run(partial(end_joins, parents=sorted(parents))))

    def _wake_workers(self, workers: Sequence[int]) -> None:
        if self.fast_path is not None:
            self.fast_path.skip_once(workers)
        self.waiting_syncs.wake(workers)

    def _concerns_others(self, effects: Effects) -> bool:
        if effects.announced:
            return False
        ended = (effects.ended or effects.ended_workflows) and self.store.inline
        return bool(
            effects.arrivals
            or effects.pokes
            or effects.due_at is not None
            or effects.catalog
            or ended
        )
