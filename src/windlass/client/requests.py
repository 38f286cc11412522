"""The job that a call of `submit` means."""

from typing import Any

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput
from windlass.tasks import request as request_of


def request_for(task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobSpec:
    """Returns the `JobSpec` for a marked function, a task by name, or a `JobSpec` as it is."""
    if isinstance(task, JobSpec):
        if args or kwargs:
            raise InvalidInput("args", "inside the request", "more beside it")
        return task
    if isinstance(task, str):
        if args:
            raise InvalidInput("args", "given by name", "arguments by position")
        return JobSpec(task=task, args=kwargs)
    return request_of(task, *args, **kwargs)
