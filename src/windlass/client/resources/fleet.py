"""Workers, queues and events, as clients ask for them."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, Protocol, TypeVar
from urllib.parse import quote

from windlass.client.reconnect import Reconnect
from windlass.client.resources.events import read_events
from windlass.client.transport import Transport
from windlass.wire.system import EventInfo
from windlass.wire.workers import (
    Changed,
    QueueInfo,
    QueueLimitsRequest,
    QueueList,
    WorkerInfo,
    WorkerList,
)

T = TypeVar("T")

WorkerAction = Literal["drain", "enable", "disable", "approve"]


class Fleet(Protocol):
    """Those who run jobs, and the queues they run them from."""

    async def workers(self) -> list[WorkerInfo]: ...

    async def act(self, worker: int, action: WorkerAction) -> bool:
        """Drains, enables, disables or approves a worker; returns whether that was new."""
        ...

    async def change(self, worker: int, entries: Mapping[str, Any]) -> bool:
        """Sets entries of the metadata that operators decide; None removes one."""
        ...

    async def remove(self, worker: int, force: bool) -> bool:
        """Removes a worker; with `force` also a busy one."""
        ...

    async def queues(self) -> list[QueueInfo]: ...

    async def pause(self, queue: str, paused: bool) -> bool:
        """Pauses or resumes a queue; returns whether that was new."""
        ...

    async def limit(self, queue: str, limits: QueueLimitsRequest) -> bool:
        """Limits the jobs of a queue; returns whether that was new."""
        ...

    def events(self, query: Mapping[str, Any]) -> AsyncIterator[EventInfo]:
        """Yields events that match the query of the route; with `follow` for ever."""
        ...


class HttpFleet:
    """Implements `Fleet` over HTTP."""

    def __init__(self, transport: Transport, reconnect: Reconnect) -> None:
        self._transport = transport
        self._reconnect = reconnect

    async def workers(self) -> list[WorkerInfo]:
        return (await self._call("GET", "workers", WorkerList)).workers

    async def act(self, worker: int, action: WorkerAction) -> bool:
        return (await self._call("POST", f"workers/{worker}/{action}", Changed)).applied

    async def change(self, worker: int, entries: Mapping[str, Any]) -> bool:
        path = f"workers/{worker}/static"
        return (await self._call("PATCH", path, Changed, dict(entries))).applied

    async def remove(self, worker: int, force: bool) -> bool:
        path = f"workers/{worker}"
        return (await self._call("DELETE", path, Changed, force=force or None)).applied

    async def queues(self) -> list[QueueInfo]:
        return (await self._call("GET", "queues", QueueList)).queues

    async def pause(self, queue: str, paused: bool) -> bool:
        verb = "pause" if paused else "resume"
        path = f"queues/{quote(queue, safe='')}/{verb}"
        return (await self._call("POST", path, Changed)).applied

    async def limit(self, queue: str, limits: QueueLimitsRequest) -> bool:
        path = f"queues/{quote(queue, safe='')}/limits"
        return (await self._call("POST", path, Changed, limits)).applied

    def events(self, query: Mapping[str, Any]) -> AsyncIterator[EventInfo]:
        return read_events(self._transport, dict(query), self._reconnect)

    async def _call(
        self, method: str, path: str, answer: type[T], body: Any = None, **query: Any
    ) -> T:
        """Repeats reads while the server is away; a change is sent once, to say what it changed."""
        address = f"/api/v1/{path}"
        if method != "GET":
            return await self._transport.call(method, address, answer, body, query=query)
        return await self._reconnect.insist(
            lambda: self._transport.call(method, address, answer, body, query=query)
        )
