"""Functions as tasks: `@windlass.task` marks one, `windlass.current()` is the job inside it.

Only marked functions run on workers, found there by their import path: nothing of a
function travels but its name.
"""

import inspect
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final, Protocol, TypeVar, overload

import msgspec

from windlass.domain.errors import Conflict, InvalidInput
from windlass.wire.jobs import Duration, JobRequest

MARK: Final = "__windlass_task__"

Function = TypeVar("Function", bound=Callable[..., Any])


class TaskOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What jobs of a marked function get unless they say otherwise."""

    name: str = "python"
    queue: str = "default"
    retries: int | None = None
    timeout: Duration | None = None
    requires: tuple[str, ...] = ()


@overload
def task(function: Function, /) -> Function: ...
@overload
def task(
    *,
    name: str = ...,
    queue: str = ...,
    retries: int | None = ...,
    timeout: Duration | None = ...,
    requires: Sequence[str] = ...,
) -> Callable[[Function], Function]: ...


def task(
    function: Function | None = None,
    /,
    *,
    name: str = "python",
    queue: str = "default",
    retries: int | None = None,
    timeout: Duration | None = None,
    requires: Sequence[str] = (),
) -> Function | Callable[[Function], Function]:
    """Mark a function, plain or async, as one that workers may run.

    It stays the function it was; `client.submit(function, 1, 2)` runs it as a job.
    `name` is the task its jobs go by, for workers that serve some tasks only.
    """
    if isinstance(requires, str):
        requires = (requires,)
    options = TaskOptions(
        name=name, queue=queue, retries=retries, timeout=timeout, requires=tuple(requires)
    )

    def mark(function: Function) -> Function:
        setattr(function, MARK, options)
        return function

    return mark if function is None else mark(function)


def options_of(function: object) -> TaskOptions | None:
    """How a function was marked; None if it was not."""
    options = getattr(function, MARK, None)
    return options if isinstance(options, TaskOptions) else None


def path_of(function: Callable[..., Any]) -> str:
    """Where workers find a function: `package.module:qualname`."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    if module == "__main__":
        spec = getattr(sys.modules["__main__"], "__spec__", None)
        module = None if spec is None else spec.name
    if not module or not name or "<" in name:
        raise InvalidInput(
            "function", "a function of a module that workers can import", repr(function)
        )
    return f"{module}:{name}"


def request(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> JobRequest:
    """The job that calls a marked function with these arguments."""
    options = options_of(function)
    if options is None:
        raise InvalidInput("function", "a function marked with @windlass.task", repr(function))
    path = path_of(function)
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidInput("args", f"arguments that {path} takes", str(error)) from None
    return JobRequest(
        task=options.name,
        args={"function": path, "args": list(args), "kwargs": kwargs},
        queue=options.queue,
        retries=options.retries,
        timeout=options.timeout,
        requires=list(options.requires),
    )


class Canceled(BaseException):
    """Raised inside a job that is to stop. Let it pass; clean up in `finally`."""


class Channel(Protocol):
    """How a job's process speaks of the job."""

    def progress(self, seq: int, value: object) -> None: ...

    def log(self, seq: int, text: str) -> None: ...

    def canceled(self, seq: int) -> bool: ...


class Current(msgspec.Struct, frozen=True):
    """The job a function runs for."""

    job: int
    attempt: int
    workflow: int | None
    seq: int
    channel: Channel

    def progress(self, value: object) -> None:
        """Show how far the job is: a number from 0 to 1, or any JSON value up to 4 KiB."""
        self.channel.progress(self.seq, value)

    def log(self, text: str) -> None:
        """Write a line to the job's log, whichever thread this is called from."""
        self.channel.log(self.seq, text if text.endswith("\n") else text + "\n")

    @property
    def canceled(self) -> bool:
        """Whether the job is to stop: canceled, or out of time."""
        return self.channel.canceled(self.seq)

    def check_canceled(self) -> None:
        """Raise `Canceled` if the job is to stop."""
        if self.canceled:
            raise Canceled


class _Process:
    """The one job of a process that runs one at a time: its threads see it too."""

    job: Current | None = None


_CURRENT: Final[ContextVar[Current | None]] = ContextVar("windlass_job", default=None)


def current() -> Current:
    """The job this function runs for."""
    job = find_current()
    if job is None:
        raise Conflict("no_job", "windlass.current() was called outside of a job")
    return job


def find_current() -> Current | None:
    """The job this code runs for; None outside of jobs."""
    return _CURRENT.get() or _Process.job


def enter(job: Current | None, *, alone: bool) -> None:
    """Begin (or, with None, end) a job: `alone` in its process, else in its context."""
    if alone:
        _Process.job = job
    else:
        _CURRENT.set(job)
