"""Workers, queues and events, as clients ask for them."""

from collections.abc import AsyncIterator, Mapping
from typing import Any, Literal, TypeVar
from urllib.parse import quote

from windlass.client.calls import Calls
from windlass.client.reconnect import Reconnect
from windlass.client.resources.events import read_events
from windlass.messages.system import EventInfo
from windlass.messages.workers import (
    Changed,
    QueueInfo,
    QueueLimits,
    QueueList,
    WorkerInfo,
    WorkerList,
)

T = TypeVar("T")

WorkerAction = Literal["drain", "enable", "disable", "approve"]


class Fleet:
    """Those who run jobs, and the queues they run them from."""

    def __init__(self, transport: Calls, reconnect: Reconnect) -> None:
        self._transport = transport
        self._reconnect = reconnect

    async def workers(self) -> list[WorkerInfo]:
        return (await self._call("GET", "workers", WorkerList)).workers

    async def worker(self, worker: str) -> WorkerInfo:
        """Returns one worker, given by its name or id; raises `NotFound`."""
        return await self._call("GET", f"workers/{quote(worker, safe='')}", WorkerInfo)

    async def act(self, worker: str, action: WorkerAction) -> bool:
        """Drains, enables, disables or approves a worker; returns whether that was new."""
        return (
            await self._call("POST", f"workers/{quote(worker, safe='')}/{action}", Changed)
        ).applied

    async def change(self, worker: str, entries: Mapping[str, Any]) -> bool:
        path = f"workers/{quote(worker, safe='')}/static"
        return (await self._call("PATCH", path, Changed, dict(entries))).applied

    async def remove(self, worker: str, force: bool) -> bool:
        path = f"workers/{quote(worker, safe='')}"
        return (await self._call("DELETE", path, Changed, force=force or None)).applied

    async def queues(self) -> list[QueueInfo]:
        return (await self._call("GET", "queues", QueueList)).queues

    async def pause(self, queue: str, paused: bool) -> bool:
        verb = "pause" if paused else "resume"
        path = f"queues/{quote(queue, safe='')}/{verb}"
        return (await self._call("POST", path, Changed)).applied

    async def limit(self, queue: str, limits: QueueLimits) -> bool:
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
