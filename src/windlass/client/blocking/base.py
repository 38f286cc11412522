"""What the classes of the blocking client have in common; their methods are generated.

`make blocking-client` writes `client.py`, `handles.py` and `resources.py` beside this module from
the asynchronous client.
"""

from collections.abc import AsyncIterator, Coroutine, Iterator
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar
from weakref import finalize

from windlass.client.blocking.in_thread import next_of, service_in_thread
from windlass.client.blocking.loop_thread import LoopThread
from windlass.client.client import AsyncClient
from windlass.tasks.handles import Kept

T = TypeVar("T")
A_co = TypeVar("A_co", covariant=True)


class Runs(Protocol):
    """The client that a handle belongs to."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of the asynchronous client to its end."""


def each(client: Runs, stream: AsyncIterator[T]) -> Iterator[T]:
    """Yields the pieces of a stream."""
    while (piece := client.run(next_of(stream))) is not None:
        yield piece


class InThread(Generic[A_co]):
    """Wraps an object of the asynchronous client; its coroutines run in the thread of `client`."""

    def __init__(self, client: Runs, asynchronous: A_co) -> None:
        self._client = client
        self._async = asynchronous


class Handle(Kept, InThread[A_co]):
    """A handle on a job or a workflow; handles are equal if the asynchronous ones are."""

    @property
    def client(self) -> Runs:
        """The client that the handle belongs to."""
        return self._client

    @property
    def asynchronous(self) -> A_co:
        """The handle behind this one."""
        return self._async

    def __eq__(self, other: object) -> bool:
        return self._async == other.asynchronous if isinstance(other, Handle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._async)

    def __repr__(self) -> str:
        return repr(self._async)


class BlockingClient(Kept):
    """Runs an asynchronous client in a thread that ends no later than this object."""

    def __init__(self, client: AsyncClient, thread: LoopThread | None, *, opens: bool) -> None:
        self._async = client
        self._thread = thread or LoopThread(closing=client.close)
        self._needs_loop = thread is not None  # whose owner works in it
        self._origin: Self | None = None
        # A client that nobody uses any more closes its connections and ends its thread.
        finalize(self, self._thread.end).atexit = False
        if opens:
            self._thread.start(client.open())  # It delivers what waits in its spool.

    def _like(self, client: AsyncClient) -> Self:
        """Returns a client that shares this one's thread."""
        made = type(self).__new__(type(self))
        # The thread ends with the client that started it.
        vars(made).update(_async=client, _thread=self._thread, _origin=self,
                          _needs_loop=self._needs_loop)  # fmt: skip
        return made

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of the asynchronous client to its end."""
        return self._thread.run(work)

    def run_from_here(self, work: Coroutine[Any, Any, T]) -> T:
        """Does the same; over HTTP, in the calling thread as far as it needs no event loop."""
        return (self._thread.run if self._needs_loop else self._thread.run_from_here)(work)

    def as_async(self) -> AsyncClient:
        """Returns the same client for async code, in any event loop."""
        return AsyncClient(service=service_in_thread(self._thread, lambda: self._async.service))

    @property
    def asynchronous(self) -> AsyncClient:
        """The client behind this one, which lives in the loop of its thread; see `as_async`."""
        return self._async

    def close(self) -> None:
        """Closes the connections and ends the thread."""
        if self._thread.begin_close():
            self.run(self._async.close())
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<windlass.{type(self).__name__}: {self._async.place}>"
