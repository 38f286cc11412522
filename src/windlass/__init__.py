"""Windlass: a job scheduler for fleets of workers."""

from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.client.blocking import Workflow
    from windlass.client.handles import JobFailed
    from windlass.client.workflows import WorkflowFailed
    from windlass.domain.job.job import JobSpec
    from windlass.front import AsyncClient, Client
    from windlass.tasks import current, task

__all__ = [
    "AsyncClient",
    "Client",
    "JobFailed",
    "JobSpec",
    "Workflow",
    "WorkflowFailed",
    "current",
    "task",
]

__version__ = version("windlass")

# Found when they are asked for: the processes of jobs need `task` and `current` alone, and
# start in a fraction of the time without the client behind the others.
_PLACES = {
    "AsyncClient": "windlass.front",
    "Client": "windlass.front",
    "JobFailed": "windlass.client.handles",
    "JobSpec": "windlass.domain.job.job",
    "Workflow": "windlass.client.blocking",
    "WorkflowFailed": "windlass.client.workflows",
    "current": "windlass.tasks",
    "task": "windlass.tasks",
}


def __getattr__(name: str) -> Any:
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'windlass' has no attribute {name!r}")
    return getattr(import_module(place), name)
