"""The engine's commands about single jobs."""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from windlass.engine import priority, supersede, unblock
from windlass.engine.cancel import Canceled, cancel
from windlass.engine.checks import check_id, check_text, check_whole
from windlass.engine.work import Work

T = TypeVar("T")


class JobCommands(ABC):
    """A part of the engine."""

    @abstractmethod
    async def run(self, step: Callable[[Work], Awaitable[T]]) -> T: ...

    @abstractmethod
    async def settled(self) -> None: ...

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
        superseded = await self.run(lambda work: supersede.retry(work, job, actor, not_before))
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
        return await self.run(lambda work: priority.adjust(work, job, adjustment, actor))
