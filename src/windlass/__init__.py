"""Windlass: a job scheduler for fleets of workers.

Programs import only what `__all__` lists; everything else may change. Each name is imported
when it is first used: the processes of jobs need `task` and `current` alone and start faster
without the client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass.client.blocking import Workflow
    from windlass.client.handles import JobFailed
    from windlass.client.workflows import WorkflowFailed
    from windlass.domain.job.job import JobSpec
    from windlass.front import AsyncClient, Client
    from windlass.tasks.current import current
    from windlass.tasks.task import Task, task
    from windlass.transactions.jobs import TransactionJob
    from windlass.transactions.submitting import (
        submit_in,
        submit_in_async,
        submit_many_in,
        submit_many_in_async,
    )

    __version__: str

__all__ = [
    "AsyncClient",
    "Client",
    "JobFailed",
    "JobSpec",
    "Task",
    "TransactionJob",
    "Workflow",
    "WorkflowFailed",
    "current",
    "submit_in",
    "submit_in_async",
    "submit_many_in",
    "submit_many_in_async",
    "task",
]

_MODULES = {
    "AsyncClient": "windlass.front",
    "Client": "windlass.front",
    "JobFailed": "windlass.client.handles",
    "JobSpec": "windlass.domain.job.job",
    "Workflow": "windlass.client.blocking",
    "WorkflowFailed": "windlass.client.workflows",
    "TransactionJob": "windlass.transactions.jobs",
    "current": "windlass.tasks.current",
    "submit_in": "windlass.transactions.submitting",
    "submit_in_async": "windlass.transactions.submitting",
    "submit_many_in": "windlass.transactions.submitting",
    "submit_many_in_async": "windlass.transactions.submitting",
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
    else:
        raise AttributeError(f"module 'windlass' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
