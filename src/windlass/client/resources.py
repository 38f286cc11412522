"""`client.workers`, `client.queues` and their like, for async code.

`make blocking-client` writes `windlass.client.blocking.resources` from it, for blocking code.
"""

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from windlass.client.service import Service
from windlass.domain.explain.explanation import WorkerExplanation
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.messages.access import (
    RotateRequest,
    TokenCreated,
    TokenInfo,
    TokenList,
    TokenRequest,
)
from windlass.messages.pools import CostList, Plan, PoolApplied, PoolInfo, PoolList
from windlass.messages.schedules import (
    Schedule,
    ScheduleList,
    SchedulePut,
    ScheduleRequest,
    ScheduleRun,
    Template,
    TemplateList,
    TemplatePut,
    TemplateRequest,
)
from windlass.messages.workers import (
    Changed,
    QueueInfo,
    QueueLimits,
    QueueList,
    WorkerInfo,
    WorkerList,
)


class _Resource:
    """Operations whose paths begin with one word; what they name is quoted."""

    _path: str

    def __init__(self, service: Service) -> None:
        self._service = service
        self._ask = service.ask

    def _at(self, name: int | str, verb: str = "") -> str:
        return f"{self._path}/{quote(str(name), safe='')}{verb and '/'}{verb}"

    async def _changed(self, method: str, path: str, body: Any = None, **query: Any) -> bool:
        """Changes something; returns whether that was new."""
        return (await self._ask(method, path, Changed, body, **query)).applied


class AsyncWorkers(_Resource):
    """The workers; each is given by its name or id."""

    _path = "/api/v1/workers"

    async def list(self) -> list[WorkerInfo]:
        """Returns all workers."""
        return (await self._ask("GET", self._path, WorkerList)).workers

    async def show(self, worker: int | str) -> WorkerInfo:
        """Returns one worker; raises `NotFound`."""
        return await self._ask("GET", self._at(worker), WorkerInfo)

    async def explain(self, worker: int | str) -> WorkerExplanation:
        """Returns why a worker is idle."""
        return await self._ask("GET", self._at(worker, "explain"), WorkerExplanation)

    async def approve(self, worker: int | str) -> bool:
        """Approves a new worker, so that it gets jobs; returns whether that was new."""
        return await self._changed("POST", self._at(worker, "approve"))

    async def drain(self, worker: int | str) -> bool:
        """Gives a worker no new jobs; running ones finish."""
        return await self._changed("POST", self._at(worker, "drain"))

    async def enable(self, worker: int | str) -> bool:
        """Gives jobs to a drained or disabled worker again."""
        return await self._changed("POST", self._at(worker, "enable"))

    async def disable(self, worker: int | str) -> bool:
        """Takes a worker out of service."""
        return await self._changed("POST", self._at(worker, "disable"))

    async def set(self, worker: int | str, entries: Mapping[str, Any]) -> bool:
        """Sets entries of the metadata that operators decide; None removes one."""
        return await self._changed("PATCH", self._at(worker, "static"), dict(entries))

    async def remove(self, worker: int | str, force: bool = False) -> bool:
        """Removes a worker; with `force` also a busy one, whose jobs count as lost."""
        return await self._changed("DELETE", self._at(worker), force=force or None)


class AsyncQueues(_Resource):
    """The queues, by name."""

    _path = "/api/v1/queues"

    async def list(self) -> list[QueueInfo]:
        """Returns the queues that have jobs or settings."""
        return (await self._ask("GET", self._path, QueueList)).queues

    async def show(self, queue: str) -> QueueInfo:
        """Returns one queue; raises `NotFound`."""
        for found in await self.list():
            if found.name == queue:
                return found
        raise NotFound("queue", queue)

    async def pause(self, queue: str) -> bool:
        """Pauses a queue: workers get no more jobs from it. Returns whether that was new."""
        return await self._changed("POST", self._at(queue, "pause"))

    async def resume(self, queue: str) -> bool:
        """Resumes a queue; returns whether that was new."""
        return await self._changed("POST", self._at(queue, "resume"))

    async def limit(self, queue: str, **limits: Any) -> bool:
        """Sets `max_running`, `max_per_worker` (0: any number), `preempts` or `isolation`.

        Or `timeout`, for jobs without their own: seconds, "6h", "none" or "default".
        """
        request: QueueLimits = convert(limits, QueueLimits, "limits")
        return await self._changed("POST", self._at(queue, "limits"), request)


class AsyncTemplates(_Resource):
    """The templates of workflows. The default namespace is the token's own."""

    _path = "/api/v1/templates"

    async def list(self, namespace: str | None = None) -> list[Template]:
        """Returns all templates that the token sees."""
        return (await self._ask("GET", self._path, TemplateList, namespace=namespace)).templates

    async def show(self, name: str, version: int = 0, namespace: str | None = None) -> Template:
        """Returns a template, in its newest version unless another is given."""
        return await self._ask(
            "GET", self._at(name), Template, namespace=namespace, version=version or None
        )

    async def put(
        self, name: str, body: Mapping[str, Any], namespace: str | None = None
    ) -> TemplatePut:
        """Creates a template, or a new version of it; `body` is what a workflow file says."""
        request = TemplateRequest(body=dict(body))
        return await self._ask("PUT", self._at(name), TemplatePut, request, namespace=namespace)

    async def remove(self, name: str, namespace: str | None = None) -> bool:
        """Removes a template; returns whether there was one."""
        return await self._changed("DELETE", self._at(name), namespace=namespace)


class AsyncSchedules(_Resource):
    """The schedules. The default namespace is the token's own."""

    _path = "/api/v1/schedules"

    async def list(self, namespace: str | None = None) -> list[Schedule]:
        """Returns all schedules that the token sees."""
        return (await self._ask("GET", self._path, ScheduleList, namespace=namespace)).schedules

    async def show(self, name: str, namespace: str | None = None) -> Schedule:
        """Returns a schedule with its last runs."""
        return await self._ask("GET", self._at(name), Schedule, namespace=namespace)

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
        return await self._ask("PUT", self._at(name), SchedulePut, request, namespace=namespace)

    async def pause(self, name: str, namespace: str | None = None) -> bool:
        """Pauses a schedule; returns whether that was new."""
        return await self._changed("POST", self._at(name, "pause"), namespace=namespace)

    async def resume(self, name: str, namespace: str | None = None) -> bool:
        """Resumes a schedule; returns whether that was new."""
        return await self._changed("POST", self._at(name, "resume"), namespace=namespace)

    async def run(self, name: str, namespace: str | None = None) -> ScheduleRun:
        """Starts a run now."""
        return await self._ask("POST", self._at(name, "run"), ScheduleRun, namespace=namespace)

    async def remove(self, name: str, namespace: str | None = None) -> bool:
        """Removes a schedule; returns whether there was one."""
        return await self._changed("DELETE", self._at(name), namespace=namespace)


class AsyncPools(_Resource):
    """Applies, shows, plans and deletes pools."""

    _path = "/api/v1/pools"

    async def list(self) -> list[PoolInfo]:
        """Returns every pool with its workers."""
        return (await self._ask("GET", self._path, PoolList)).pools

    async def show(self, name: str) -> PoolInfo:
        """Returns one pool."""
        return await self._ask("GET", self._at(name), PoolInfo)

    async def apply(self, name: str, description: Mapping[str, object]) -> PoolApplied:
        """Creates or changes a pool."""
        return await self._ask("PUT", self._at(name), PoolApplied, dict(description))

    async def delete(self, name: str) -> bool:
        """Deletes a pool once its workers have drained; returns whether that was new."""
        return await self._changed("DELETE", self._at(name))

    async def plan(self, workers: int | None = None, target: str | None = None) -> Plan:
        """Returns what the pools would do now, or with other worker counts or target latencies."""
        return await self._ask("GET", self._at("plan"), Plan, workers=workers, target=target)

    async def costs(self, month: str | None = None) -> CostList:
        """Returns what a month such as 2026-11 has cost; by default the current one."""
        return await self._ask("GET", self._at("costs"), CostList, month=month)


class AsyncTokens(_Resource):
    """The tokens within the caller's namespaces; each is given by its name or id."""

    _path = "/api/v1/tokens"

    async def list(self) -> list[TokenInfo]:
        """Returns all tokens and sessions, without their secrets."""
        return (await self._ask("GET", self._path, TokenList)).tokens

    async def create(
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
        request = TokenRequest(name=name, role=role, namespaces=tuple(namespaces), expires=expires)
        return await self._ask("POST", self._path, TokenCreated, request)

    async def rotate(
        self, token: int | str, *, grace: float | str = 0, expires: float | str | None = None
    ) -> TokenCreated:
        """Replaces a token by a new one; the old one is valid for `grace` more."""
        path = self._at(await self._number(token), "rotate")
        return await self._ask(
            "POST", path, TokenCreated, RotateRequest(grace=grace, expires=expires)
        )

    async def revoke(self, token: int | str) -> bool:
        """Revokes a token, or ends a session; returns whether that was new."""
        return await self._changed("DELETE", self._at(await self._number(token)))

    async def _number(self, token: int | str) -> int:
        """Returns a token's id; of several with this name, that of the valid one."""
        if isinstance(token, int):
            return token
        found = [one for one in await self.list() if one.name == token]
        if not found:
            raise NotFound("token", token)
        valid = [one for one in found if one.revoked_at is None]
        if len({one.namespaces for one in valid}) > 1:
            known = ", ".join(f"{one.id} ({', '.join(one.namespaces)})" for one in valid)
            raise InvalidInput("token", f"an id, since several have this name: {known}", token)
        return (valid or found)[-1].id
