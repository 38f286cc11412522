"""A blocking client's service, for code in other event loops than the client's own."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Mapping
from typing import Any, Protocol, TypeVar, cast

from windlass.client.service import WHOLE_LOG, LogChoice, Service
from windlass.messages.system import EventInfo

T = TypeVar("T")


class RunsAsync(Protocol):
    """The thread in which a service lives."""

    async def run_async(self, coro: Coroutine[Any, Any, T], /) -> T: ...


class _Calls:
    """Makes every call of an object in the thread where the object lives."""

    def __init__(self, thread: RunsAsync, find: Callable[[], Any]) -> None:
        self._thread = thread
        self._find = find

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._thread.run_async(getattr(self._find(), name)(*args, **kwargs))

        return call


class _ServiceInThread(_Calls):
    """Implements `Service`. Whoever owns the service opens and closes it."""

    def __init__(self, thread: RunsAsync, find: Callable[[], Service]) -> None:
        super().__init__(thread, find)
        self.transport = _Calls(thread, lambda: find().transport)

    @property
    def installation(self) -> Hashable:
        """Which jobs it knows."""
        return cast("Service", self._find()).installation

    def submitting(self, seconds: float | None, spools: bool | None) -> Service:
        """Returns the same service with other options."""
        return service_in_thread(self._thread, lambda: self._find().submitting(seconds, spools))

    async def close(self) -> None:
        """Leaves the service open, which the blocking client still uses."""

    async def log(
        self, job: int, follow: bool, choice: LogChoice = WHOLE_LOG, given_at: int = 0
    ) -> AsyncIterator[bytes]:
        async for chunk in self._stream(self._find().log(job, follow, choice, given_at)):
            yield chunk

    async def artifact(self, job: int, name: str, given_at: int = 0) -> AsyncIterator[bytes]:
        async for chunk in self._stream(self._find().artifact(job, name, given_at)):
            yield chunk

    async def events(self, query: Mapping[str, Any]) -> AsyncIterator[EventInfo]:
        async for event in self._stream(self._find().events(query)):
            yield event

    async def _stream(self, items: AsyncIterator[T]) -> AsyncIterator[T]:
        while (item := await self._thread.run_async(next_of(items))) is not None:
            yield item


def service_in_thread(thread: RunsAsync, find: Callable[[], Service]) -> Service:
    """Returns the service that `find` returns, for use in any event loop."""
    return cast("Service", _ServiceInThread(thread, find))


async def next_of(stream: AsyncIterator[T]) -> T | None:
    """Returns the next piece of a stream, None at its end."""
    return await anext(stream, None)
