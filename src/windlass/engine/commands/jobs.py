"""The engine's commands about single jobs."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from windlass.domain.explain.forecast import Forecast
from windlass.domain.job.priority_inheritance import levels_gained
from windlass.domain.lifecycle.rank import level, rank
from windlass.domain.rows.records import JobFacts
from windlass.domain.rows.statistics import Summary
from windlass.domain.rows.views import JobView
from windlass.domain.values.errors import NotFound
from windlass.engine.explain.forecast import Crowd, Forecaster, Outlook
from windlass.engine.history.statistics import summaries
from windlass.engine.jobs import priority, supersede, unblock
from windlass.engine.jobs.cancel import Canceled, cancel
from windlass.engine.transaction.arguments import check_id, check_text, check_whole
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.unit_of_work import Work
from windlass.engine.workflows.retry import retry_one
from windlass.ports.store import ReadTx, Store

T = TypeVar("T")


class Standing(NamedTuple):
    """A job's place in the order: its score, the highest first, and how much of it is lent."""

    score: float
    inherited: float


class JobCommands(ABC):
    """A part of the engine."""

    store: Store
    _catalog: Catalog
    _crowd: Crowd

    @abstractmethod
    async def run(self, step: Callable[[Work], Awaitable[T]]) -> T: ...

    @abstractmethod
    async def settled(self) -> None: ...

    async def standing(self, job: int) -> Standing:
        """Where a job stands in the order."""

        async def read(tx: ReadTx) -> Standing:
            facts = (await tx.jobs.read([job])).get(job)
            if facts is None:
                raise NotFound("job", job)
            await self._catalog.know(tx, [facts.shape])
            inherited = self.inherited(facts, self._catalog.queue_of(facts.shape))
            interval = self._catalog.interval_ms
            return Standing((tx.now - facts.rank) / interval, inherited)

        return await self.store.read(read)

    def inherited(self, facts: JobFacts, queue: str) -> float:
        """By how many levels those that wait for an open job lift it."""
        if facts.state:
            return 0.0
        total = level(self._catalog.weight(queue), facts.base, facts.adjustment)
        interval = self._catalog.interval_ms
        return levels_gained(rank(facts.age_from, total, interval), facts.rank, interval)

    async def outlooks(self, tx: ReadTx, views: Sequence[JobView]) -> dict[int, Outlook]:
        """What is expected of these jobs, within a read."""
        facts = [view.record.facts for view in views]
        await self._catalog.know(tx, [fact.shape for fact in facts])
        expected = await Forecaster(tx, self._catalog, self._crowd).forecasts(views)
        known = await summaries(tx, sorted({fact.shape for fact in facts}))
        used = await tx.statistics.usage([fact.id for fact in facts])
        return {
            fact.id: Outlook(
                tx.now,
                expected.get(fact.id, Forecast()),
                known.get(fact.shape),
                used[fact.id].peak_memory if fact.id in used else None,
                self.inherited(fact, self._catalog.queue_of(fact.shape)),
            )
            for fact in facts
        }

    async def statistics(self, shapes: Sequence[int]) -> dict[int, Summary]:
        """What completed jobs of these shapes took; shapes without any are absent."""
        return await self.store.read(lambda tx: summaries(tx, shapes))

    async def cancel(
        self, jobs: Sequence[int], reason: str = "Canceled", actor: str | None = None
    ) -> list[Canceled]:
        """Cancel jobs; the answer comes when their dependents have been dealt with."""
        for job in jobs:
            check_id("job", job)
        check_text("reason", reason)
        check_text("actor", actor)
        canceled = await self.run(lambda work: cancel(work, jobs, reason, actor))
        await self.settled()
        return canceled

    async def retry(
        self, job: int, actor: str | None = None, not_before: int | None = None
    ) -> supersede.Superseded:
        """Supersede an ended job by a new one, which may start at `not_before` (ms)."""
        check_id("job", job)
        check_text("actor", actor)
        await self.settled()  # the end of this very job may still be told to its dependents
        superseded = await self.run(lambda work: retry_one(work, job, actor, not_before))
        await self.settled()
        return superseded

    async def unblock(
        self, job: int, accept: bool = True, reason: str = "Rejected", actor: str | None = None
    ) -> unblock.Unblocked:
        """Meet a job's manual condition, or abort it."""
        check_id("job", job)
        check_text("reason", reason)
        check_text("actor", actor)
        done = await self.run(lambda work: unblock.unblock(work, job, accept, reason, actor))
        await self.settled()
        return done

    async def adjust_priority(
        self, job: int, adjustment: int, actor: str | None = None
    ) -> priority.Adjusted:
        """Set a job's priority adjustment."""
        check_id("job", job)
        check_whole("adjustment", adjustment)
        check_text("actor", actor)
        adjusted = await self.run(lambda work: priority.adjust(work, job, adjustment, actor))
        await self.settled()
        return adjusted
