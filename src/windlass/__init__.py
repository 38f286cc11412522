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
    from windlass.tasks.current import Canceled, current
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
    "Retry",
    "Suspended",
    "Task",
    "TransactionJob",
    "WaitTimeout",
    "Workflow",
    "WorkflowFailed",
    "ask",
    "ask_async",
    "current",
    "send",
    "send_async",
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
    "Retry": "windlass.tasks.outcomes",
    "Workflow": "windlass.client.blocking",
    "WorkflowFailed": "windlass.client.workflows",
    "TransactionJob": "windlass.transactions.jobs",
    "submit_in": "windlass.transactions.submitting",
    "submit_in_async": "windlass.transactions.submitting",
    "submit_many_in": "windlass.transactions.submitting",
    "submit_many_in_async": "windlass.transactions.submitting",
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
