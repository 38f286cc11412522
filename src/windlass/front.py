"""`windlass.Client` and `windlass.AsyncClient`: with a server, or embedded in a program."""

import logging
import os
import sys
from pathlib import Path
from typing import Self

import structlog

from windlass.client import client
from windlass.domain.config import Config
from windlass.domain.values.errors import Conflict
from windlass.embedded.node import Node, NodeOptions
from windlass.embedded.service import EngineService
from windlass.embedded.thread import LoopThread
from windlass.tasks import importing


class AsyncClient(client.AsyncClient):
    """A scheduler, seen from a program with an event loop."""

    @classmethod
    def embedded(
        cls,
        store: str | Path = "jobs.db",
        *,
        workers: int | None = None,
        blobs: str | None = None,
        drain: float = 10.0,
        config: Config | None = None,
    ) -> Self:
        """A client with the engine in this process, and no server; see `Client.embedded`."""
        name = importing()
        if name is not None:
            raise Conflict(
                "opened_by_import",
                f"importing {name} to run one of its functions opened an embedded client: put "
                'what the program does below `if __name__ == "__main__":`',
            )
        _be_quiet()
        options = NodeOptions(
            store=str(store),
            blobs=blobs,
            workers=(os.cpu_count() or 1) if workers is None else workers,
            drain_ms=int(drain * 1000),
            config=config or Config(),
        )
        return cls(service=EngineService(Node(options)))


class Client(client.Client):
    """A scheduler, seen from a program without an event loop."""

    @classmethod
    def embedded(
        cls,
        store: str | Path = "jobs.db",
        *,
        workers: int | None = None,
        blobs: str | None = None,
        drain: float = 10.0,
        config: Config | None = None,
    ) -> Self:
        """A client with the engine in this process, and no server.

        `store` is a file, made if it is not there; further processes may open it too: one of
        them runs the jobs, and if that one ends another takes over. It may also be the
        address of a PostgreSQL database, with that of its `blobs`.
        `workers` is how many jobs this process runs at once; default: one for each
        processor; 0: it only submits and reads. `drain` is how many seconds running jobs
        get when the client is closed; then they are handed back. Functions are imported in
        processes of their own, so a program opens its client below
        `if __name__ == "__main__":`.
        """
        thread = LoopThread()
        try:
            made = AsyncClient.embedded(
                store, workers=workers, blobs=blobs, drain=drain, config=config
            )
            thread.run(made.open())
        except BaseException:
            thread.close()
            raise
        return cls(client=made, runner=thread)


def _be_quiet() -> None:
    """A guest in somebody's program warns, and says no more, unless that set structlog up."""
    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
