"""`client.workers`, `client.queues` and their like, for blocking code."""

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.client.blocking.handles import Runs
from windlass.client.resources.asynchronous import (
    AsyncQueues,
    AsyncSchedules,
    AsyncTemplates,
    AsyncWorkers,
)
from windlass.client.resources.pools import AsyncPools
from windlass.client.resources.tokens import AsyncTokens
from windlass.domain.explain.explanation import WorkerExplanation
from windlass.wire.access import TokenCreated, TokenInfo
from windlass.wire.pools import CostList, Plan, PoolApplied, PoolInfo
from windlass.wire.schedules import Schedule, SchedulePut, ScheduleRun, Template, TemplatePut
from windlass.wire.workers import QueueInfo, WorkerInfo


class Workers:
    """The workers; each is given by its name or id."""

    def __init__(self, client: Runs, workers: AsyncWorkers) -> None:
        self._run = client.run
        self._workers = workers

    def list(self) -> list[WorkerInfo]:
        """Returns all workers."""
        return self._run(self._workers.list())

    def show(self, worker: int | str) -> WorkerInfo:
        """Returns one worker; raises `NotFound`."""
        return self._run(self._workers.show(worker))

    def explain(self, worker: int | str) -> WorkerExplanation:
        """Returns why a worker is idle."""
        return self._run(self._workers.explain(worker))

    def approve(self, worker: int | str) -> bool:
        """Approves a new worker, so that it gets jobs; returns whether that was new."""
        return self._run(self._workers.approve(worker))

    def drain(self, worker: int | str) -> bool:
        """Gives a worker no new jobs; running ones finish."""
        return self._run(self._workers.drain(worker))

    def enable(self, worker: int | str) -> bool:
        """Gives jobs to a drained or disabled worker again."""
        return self._run(self._workers.enable(worker))

    def disable(self, worker: int | str) -> bool:
        """Takes a worker out of service."""
        return self._run(self._workers.disable(worker))

    def set(self, worker: int | str, entries: Mapping[str, Any]) -> bool:
        """Sets entries of the metadata that operators decide; None removes one."""
        return self._run(self._workers.set(worker, entries))

    def remove(self, worker: int | str, force: bool = False) -> bool:
        """Removes a worker; with `force` also a busy one, whose jobs count as lost."""
        return self._run(self._workers.remove(worker, force))


class Queues:
    """The queues, by name."""

    def __init__(self, client: Runs, queues: AsyncQueues) -> None:
        self._run = client.run
        self._queues = queues

    def list(self) -> list[QueueInfo]:
        """Returns the queues that have jobs or settings."""
        return self._run(self._queues.list())

    def show(self, queue: str) -> QueueInfo:
        """Returns one queue; raises `NotFound`."""
        return self._run(self._queues.show(queue))

    def pause(self, queue: str) -> bool:
        """Pauses a queue: workers get no more jobs from it. Returns whether that was new."""
        return self._run(self._queues.pause(queue))

    def resume(self, queue: str) -> bool:
        """Resumes a queue; returns whether that was new."""
        return self._run(self._queues.resume(queue))

    def limit(self, queue: str, **limits: Any) -> bool:
        """Sets `max_running`, `max_per_worker` (0: any number), `preempts` or `isolation`.

        Or `timeout`, for jobs without their own: seconds, "6h", "none" or "default".
        """
        return self._run(self._queues.limit(queue, **limits))


class Templates:
    """The templates of workflows. Without a namespace, the token's own is meant."""

    def __init__(self, client: Runs, templates: AsyncTemplates) -> None:
        self._run = client.run
        self._templates = templates

    def list(self, namespace: str | None = None) -> list[Template]:
        """Returns all templates that the token sees."""
        return self._run(self._templates.list(namespace))

    def show(self, name: str, version: int = 0, namespace: str | None = None) -> Template:
        """Returns a template, in its newest version unless another is given."""
        return self._run(self._templates.show(name, version, namespace))

    def put(self, name: str, body: Mapping[str, Any], namespace: str | None = None) -> TemplatePut:
        """Creates a template, or a new version of it; `body` is what a workflow file says."""
        return self._run(self._templates.put(name, body, namespace))

    def remove(self, name: str, namespace: str | None = None) -> bool:
        """Removes a template; returns whether there was one."""
        return self._run(self._templates.remove(name, namespace))


class Schedules:
    """The schedules. Without a namespace, the token's own is meant."""

    def __init__(self, client: Runs, schedules: AsyncSchedules) -> None:
        self._run = client.run
        self._schedules = schedules

    def list(self, namespace: str | None = None) -> list[Schedule]:
        """Returns all schedules that the token sees."""
        return self._run(self._schedules.list(namespace))

    def show(self, name: str, namespace: str | None = None) -> Schedule:
        """Returns a schedule with its last runs."""
        return self._run(self._schedules.show(name, namespace))

    def put(
        self, name: str, cron: str | None = None, namespace: str | None = None, **options: Any
    ) -> SchedulePut:
        """Creates or replaces a schedule; see `AsyncSchedules.put` for the options."""
        return self._run(self._schedules.put(name, cron, namespace, **options))

    def pause(self, name: str, namespace: str | None = None) -> bool:
        """Pauses a schedule; returns whether that was new."""
        return self._run(self._schedules.pause(name, namespace))

    def resume(self, name: str, namespace: str | None = None) -> bool:
        """Resumes a schedule; returns whether that was new."""
        return self._run(self._schedules.resume(name, namespace))

    def run(self, name: str, namespace: str | None = None) -> ScheduleRun:
        """Starts a run now."""
        return self._run(self._schedules.run(name, namespace))

    def remove(self, name: str, namespace: str | None = None) -> bool:
        """Removes a schedule; returns whether there was one."""
        return self._run(self._schedules.remove(name, namespace))


class Pools:
    """The pools of workers, which only servers have."""

    def __init__(self, client: Runs, pools: AsyncPools) -> None:
        self._run = client.run
        self._pools = pools

    def list(self) -> list[PoolInfo]:
        """Returns every pool with its workers."""
        return self._run(self._pools.list())

    def show(self, name: str) -> PoolInfo:
        """Returns one pool."""
        return self._run(self._pools.show(name))

    def apply(self, name: str, description: Mapping[str, object]) -> PoolApplied:
        """Creates or changes a pool."""
        return self._run(self._pools.apply(name, description))

    def delete(self, name: str) -> bool:
        """Deletes a pool once its workers have drained; returns whether that was new."""
        return self._run(self._pools.delete(name))

    def plan(self, workers: int | None = None, target: str | None = None) -> Plan:
        """Returns what the pools would do now, or with other worker counts or target latencies."""
        return self._run(self._pools.plan(workers, target))

    def costs(self, month: str | None = None) -> CostList:
        """Returns what a month such as 2026-11 has cost; by default the current one."""
        return self._run(self._pools.costs(month))


class Tokens:
    """The tokens within the caller's namespaces; each is given by its name or id."""

    def __init__(self, client: Runs, tokens: AsyncTokens) -> None:
        self._run = client.run
        self._tokens = tokens

    def list(self) -> list[TokenInfo]:
        """Returns all tokens and sessions, without their secrets."""
        return self._run(self._tokens.list())

    def create(
        self,
        name: str,
        role: str,
        *,
        namespaces: Sequence[str] = (),
        expires: float | str | None = None,
    ) -> TokenCreated:
        """Creates a token; `token` of the answer is its secret, which is shown only now.

        Without `namespaces` it is for all of them, and without `expires` the server's setting
        counts.
        """
        made = self._tokens.create(name, role, namespaces=namespaces, expires=expires)
        return self._run(made)

    def rotate(
        self, token: int | str, *, grace: float | str = 0, expires: float | str | None = None
    ) -> TokenCreated:
        """Replaces a token by a new one; the old one is valid for `grace` more."""
        return self._run(self._tokens.rotate(token, grace=grace, expires=expires))

    def revoke(self, token: int | str) -> bool:
        """Revokes a token, or ends a session; returns whether that was new."""
        return self._run(self._tokens.revoke(token))
