"""`client.workers`, `client.queues` and their like, for async code.

`make blocking-client` writes `windlass.client.blocking.resources` from it, for blocking code.
"""

from collections.abc import Mapping
from typing import Any

from windlass.client.resources.fleet import WorkerAction
from windlass.client.service import Service
from windlass.domain.explain.explanation import WorkerExplanation
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import NotFound
from windlass.messages.schedules import (
    Schedule,
    SchedulePut,
    ScheduleRequest,
    ScheduleRun,
    Template,
    TemplatePut,
    TemplateRequest,
)
from windlass.messages.workers import QueueInfo, QueueLimits, WorkerInfo


class AsyncWorkers:
    """The workers; each is given by its name or id."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def list(self) -> list[WorkerInfo]:
        """Returns all workers."""
        return await self._service.fleet.workers()

    async def show(self, worker: int | str) -> WorkerInfo:
        """Returns one worker; raises `NotFound`."""
        return await self._service.fleet.worker(str(worker))

    async def explain(self, worker: int | str) -> WorkerExplanation:
        """Returns why a worker is idle."""
        return await self._service.explain_worker(str(worker))

    async def approve(self, worker: int | str) -> bool:
        """Approves a new worker, so that it gets jobs; returns whether that was new."""
        return await self._act(worker, "approve")

    async def drain(self, worker: int | str) -> bool:
        """Gives a worker no new jobs; running ones finish."""
        return await self._act(worker, "drain")

    async def enable(self, worker: int | str) -> bool:
        """Gives jobs to a drained or disabled worker again."""
        return await self._act(worker, "enable")

    async def disable(self, worker: int | str) -> bool:
        """Takes a worker out of service."""
        return await self._act(worker, "disable")

    async def set(self, worker: int | str, entries: Mapping[str, Any]) -> bool:
        """Sets entries of the metadata that operators decide; None removes one."""
        return await self._service.fleet.change(str(worker), entries)

    async def remove(self, worker: int | str, force: bool = False) -> bool:
        """Removes a worker; with `force` also a busy one, whose jobs count as lost."""
        return await self._service.fleet.remove(str(worker), force)

    async def _act(self, worker: int | str, action: WorkerAction) -> bool:
        return await self._service.fleet.act(str(worker), action)


class AsyncQueues:
    """The queues, by name."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def list(self) -> list[QueueInfo]:
        """Returns the queues that have jobs or settings."""
        return await self._service.fleet.queues()

    async def show(self, queue: str) -> QueueInfo:
        """Returns one queue; raises `NotFound`."""
        for found in await self.list():
            if found.name == queue:
                return found
        raise NotFound("queue", queue)

    async def pause(self, queue: str) -> bool:
        """Pauses a queue: workers get no more jobs from it. Returns whether that was new."""
        return await self._service.fleet.pause(queue, True)

    async def resume(self, queue: str) -> bool:
        """Resumes a queue; returns whether that was new."""
        return await self._service.fleet.pause(queue, False)

    async def limit(self, queue: str, **limits: Any) -> bool:
        """Sets `max_running`, `max_per_worker` (0: any number), `preempts` or `isolation`.

        Or `timeout`, for jobs without their own: seconds, "6h", "none" or "default".
        """
        request: QueueLimits = convert(limits, QueueLimits, "limits")
        return await self._service.fleet.limit(queue, request)


class AsyncTemplates:
    """The templates of workflows. Without a namespace, the token's own is meant."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def list(self, namespace: str | None = None) -> list[Template]:
        """Returns all templates that the token sees."""
        return await self._service.planning.templates(namespace)

    async def show(self, name: str, version: int = 0, namespace: str | None = None) -> Template:
        """Returns a template, in its newest version unless another is given."""
        return await self._service.planning.template(name, version, namespace)

    async def put(
        self, name: str, body: Mapping[str, Any], namespace: str | None = None
    ) -> TemplatePut:
        """Creates a template, or a new version of it; `body` is what a workflow file says."""
        request = TemplateRequest(body=dict(body))
        return await self._service.planning.put_template(name, request, namespace)

    async def remove(self, name: str, namespace: str | None = None) -> bool:
        """Removes a template; returns whether there was one."""
        return await self._service.planning.remove_template(name, namespace)


class AsyncSchedules:
    """The schedules. Without a namespace, the token's own is meant."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def list(self, namespace: str | None = None) -> list[Schedule]:
        """Returns all schedules that the token sees."""
        return await self._service.planning.schedules(namespace)

    async def show(self, name: str, namespace: str | None = None) -> Schedule:
        """Returns a schedule with its last runs."""
        return await self._service.planning.schedule(name, namespace)

    async def put(
        self, name: str, cron: str | None = None, namespace: str | None = None, **options: Any
    ) -> SchedulePut:
        """Creates or replaces a schedule: put("beat", every="90m", template="beat").

        It has a cron line or an interval, `every`. Other `options` are `template` with
        `parameters`, or `jobs`; and `zone`, `overlap`, `catch_up`, `catch_up_limit`, `paused`,
        `priority`.
        """
        given = {"cron": cron, **options}
        request: ScheduleRequest = convert(given, ScheduleRequest, "schedule")
        return await self._service.planning.put_schedule(name, request, namespace)

    async def pause(self, name: str, namespace: str | None = None) -> bool:
        """Pauses a schedule; returns whether that was new."""
        return await self._service.planning.pause_schedule(name, True, namespace)

    async def resume(self, name: str, namespace: str | None = None) -> bool:
        """Resumes a schedule; returns whether that was new."""
        return await self._service.planning.pause_schedule(name, False, namespace)

    async def run(self, name: str, namespace: str | None = None) -> ScheduleRun:
        """Starts a run now."""
        return await self._service.planning.run_schedule(name, namespace)

    async def remove(self, name: str, namespace: str | None = None) -> bool:
        """Removes a schedule; returns whether there was one."""
        return await self._service.planning.remove_schedule(name, namespace)
