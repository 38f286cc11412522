"""A backend for Django's tasks: `django.tasks`, or `django_tasks` where that is installed.

```python
TASKS = {"default": {"BACKEND": "windlass.contrib.django.tasks.WindlassBackend", "QUEUES": []}}
```

`enqueue` submits in the transaction of Django's connection, so a task runs if and only if that
commits. With `"OPTIONS": {"transactional": False}` it is sent to the server at once instead.
`"OPTIONS": {"job": {"retries": 2, "secrets": ["DATABASE_URL"]}}` are options of all its jobs.
"""

import os
from datetime import datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from windlass.contrib.django.submitting import get_client, submit_in
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import NotFound, needs
from windlass.front import Client
from windlass.messages.jobs import Job
from windlass.tasks.task import task

with needs("django"):
    from django.conf import ENVIRONMENT_VARIABLE
    from django.utils.module_loading import import_string

if TYPE_CHECKING:
    from django_tasks import TaskResult, TaskResultStatus
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import TaskError
    from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist
else:
    try:
        from django.tasks import TaskResult, TaskResultStatus
        from django.tasks.backends.base import BaseTaskBackend
        from django.tasks.base import TaskError
        from django.tasks.exceptions import InvalidTask as InvalidTaskError
        from django.tasks.exceptions import TaskResultDoesNotExist
    except ImportError:
        try:
            from django_tasks import TaskResult, TaskResultStatus
        except ModuleNotFoundError as missing:
            message = "Django before 6 has no tasks of its own: run pip install django-tasks"
            raise ImportError(message) from missing
        from django_tasks.backends.base import BaseTaskBackend
        from django_tasks.base import TaskError
        from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist

_STATUS: Final = {
    "running": "RUNNING",
    "completed": "SUCCESSFUL",
    "failed": "FAILED",
    "canceled": "FAILED",
    "aborted": "FAILED",
    "skipped": "FAILED",
    "rejected": "FAILED",
}


@task(name="django-task")
def run_task(settings: str, path: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Runs a task of Django in a worker, after setting Django up."""
    os.environ.setdefault(ENVIRONMENT_VARIABLE, settings)
    import_module("windlass.contrib.django.ready")
    return import_string(path).call(*args, **kwargs)


class WindlassBackend(BaseTaskBackend):
    """Enqueues tasks of Django as jobs of Windlass."""

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self._transactional = bool(self.options.get("transactional", True))
        self._run = run_task.options(**self.options.get("job", {}))

    def validate_task(self, task: Any) -> None:
        """Refuses tasks that jobs cannot run."""
        super().validate_task(task)
        if task.takes_context:
            raise InvalidTaskError(
                "Windlass does not run tasks with takes_context; use windlass.current() in the task"
            )

    def enqueue(self, task: Any, args: Any, kwargs: Any) -> Any:
        """Submits a job that runs the task."""
        self.validate_task(task)
        job = self._job(task, args, kwargs)
        made = submit_in(job) if self._transactional else _with_id().submit(job)
        return self._result(task, str(made.id), None, list(args), dict(kwargs))

    def get_result(self, result_id: str) -> Any:
        """Returns the task of a job and its state; raises if there is no such job."""
        try:
            job = get_client().job(int(result_id)).info()
        except (NotFound, ValueError):
            raise TaskResultDoesNotExist(result_id) from None
        if job.task != run_task.defaults.task:
            raise TaskResultDoesNotExist(result_id)
        call = job.args
        return self._result(
            import_string(call["path"]), result_id, job, call["args"], call["kwargs"]
        )

    def _job(self, task: Any, args: Any, kwargs: Any) -> JobSpec:
        """Returns the job that runs a task."""
        settings = os.environ.get(ENVIRONMENT_VARIABLE, "")
        job = self._run.job(settings, task.module_path, list(args), dict(kwargs))
        changes: dict[str, Any] = {"queue": task.queue_name, "name": task.name[:100]}
        if task.priority:
            changes["priority"] = task.priority
        if task.run_after is not None:
            changes["not_before"] = task.run_after.isoformat()
        changed: JobSpec = msgspec.structs.replace(job, **changes)
        return changed

    def _result(
        self, task: Any, number: str, job: Job | None, args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        status = "READY" if job is None else _STATUS.get(job.state, "READY")
        fields: dict[str, Any] = {
            "task": task, "id": number, "status": TaskResultStatus[status], "args": args,
            "kwargs": kwargs, "backend": self.alias, "errors": _errors(job),
            "worker_ids": _workers(job),
            "enqueued_at": _time(None if job is None else job.created_at),
            "started_at": _time(None if job is None else job.started_at),
            "last_attempted_at": _time(None if job is None else job.started_at),
            "finished_at": _time(None if job is None else job.finished_at),
        }  # fmt: skip
        known = TaskResult.__dataclass_fields__
        result: TaskResult[Any] = TaskResult(**{n: fields[n] for n in fields if n in known})
        if job is not None and job.state == "completed":
            object.__setattr__(result, "_return_value", job.result)
        return result


def _with_id() -> Client:
    """Returns the client without its spool: the result of a task is found again by its job's id."""
    return get_client().with_options(on_unavailable="raise")


def _errors(job: Job | None) -> list[Any]:
    if job is None or job.state not in ("failed", "canceled", "aborted", "rejected", "skipped"):
        return []
    raised = None if job.failure is None else job.failure.exception
    if raised is not None:
        path = raised.type if "." in raised.type else f"builtins.{raised.type}"
        return [TaskError(exception_class_path=path, traceback=raised.traceback or raised.message)]
    why = (job.failure and job.failure.message) or job.reason or job.state
    return [TaskError(exception_class_path="windlass.JobFailed", traceback=str(why))]


def _workers(job: Job | None) -> list[str]:
    """Returns the names of the workers that ran it, in order."""
    tried = () if job is None else job.attempts
    return [attempt.worker for attempt in tried if attempt.worker is not None]


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


__all__ = ["WindlassBackend", "run_task"]
