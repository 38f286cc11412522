"""Opens the engine in the program's own process, for `Client.embedded`."""

import logging
import os
import sys
from pathlib import Path
from typing import Final

import structlog
from structlog.typing import EventDict

from windlass.client.service import Service
from windlass.domain.config import Config
from windlass.domain.matching.room import parse_offer
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.embedded.immediate import CallerExecutor, CallerThread, ImmediateService
from windlass.embedded.in_process import InProcess
from windlass.embedded.node import Node, NodeOptions
from windlass.tasks.task import importing
from windlass.worker.attempt.records import ENDED

MEMORY: Final = (":memory:", "memory:")


def embedded_service(
    store: str | Path, workers: int | None, blobs: str | None, drain: float, config: Config | None,
    resources: str | None = None,
) -> Service:  # fmt: skip
    """Returns a service over the store; its first call starts the engine."""
    return Service(InProcess(Node(_options(store, workers, blobs, drain, config, resources))))


def immediate_service(
    store: str | Path, thread: CallerThread, config: Config | None, resources: str | None
) -> ImmediateService:
    """Returns a service whose functions run on the threads that call the client."""
    if str(store) not in MEMORY:
        raise InvalidInput("store", ":memory: with immediate, for jobs of this process", store)
    options = _options(store, 1, None, 0.0, config, resources)
    node = Node(options, CallerExecutor(thread.hand_over))
    return ImmediateService(InProcess(node))


def _options(
    store: str | Path, workers: int | None, blobs: str | None, drain: float, config: Config | None,
    resources: str | None,
) -> NodeOptions:  # fmt: skip
    name = importing()
    if name is not None:
        raise Conflict(
            "opened_by_import",
            f"importing {name} to run one of its functions opened an embedded client: put "
            'what the program does below `if __name__ == "__main__":`',
        )
    log_warnings_only()
    offer = parse_offer(resources or "", len(os.sched_getaffinity(0)))
    if str(store) in MEMORY:
        store, blobs = "memory:", blobs or "memory:"
    return NodeOptions(
        store=str(store),
        blobs=blobs,
        workers=(os.cpu_count() or 1) if workers is None else workers,
        drain_ms=int(drain * 1000),
        config=config or Config(),
        offers={} if offer is None else offer.metadata,
    )


def log_warnings_only() -> None:
    """Logs only warnings to stderr, unless the program has configured structlog itself."""
    if not structlog.is_configured():
        structlog.configure(
            processors=[_drop_ends_of_jobs, *structlog.get_config()["processors"]],
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )


def _drop_ends_of_jobs(_: object, __: str, event: EventDict) -> EventDict:
    """Leaves out how jobs end: the program has their handles, and its stderr is its own."""
    if event["event"] == ENDED:
        raise structlog.DropEvent
    return event
