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
    from windlass.tasks.current import Canceled, current
    from windlass.tasks.named import NamedTask, named
    from windlass.tasks.outcomes import Abort, Retry
    from windlass.tasks.steps import (
        Suspended,
        WaitTimeout,
        ask,
        ask_async,
        send,
        send_async,
        sleep,
        sleep_async,
        step,
        step_async,
        wait_for,
        wait_for_async,
    )
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
    "Abort",
    "AsyncClient",
    "Canceled",
    "Client",
    "JobFailed",
    "JobSpec",
    "NamedTask",
    "Retry",
    "Suspended",
    "Task",
    "TransactionJob",
    "WaitTimeout",
    "WindlassError",
    "Workflow",
    "WorkflowFailed",
    "ask",
    "ask_async",
    "current",
    "default_client",
    "named",
    "send",
    "send_async",
    "set_default_client",
    "sleep",
    "sleep_async",
    "step",
    "step_async",
    "submit_in",
    "submit_in_async",
    "submit_many_in",
    "submit_many_in_async",
    "task",
    "wait_for",
    "wait_for_async",
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
    "Canceled": "windlass.tasks.current",
    "current": "windlass.tasks.current",
    "Suspended": "windlass.tasks.steps",
    "WaitTimeout": "windlass.tasks.steps",
    "ask": "windlass.tasks.steps",
    "ask_async": "windlass.tasks.steps",
    "send": "windlass.tasks.steps",
    "send_async": "windlass.tasks.steps",
    "sleep": "windlass.tasks.steps",
    "sleep_async": "windlass.tasks.steps",
    "step": "windlass.tasks.steps",
    "step_async": "windlass.tasks.steps",
    "wait_for": "windlass.tasks.steps",
    "wait_for_async": "windlass.tasks.steps",
    "TransactionJob": "windlass.transactions.jobs",
    "submit_in": "windlass.transactions.submitting",
    "submit_in_async": "windlass.transactions.submitting",
    "submit_many_in": "windlass.transactions.submitting",
    "submit_many_in_async": "windlass.transactions.submitting",
    "NamedTask": "windlass.tasks.named",
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
