"""Windlass: a job scheduler for fleets of workers.

Programs import only what `__all__` lists; everything else may change. Each name is imported
when it is first used: the processes of jobs need `task` and `current` alone and start faster
without the client.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windlass import contrib as contrib
    from windlass import dashboard as dashboard
    from windlass.client.blocking.handles import JobHandle, Workflow, WorkflowHandle
    from windlass.client.builder import AsyncWorkflowBlock
    from windlass.client.errors import JobFailed, RemoteTraceback, ResultTimeout, WorkflowFailed
    from windlass.client.handles import AsyncJob
    from windlass.client.transport import ServerError
    from windlass.client.waiting import as_completed, as_completed_async, gather, gather_async
    from windlass.client.workflows import AsyncWorkflow
    from windlass.domain.job.job import JobSpec
    from windlass.domain.lifecycle.failures import ExceptionInfo
    from windlass.domain.values.errors import (
        Conflict,
        InvalidInput,
        InvalidTransition,
        NotFound,
        Overloaded,
        StoreUnavailable,
        TooManyRequests,
        UnknownName,
        Unreachable,
        WaitTimeout,
        WindlassError,
    )
    from windlass.front import AsyncClient, Client, default_client, set_default_client
    from windlass.messages.jobs import Job
    from windlass.messages.steps import Question
    from windlass.tasks.current import Canceled, Current, current
    from windlass.tasks.exceptions import Abort, Retry
    from windlass.tasks.steps import (
        Suspended,
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
    from windlass.tasks.task import AsyncTask, NamedTask, Task, named, task
    from windlass.transactions.submitting import (
        TransactionJob,
        submit_in,
        submit_in_async,
        submit_many_in,
        submit_many_in_async,
    )

    __version__: str

# The names of each module; `__all__` lists them all.
_NAMES = {
    "windlass.client.blocking.handles": ("JobHandle", "Workflow", "WorkflowHandle"),
    "windlass.client.builder": ("AsyncWorkflowBlock",),
    "windlass.client.errors": ("JobFailed", "RemoteTraceback", "ResultTimeout", "WorkflowFailed"),
    "windlass.client.handles": ("AsyncJob",),
    "windlass.client.transport": ("ServerError",),
    "windlass.client.waiting": ("as_completed", "as_completed_async", "gather", "gather_async"),
    "windlass.client.workflows": ("AsyncWorkflow",),
    "windlass.domain.job.job": ("JobSpec",),
    "windlass.domain.lifecycle.failures": ("ExceptionInfo",),
    "windlass.domain.values.errors": (
        "Conflict", "InvalidInput", "InvalidTransition", "NotFound", "Overloaded",
        "StoreUnavailable", "TooManyRequests", "UnknownName", "Unreachable", "WaitTimeout",
        "WindlassError",
    ),
    "windlass.front": ("AsyncClient", "Client", "default_client", "set_default_client"),
    "windlass.tasks.current": ("Canceled", "Current", "current"),
    "windlass.tasks.exceptions": ("Abort", "Retry"),
    "windlass.tasks.steps": (
        "Suspended", "ask", "ask_async", "send", "send_async", "sleep",
        "sleep_async", "step", "step_async", "wait_for", "wait_for_async",
    ),
    "windlass.tasks.task": ("AsyncTask", "NamedTask", "Task", "named", "task"),
    "windlass.transactions.submitting": (
        "TransactionJob", "submit_in", "submit_in_async", "submit_many_in",
        "submit_many_in_async",
    ),
    "windlass.messages.jobs": ("Job",),
    "windlass.messages.steps": ("Question",),
}  # fmt: skip
_PACKAGES = ("contrib", "dashboard")  # `windlass.dashboard.app()` needs no import of its own
_MODULES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "Abort",
    "AsyncClient",
    "AsyncJob",
    "AsyncTask",
    "AsyncWorkflow",
    "AsyncWorkflowBlock",
    "Canceled",
    "Client",
    "Conflict",
    "Current",
    "ExceptionInfo",
    "InvalidInput",
    "InvalidTransition",
    "Job",
    "JobFailed",
    "JobHandle",
    "JobSpec",
    "NamedTask",
    "NotFound",
    "Overloaded",
    "Question",
    "RemoteTraceback",
    "ResultTimeout",
    "Retry",
    "ServerError",
    "StoreUnavailable",
    "Suspended",
    "Task",
    "TooManyRequests",
    "TransactionJob",
    "UnknownName",
    "Unreachable",
    "WaitTimeout",
    "WindlassError",
    "Workflow",
    "WorkflowFailed",
    "WorkflowHandle",
    "as_completed",
    "as_completed_async",
    "ask",
    "ask_async",
    "current",
    "default_client",
    "gather",
    "gather_async",
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


def __getattr__(name: str) -> Any:
    if name == "__version__":
        # Reading the metadata takes longer than importing the rest of this package.
        from importlib.metadata import version

        value: Any = version("windlass")
    elif name in _MODULES:
        value = getattr(import_module(_MODULES[name]), name)
        if _MODULES[name].startswith("windlass.tasks."):
            _register_default()
    elif name in _PACKAGES:
        value = import_module(f"windlass.{name}")
    else:
        raise AttributeError(f"module 'windlass' has no attribute {name!r}")
    globals()[name] = value
    return value


def _register_default() -> None:
    """Tells tasks how to get what belongs to clients, which they do not import themselves."""
    from windlass.tasks.submitting import register_default

    register_default(
        lambda: import_module("windlass.front").default_client(),
        lambda job: import_module("windlass.client.errors").JobFailed(job),
    )


def __dir__() -> list[str]:
    return sorted([*__all__, *_PACKAGES, "__version__"])
