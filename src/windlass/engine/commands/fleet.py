"""The engine's commands about queues, workers and namespaces."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from windlass.domain.job.job import check_name
from windlass.domain.matching.workers import WorkerStatus
from windlass.engine.claim.wakeups import WakeUps
from windlass.engine.fleet import queues, workers
from windlass.engine.transaction.arguments import check_id, check_metadata, check_text
from windlass.engine.transaction.unit_of_work import Work

T = TypeVar("T")


class FleetCommands(ABC):
    """A part of the engine."""

    wakeups: WakeUps
    told: dict[int, frozenset[tuple[int, int]]]  # worker → stops and drains it has heard of

    @abstractmethod
    async def run(self, step: Callable[[Work], Awaitable[T]]) -> T: ...

    @abstractmethod
    async def refresh(self) -> None: ...

    async def pause(self, queue: str, actor: str | None = None) -> queues.Paused:
        """Stop giving out jobs of a queue."""
        return await self._set_paused(queue, True, actor)

    async def resume(self, queue: str, actor: str | None = None) -> queues.Paused:
        """Give out jobs of a queue again."""
        return await self._set_paused(queue, False, actor)

    async def _set_paused(self, queue: str, paused: bool, actor: str | None) -> queues.Paused:
        check_name("queue", queue)
        check_text("actor", actor)
        done = await self.run(lambda work: queues.set_paused(work, queue, paused, actor))
        await self.refresh()
        return done

    async def enrol(self, enrolment: workers.Enrolment) -> workers.Enrolled:
        """Begin a new incarnation of a worker."""
        workers.check_enrolment(enrolment)
        check_metadata(enrolment.metadata)
        enrolled = await self.run(lambda work: workers.enrol(work, enrolment))
        self.told.pop(enrolled.worker, None)
        return enrolled

    async def leave(self, worker: int, incarnation: int) -> bool:
        """An incarnation of a worker ends by itself; whether that was news."""
        check_id("worker", worker)
        check_id("incarnation", incarnation)
        return await self.run(lambda work: workers.leave(work, worker, incarnation))

    async def set_worker_status(
        self,
        worker: int,
        status: WorkerStatus,
        reason: str | None = None,
        actor: str | None = None,
    ) -> bool:
        """Drain, enable or disable a worker."""
        check_id("worker", worker)
        check_text("reason", reason)
        check_text("actor", actor)
        return await self.run(lambda work: workers.set_status(work, worker, status, reason, actor))

    async def set_static_metadata(
        self, worker: int, static: Mapping[str, object], actor: str | None = None
    ) -> bool:
        """Set the metadata of a worker that operators decide."""
        check_id("worker", worker)
        check_metadata(static)
        check_text("actor", actor)
        done = await self.run(lambda work: workers.set_static(work, worker, static, actor))
        self.wakeups.end(worker)  # it waits for what its old metadata could run
        return done

    async def remove_worker(
        self, worker: int, force: bool = False, actor: str | None = None
    ) -> bool:
        """Forget a worker."""
        check_id("worker", worker)
        check_text("actor", actor)
        return await self.run(lambda work: workers.remove(work, worker, force, actor))

    async def set_queue_limits(
        self, queue: str, limits: queues.QueueLimits, actor: str | None = None
    ) -> queues.Limited:
        """Set how many jobs of a queue may run, in all and on one worker."""
        check_name("queue", queue)
        check_text("actor", actor)
        queues.check_limits(limits)
        done = await self.run(lambda work: queues.set_limits(work, queue, limits, actor))
        await self.refresh()
        return done

    async def set_namespace_weight(
        self, namespace: str, weight: int, actor: str | None = None
    ) -> bool:
        """Set a namespace's share of what runs, where shares are on."""
        check_name("namespace", namespace)
        check_text("actor", actor)
        queues.check_weight(weight)
        return await self.run(
            lambda work: queues.set_namespace_weight(work, namespace, weight, actor)
        )
