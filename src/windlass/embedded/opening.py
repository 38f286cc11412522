"""Opens the engine in the program's own process, for `Client.embedded`."""

import logging
import os
import sys
from pathlib import Path

import structlog

from windlass.domain.config import Config
from windlass.domain.matching.offers import parse_offer
from windlass.domain.values.errors import Conflict
from windlass.embedded.node import Node, NodeOptions
from windlass.embedded.service import EngineService
from windlass.tasks.task import importing


def embedded_service(
    store: str | Path, workers: int | None, blobs: str | None, drain: float, config: Config | None,
    resources: str | None = None,
) -> EngineService:  # fmt: skip
    """Returns a service over the store; its first call starts the engine."""
    name = importing()
    if name is not None:
        raise Conflict(
            "opened_by_import",
            f"importing {name} to run one of its functions opened an embedded client: put "
            'what the program does below `if __name__ == "__main__":`',
        )
    _log_warnings_only()
    offer = parse_offer(resources or "", len(os.sched_getaffinity(0)))
    options = NodeOptions(
        store=str(store),
        blobs=blobs,
        workers=(os.cpu_count() or 1) if workers is None else workers,
        drain_ms=int(drain * 1000),
        config=config or Config(),
        offers={} if offer is None else offer.metadata,
    )
    return EngineService(Node(options))


def _log_warnings_only() -> None:
    """Logs only warnings to stderr, unless the program has configured structlog itself."""
    if not structlog.is_configured():
        structlog.configure(
            wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        )
