"""Windlass: a job scheduler for fleets of workers."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.client.blocking import Workflow
    from windlass.client.handles import JobFailed
    from windlass.client.workflows import WorkflowFailed
    from windlass.front import AsyncClient, Client
    from windlass.tasks import current, task
    from windlass.wire.jobs import JobRequest

__all__ = [
    "AsyncClient",
    "Client",
    "JobFailed",
    "JobRequest",
    "Workflow",
    "WorkflowFailed",
    "current",
    "task",
]

# Found when they are asked for: the processes of jobs need `task` and `current` alone, and
# start in a fraction of the time without the client behind the others.
_PLACES = {
    "AsyncClient": "windlass.front",
    "Client": "windlass.front",
    "JobFailed": "windlass.client.handles",
    "JobRequest": "windlass.wire.jobs",
    "Workflow": "windlass.client.blocking",
    "WorkflowFailed": "windlass.client.workflows",
    "current": "windlass.tasks",
    "task": "windlass.tasks",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("windlass")
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'windlass' has no attribute {name!r}")
    return getattr(import_module(place), name)
