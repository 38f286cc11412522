"""`engine.queues`: commands about queues, and the shares of namespaces in them."""

from windlass.domain.values.names import check_name
from windlass.engine.after_commit import AfterCommit
from windlass.engine.fleet import queues
from windlass.engine.transaction.arguments import check_text
from windlass.engine.transaction.group_commit import RunStep
from windlass.messages.workers import QueueLimits


class Queues:
    """Pauses, resumes and limits queues."""

    def __init__(self, *, run: RunStep, after_commit: AfterCommit) -> None:
        self._run = run
        self._after_commit = after_commit

    async def pause(self, queue: str, actor: str | None = None) -> queues.Paused:
        """Stops assigning jobs of a queue."""
        return await self._set_paused(queue, True, actor)

    async def resume(self, queue: str, actor: str | None = None) -> queues.Paused:
        """Resumes assigning jobs of a queue."""
        return await self._set_paused(queue, False, actor)

    async def set_limits(
        self, queue: str, limits: QueueLimits, actor: str | None = None
    ) -> queues.Limited:
        """Sets how many jobs of a queue may run, in total and per worker."""
        check_name("queue", queue)
        check_text("actor", actor)
        queues.check_limits(limits)
        done = await self._run(lambda work: queues.set_limits(work, queue, limits, actor))
        await self._after_commit.refresh()
        return done

    async def set_namespace_weight(
        self, namespace: str, weight: int, actor: str | None = None
    ) -> bool:
        """Sets a namespace's share of the running jobs, where `fair_share` is on."""
        check_name("namespace", namespace)
        check_text("actor", actor)
        queues.check_weight(weight)
        return await self._run(
            lambda work: queues.set_namespace_weight(work, namespace, weight, actor)
        )

    async def _set_paused(self, queue: str, paused: bool, actor: str | None) -> queues.Paused:
        check_name("queue", queue)
        check_text("actor", actor)
        done = await self._run(lambda work: queues.set_paused(work, queue, paused, actor))
        await self._after_commit.refresh()
        return done
