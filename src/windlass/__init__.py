"""Windlass: a job scheduler for fleets of workers.

Programs import only what `__all__` lists; everything else may change. Each name is imported
when it is first used: the processes of jobs need `task` and `current` alone and start faster
without the client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.client.blocking.handles import Workflow
    from windlass.client.handles import JobFailed
    from windlass.client.workflows import WorkflowFailed
    from windlass.domain.job.job import JobSpec
    from windlass.domain.values.errors import WindlassError
    from windlass.front import AsyncClient, Client, default_client, set_default_client
    from windlass.tasks.current import current
    from windlass.tasks.named import NamedTask, named
    from windlass.tasks.outcomes import Abort, Retry
    from windlass.tasks.task import Task, task

    __version__: str

__all__ = [
    "Abort",
    "AsyncClient",
    "Client",
    "JobFailed",
    "JobSpec",
    "NamedTask",
    "Retry",
    "Task",
    "WindlassError",
    "Workflow",
    "WorkflowFailed",
    "current",
    "default_client",
    "named",
    "set_default_client",
    "task",
]

_MODULES = {
    "Abort": "windlass.tasks.outcomes",
    "AsyncClient": "windlass.front",
    "Client": "windlass.front",
    "JobFailed": "windlass.client.handles",
    "JobSpec": "windlass.domain.job.job",
    "Workflow": "windlass.client.blocking.handles",
    "WindlassError": "windlass.domain.values.errors",
    "Retry": "windlass.tasks.outcomes",
    "WorkflowFailed": "windlass.client.workflows",
    "NamedTask": "windlass.tasks.named",
    "current": "windlass.tasks.current",
    "default_client": "windlass.front",
    "named": "windlass.tasks.named",
    "set_default_client": "windlass.front",
    "task": "windlass.tasks.task",
    "Task": "windlass.tasks.task",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # Reading the metadata takes longer than importing the rest of this package.
        from importlib.metadata import version

        value: Any = version("windlass")
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
        if _MODULES[name].startswith("windlass.tasks."):
            _register_default()
    else:
        raise AttributeError(f"module 'windlass' has no attribute {name!r}")
    globals()[name] = value
    return value


def _register_default() -> None:
    """Tells tasks how to get the default client, which they do not import themselves."""
    from windlass.tasks.submitting import register_default

    register_default(lambda: import_module("windlass.front").default_client())


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
