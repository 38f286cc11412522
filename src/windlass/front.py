"""`windlass.Client` and `windlass.AsyncClient`, connected or embedded, and the default client.

The engine and its stores are imported only by `embedded()`: a client of a server needs none
of them, and starts in a fraction of the time.
"""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from windlass.client import client
from windlass.client.blocking import client as blocking
from windlass.client.blocking.loop_thread import LoopThread

if TYPE_CHECKING:
    from windlass.domain.config import Config


class AsyncClient(client.AsyncClient):
    """A scheduler, for programs with an event loop."""

    @classmethod
    def embedded(
        cls,
        store: str | Path = "jobs.db",
        *,
        workers: int | None = None,
        blobs: str | None = None,
        drain: float = 10.0,
        config: "Config | None" = None,
        resources: str | None = None,
    ) -> Self:
        """Returns a client with the engine in this process; see `Client.embedded`."""
        from windlass.embedded.opening import embedded_service

        return cls(service=embedded_service(store, workers, blobs, drain, config, resources))


class Client(blocking.Client):
    """A scheduler, for programs without an event loop."""

    @classmethod
    def embedded(
        cls,
        store: str | Path = "jobs.db",
        *,
        workers: int | None = None,
        blobs: str | None = None,
        drain: float = 10.0,
        config: "Config | None" = None,
        resources: str | None = None,
        immediate: bool = False,
    ) -> Self:
        """Returns a client with the engine in this process, and no server.

        `store` is a file, created if it does not exist. Several processes may open it: one of
        them runs the jobs, and when it ends another takes over. It may also be the address of
        a PostgreSQL database, together with that of its `blobs`, or ":memory:".
        `workers` is how many jobs this process runs at once, by default one per processor; with 0
        it only submits and reads. `drain` is how many seconds running jobs get when the
        client is closed; then they go back to the queue. `resources` is what jobs share, as with
        `windlass worker --resources`: `gpus=[0,1],licences=4`. Functions are imported in
        processes of their own, so a program opens its client below
        `if __name__ == "__main__":`.

        With `immediate` and the store ":memory:", functions run in this process, on the thread
        that calls the client: when it submits a job, or waits for one. It is meant for tests.
        """
        if immediate:
            return cls._immediate(store, config, resources)
        import uvloop

        thread = LoopThread(uvloop.new_event_loop, forks=False)
        try:
            made = AsyncClient.embedded(
                store, workers=workers, blobs=blobs, drain=drain, config=config,
                resources=resources,
            )  # fmt: skip
            thread.run(made.open())
        except BaseException:
            thread.close()
            raise
        return cls(client=made, thread=thread)

    @classmethod
    def _immediate(cls, store: str | Path, config: "Config | None", resources: str | None) -> Self:
        from windlass.embedded.immediate import CallerThread
        from windlass.embedded.opening import immediate_service

        thread = CallerThread()
        made = AsyncClient(service=immediate_service(store, thread, config, resources))
        try:
            thread.run(made.open())
        except BaseException:
            thread.close()
            raise
        return cls(client=made, thread=thread)


class _Default:
    """The client that tasks submit with."""

    lock: Final = threading.Lock()
    client: Client | None = None
    is_of_test = False


def default_client() -> Client:
    """Returns the client that `task.submit` uses: one for the server, unless another was set."""
    found = _Default.client
    if found is None:
        with _Default.lock:
            found = _Default.client = _Default.client or Client()
    return found


def set_default_client(client: Client | None) -> None:
    """Sets the client that `task.submit` uses; None: it makes a new one when needed."""
    _Default.client = client
    _Default.is_of_test = False


def set_test_client(client: Client) -> None:
    """Sets the client that `task.submit` and the frameworks use, until another default is set."""
    _Default.client = client
    _Default.is_of_test = True


def get_test_client() -> Client | None:
    """Returns the client of the running test, which frameworks use instead of their own."""
    return _Default.client if _Default.is_of_test else None
