"""Workers, queues and events of an embedded engine, which the first call starts."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from windlass.api.events import event_filter, moment_since
from windlass.api.queries import Queries
from windlass.api.render import show_event
from windlass.client.resources.fleet import WorkerAction
from windlass.client.service import find_worker
from windlass.domain.access.rights import Identity
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import Event
from windlass.domain.values.errors import UnknownName
from windlass.domain.values.names import check_name, did_you_mean
from windlass.engine.engine import Engine
from windlass.engine.fleet.queues import QueueLimits
from windlass.engine.history.event_lines import WorkerNames
from windlass.engine.history.read_events import (
    EventFilter,
    number_before,
    number_before_last,
    read_new,
)
from windlass.ports.loop_time import pass_time
from windlass.wire.system import EventInfo
from windlass.wire.workers import QueueInfo, QueueLimitsRequest, WorkerInfo

IDLE_SECONDS: Final = 0.25
FILTERS: Final = ("after", "follow", "kind", "state", "job", "worker", "since", "last")
_STATUS: Final = {
    "drain": WorkerStatus.DRAINING,
    "enable": WorkerStatus.ONLINE,
    "disable": WorkerStatus.DISABLED,
    "approve": WorkerStatus.ONLINE,
}


class OpenEngine(NamedTuple):
    """An engine that was started, and who asks it."""

    engine: Engine
    queries: Queries
    who: Identity


class EmbeddedFleet:
    """Implements the client's `Fleet`."""

    def __init__(self, opened: Callable[[], Awaitable[OpenEngine]]) -> None:
        self._opened = opened

    async def workers(self) -> list[WorkerInfo]:
        now = await self._opened()
        return await now.queries.workers(now.who)

    async def act(self, worker: int, action: WorkerAction) -> bool:
        now = await self._opened()
        status, actor = _STATUS[action], now.who.name
        reason = None if status is WorkerStatus.ONLINE else f"{action} by {actor}"
        return await now.engine.workers.set_status(worker, status, reason, actor)

    async def change(self, worker: int, entries: Mapping[str, Any]) -> bool:
        now = await self._opened()
        return await now.engine.workers.change_metadata(worker, dict(entries), now.who.name)

    async def remove(self, worker: int, force: bool) -> bool:
        now = await self._opened()
        return await now.engine.workers.remove(worker, force, now.who.name)

    async def queues(self) -> list[QueueInfo]:
        now = await self._opened()
        return await now.queries.queue_list(now.who)

    async def pause(self, queue: str, paused: bool) -> bool:
        now = await self._opened()
        check_name("queue", queue)
        queues = now.engine.queues
        change = queues.pause if paused else queues.resume
        return (await change(queue, now.who.name)).applied

    async def limit(self, queue: str, limits: QueueLimitsRequest) -> bool:
        now = await self._opened()
        check_name("queue", queue)
        wanted = QueueLimits(*msgspec.structs.astuple(limits))
        return (await now.engine.queues.set_limits(queue, wanted, now.who.name)).applied

    async def events(self, query: Mapping[str, Any]) -> AsyncIterator[EventInfo]:
        now = await self._opened()
        for name in query:
            if name not in FILTERS:
                listed = f"one of {', '.join(FILTERS)}"
                raise UnknownName("query parameter", name, listed, did_you_mean(name, FILTERS))
        store, names = now.engine.store, WorkerNames(now.engine.store)
        wanted = await _filter(now, query)
        after = int(query.get("after") or 0)

        async def select(events: Sequence[Event]) -> Sequence[Event]:
            return [event for event in events if wanted.takes(event)]

        if query.get("since") is not None:
            at = moment_since(str(query["since"]), await now.engine.now())
            after = max(after, await number_before(store, at))
        if query.get("last") is not None:
            after = await number_before_last(store, select, int(query["last"]), after)
        while True:
            events, after = await read_new(store, after)
            shown = await select(events)
            await names.learn(shown)
            for event in shown:
                yield show_event(event, names.known)
            if not events and not query.get("follow"):
                return
            if not events:
                await pass_time(IDLE_SECONDS)


async def _filter(now: OpenEngine, query: Mapping[str, Any]) -> EventFilter:
    kinds, states = (_listed(query.get(name)) for name in ("kind", "state"))
    wanted = event_filter(kinds, states, query.get("job"))
    if query.get("worker") is None:
        return wanted
    workers = await now.queries.workers(now.who)
    number = find_worker(str(query["worker"]), [(one.id, one.name) for one in workers])
    return EventFilter(kinds=wanted.kinds, states=wanted.states, job=wanted.job, worker=number)


def _listed(value: Any) -> list[str] | None:
    return [value] if isinstance(value, str) else value
