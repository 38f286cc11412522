# Written by `make blocking-client`: change the asynchronous client instead.
"""`client.workers`, `client.queues` and their like, for blocking code."""

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.client.blocking.base import InThread
from windlass.client.resources import (
    AsyncPools,
    AsyncQueues,
    AsyncSchedules,
    AsyncTemplates,
    AsyncTokens,
    AsyncWorkers,
)
from windlass.domain.explain.explanation import WorkerExplanation
from windlass.messages.access import TokenCreated, TokenInfo
from windlass.messages.pools import CostList, Plan, PoolApplied, PoolInfo
from windlass.messages.schedules import Schedule, SchedulePut, ScheduleRun, Template, TemplatePut
from windlass.messages.workers import QueueInfo, WorkerInfo


class Workers(InThread[AsyncWorkers]):
    """The workers; each is given by its name or id."""

    def list(self) -> list[WorkerInfo]:
        """Returns all workers."""
        return self._client.run(self._async.list())

    def show(self, worker: int | str) -> WorkerInfo:
        """Returns one worker; raises `NotFound`."""
        return self._client.run(self._async.show(worker))

    def explain(self, worker: int | str) -> WorkerExplanation:
        """Returns why a worker is idle."""
        return self._client.run(self._async.explain(worker))

    def approve(self, worker: int | str) -> bool:
        """Approves a new worker, so that it gets jobs; returns whether that was new."""
        return self._client.run(self._async.approve(worker))

    def drain(self, worker: int | str) -> bool:
        """Gives a worker no new jobs; running ones finish."""
        return self._client.run(self._async.drain(worker))

    def enable(self, worker: int | str) -> bool:
        """Gives jobs to a drained or disabled worker again."""
        return self._client.run(self._async.enable(worker))

    def disable(self, worker: int | str) -> bool:
        """Takes a worker out of service."""
        return self._client.run(self._async.disable(worker))

    def set(self, worker: int | str, entries: Mapping[str, Any]) -> bool:
        """Sets entries of the metadata that operators decide; None removes one."""
        return self._client.run(self._async.set(worker, entries))

    def remove(self, worker: int | str, force: bool = False) -> bool:
        """Removes a worker; with `force` also a busy one, whose jobs count as lost."""
        return self._client.run(self._async.remove(worker, force))


class Queues(InThread[AsyncQueues]):
    """The queues, by name."""

    def list(self) -> list[QueueInfo]:
        """Returns the queues that have jobs or settings."""
        return self._client.run(self._async.list())

    def show(self, queue: str) -> QueueInfo:
        """Returns one queue; raises `NotFound`."""
        return self._client.run(self._async.show(queue))

    def pause(self, queue: str) -> bool:
        """Pauses a queue: workers get no more jobs from it. Returns whether that was new."""
        return self._client.run(self._async.pause(queue))

    def resume(self, queue: str) -> bool:
        """Resumes a queue; returns whether that was new."""
        return self._client.run(self._async.resume(queue))

    def limit(self, queue: str, **limits: Any) -> bool:
        """Sets `max_running`, `max_per_worker` (0: any number), `preempts` or `isolation`.

        Or `timeout`, for jobs without their own: seconds, "6h", "none" or "default".
        """
        return self._client.run(self._async.limit(queue, **limits))


class Templates(InThread[AsyncTemplates]):
    """The templates of workflows. The default namespace is the token's own."""

    def list(self, namespace: str | None = None) -> list[Template]:
        """Returns all templates that the token sees."""
        return self._client.run(self._async.list(namespace))

    def show(self, name: str, version: int = 0, namespace: str | None = None) -> Template:
        """Returns a template, in its newest version unless another is given."""
        return self._client.run(self._async.show(name, version, namespace))

    def put(self, name: str, body: Mapping[str, Any], namespace: str | None = None) -> TemplatePut:
        """Creates a template, or a new version of it; `body` is what a workflow file says."""
        return self._client.run(self._async.put(name, body, namespace))

    def remove(self, name: str, namespace: str | None = None) -> bool:
        """Removes a template; returns whether there was one."""
        return self._client.run(self._async.remove(name, namespace))


class Schedules(InThread[AsyncSchedules]):
    """The schedules. The default namespace is the token's own."""

    def list(self, namespace: str | None = None) -> list[Schedule]:
        """Returns all schedules that the token sees."""
        return self._client.run(self._async.list(namespace))

    def show(self, name: str, namespace: str | None = None) -> Schedule:
        """Returns a schedule with its last runs."""
        return self._client.run(self._async.show(name, namespace))

    def put(
        self, name: str, cron: str | None = None, namespace: str | None = None, **options: Any
    ) -> SchedulePut:
        """Creates or replaces a schedule: put("beat", every="90m", template="beat").

        It has a cron line or an interval, `every`. Other `options` are `template` with
        `parameters`, or `jobs`; and `zone`, `overlap`, `catch_up`, `catch_up_limit`, `paused`,
        `priority`.
        """
        return self._client.run(self._async.put(name, cron, namespace, **options))

    def pause(self, name: str, namespace: str | None = None) -> bool:
        """Pauses a schedule; returns whether that was new."""
        return self._client.run(self._async.pause(name, namespace))

    def resume(self, name: str, namespace: str | None = None) -> bool:
        """Resumes a schedule; returns whether that was new."""
        return self._client.run(self._async.resume(name, namespace))

    def run(self, name: str, namespace: str | None = None) -> ScheduleRun:
        """Starts a run now."""
        return self._client.run(self._async.run(name, namespace))

    def remove(self, name: str, namespace: str | None = None) -> bool:
        """Removes a schedule; returns whether there was one."""
        return self._client.run(self._async.remove(name, namespace))


class Pools(InThread[AsyncPools]):
    """Applies, shows, plans and deletes pools."""

    def list(self) -> list[PoolInfo]:
        """Returns every pool with its workers."""
        return self._client.run(self._async.list())

    def show(self, name: str) -> PoolInfo:
        """Returns one pool."""
        return self._client.run(self._async.show(name))

    def apply(self, name: str, description: Mapping[str, object]) -> PoolApplied:
        """Creates or changes a pool."""
        return self._client.run(self._async.apply(name, description))

    def delete(self, name: str) -> bool:
        """Deletes a pool once its workers have drained; returns whether that was new."""
        return self._client.run(self._async.delete(name))

    def plan(self, workers: int | None = None, target: str | None = None) -> Plan:
        """Returns what the pools would do now, or with other worker counts or target latencies."""
        return self._client.run(self._async.plan(workers, target))

    def costs(self, month: str | None = None) -> CostList:
        """Returns what a month such as 2026-11 has cost; by default the current one."""
        return self._client.run(self._async.costs(month))


class Tokens(InThread[AsyncTokens]):
    """The tokens within the caller's namespaces; each is given by its name or id."""

    def list(self) -> list[TokenInfo]:
        """Returns all tokens and sessions, without their secrets."""
        return self._client.run(self._async.list())

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
        return self._client.run(
            self._async.create(name, role, namespaces=namespaces, expires=expires)
        )

    def rotate(
        self, token: int | str, *, grace: float | str = 0, expires: float | str | None = None
    ) -> TokenCreated:
        """Replaces a token by a new one; the old one is valid for `grace` more."""
        return self._client.run(self._async.rotate(token, grace=grace, expires=expires))

    def revoke(self, token: int | str) -> bool:
        """Revokes a token, or ends a session; returns whether that was new."""
        return self._client.run(self._async.revoke(token))
