"""Routes about queues, and the shares of namespaces."""

from collections.abc import Mapping
from typing import Any

from litestar import Controller, Request, get, post
from litestar.params import FromPath, JSONBody

from windlass.domain.access.roles import Role
from windlass.domain.job.job import check_name
from windlass.domain.lifecycle.rank import queue_weight
from windlass.domain.rows.records import LimitRow, QueueRow
from windlass.engine.fleet.queues import QueueLimits
from windlass.server.guard import identity_of
from windlass.server.services import UseServices
from windlass.wire.workers import (
    Changed,
    NamespaceInfo,
    NamespaceList,
    QueueInfo,
    QueueLimitsRequest,
    QueueList,
    WeightRequest,
)

Ask = Request[Any, Any, Any]


class QueueRoutes(Controller):
    """Look at, pause, resume and limit queues."""

    path = "/api/v1/queues"
    tags = ("queues",)

    @get("/", opt={"role": Role.VIEWER})
    async def list_queues(self, services: UseServices) -> QueueList:
        """All queues that have jobs or settings."""
        rows = await services.engine.store.read(lambda tx: tx.catalog.queues())
        depths = (await services.engine.metrics()).queue_depth
        known = {row.name: row for row in rows}
        counted = [row.limit for row in rows if row.max_running]
        limits = await services.engine.store.read(lambda tx: tx.limits.read(counted))
        return QueueList(
            [
                _info(known.get(name, QueueRow(name, queue_weight(name), 0)), limits, depth)
                for name in sorted({*known, *depths})
                for depth in (depths.get(name, 0),)
            ]
        )

    @post("/{name:str}/pause", opt={"role": Role.OPERATOR}, status_code=200)
    async def pause(self, request: Ask, name: FromPath[str], services: UseServices) -> Changed:
        """Stop giving out jobs of a queue."""
        check_name("queue", name)
        return Changed((await services.engine.pause(name, identity_of(request).name)).applied)

    @post("/{name:str}/resume", opt={"role": Role.OPERATOR}, status_code=200)
    async def resume(self, request: Ask, name: FromPath[str], services: UseServices) -> Changed:
        """Give out jobs of a queue again."""
        check_name("queue", name)
        return Changed((await services.engine.resume(name, identity_of(request).name)).applied)

    @post("/{name:str}/limits", opt={"role": Role.OPERATOR}, status_code=200)
    async def limit(
        self,
        request: Ask,
        name: FromPath[str],
        data: JSONBody[QueueLimitsRequest],
        services: UseServices,
    ) -> Changed:
        """Set how many jobs of a queue may run, in all and on one worker."""
        check_name("queue", name)
        limits = QueueLimits(data.max_running, data.max_per_worker, data.preempts)
        actor = identity_of(request).name
        return Changed((await services.engine.set_queue_limits(name, limits, actor)).applied)


def _info(row: QueueRow, limits: Mapping[int, LimitRow], depth: int) -> QueueInfo:
    counted = limits.get(row.limit) if row.max_running else None
    return QueueInfo(
        row.name, row.weight, bool(row.paused), depth, row.max_running, row.max_per_worker,
        bool(row.preempts), None if counted is None else counted.leased,
    )  # fmt: skip


class NamespaceRoutes(Controller):
    """What share of the fleet namespaces have, where shares are on."""

    path = "/api/v1/namespaces"
    tags = ("queues",)

    @get("/weights", opt={"role": Role.OPERATOR})
    async def list_namespaces(self, services: UseServices) -> NamespaceList:
        """Namespaces whose weight was set; that of all others is 1."""
        weights = await services.engine.store.read(lambda tx: tx.placement.namespace_weights())
        return NamespaceList([NamespaceInfo(*pair) for pair in weights.items()])

    @post("/{name:str}/weight", opt={"role": Role.OPERATOR}, status_code=200)
    async def set_weight(
        self,
        request: Ask,
        name: FromPath[str],
        data: JSONBody[WeightRequest],
        services: UseServices,
    ) -> Changed:
        """Set the weight of a namespace."""
        check_name("namespace", name)
        actor = identity_of(request).name
        done = await services.engine.set_namespace_weight(name, data.weight, actor)
        return Changed(done)
