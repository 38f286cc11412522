"""`windlass.named("shell")`: tasks by name, whose code only workers have."""

from typing import TYPE_CHECKING, Any, Self, Unpack

import msgspec

from windlass.domain.job.job import JobSpec, canonical_options
from windlass.domain.values.errors import InvalidInput
from windlass.tasks.submitting import Submits
from windlass.tasks.task import OF_CALLS

if TYPE_CHECKING:
    from windlass.tasks.option_types import CallOptions


class NamedTask(Submits[..., Any]):
    """A task by name. Its arguments are given by name too: `named("shell").submit(argv=["ls"])`."""

    def __init__(self, job: JobSpec) -> None:
        self._job = job

    @property
    def defaults(self) -> JobSpec:
        """Returns the job for a call, without its arguments."""
        return self._job

    def options(self, **options: Unpack["CallOptions"]) -> Self:
        """Returns this task with other options for its jobs: `.options(queue="batch")`."""
        fields = canonical_options(dict(options), OF_CALLS)
        return type(self)(msgspec.structs.replace(self._job, **fields))

    def job(self, /, *args: Any, **kwargs: Any) -> JobSpec:
        """Returns the job that runs this task with these arguments."""
        if args:
            hint = "arguments by name; only a function itself takes them by position"
            refusal = InvalidInput("args", "given by name", "arguments by position", hint)
            refusal.of = self._job.task
            raise refusal
        # imported only for jobs with arguments
        from windlass.tasks.values.plain import named_arguments

        return msgspec.structs.replace(self._job, args=named_arguments(kwargs))

    def __repr__(self) -> str:
        return f"<task {self._job.task}>"


def named(task: str, /) -> NamedTask:
    """Returns a task by its name, such as `shell`."""
    return NamedTask(JobSpec(task=task))
