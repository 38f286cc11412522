"""Functions as tasks: `@windlass.task` marks one, `windlass.current()` is the job inside it.

Workers run only marked functions, which they find by import path: nothing but the
function's name travels.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import lru_cache
from pathlib import PurePath
from typing import Any, Final, Protocol, TypeVar, overload

import msgspec

from windlass.domain.job.forms import Duration
from windlass.domain.job.job import KEYWORDS, JobSpec, canonical_options
from windlass.domain.tasks.function import as_arguments
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.wire.jobs import SubmitReply, SubmitRequest

MARK: Final = "__windlass_task__"
PYTHON: Final = "python"  # the task of functions without a name of their own

_NAMED: Final[dict[str, Callable[..., Any]]] = {}

Function = TypeVar("Function", bound=Callable[..., Any])


# Options that belong to a single job, and cannot be given for all jobs of a function.
_OF_ONE_JOB: Final = frozenset(
    {"task", "args", "name", "key", "after", "after_any", "workflow", "parent"}
)
_OF_FUNCTIONS: Final = KEYWORDS - _OF_ONE_JOB


@overload
def task(function: Function, /) -> Function: ...
@overload
def task(
    *,
    name: str = ...,
    queue: str = ...,
    retries: int | None = ...,
    timeout: Duration | None = ...,
    requires: str | Sequence[str] = ...,
    secrets: str | Sequence[str] = ...,
    **options: Any,
) -> Callable[[Function], Function]: ...


def task(
    function: Function | None = None, /, *, name: str = PYTHON, **options: Any
) -> Function | Callable[[Function], Function]:
    """Marks a function, plain or async, as one that workers may run.

    It stays the function it was; `client.submit(function, 1, 2)` runs it as a job. `name`
    makes it a task of its own, which workers run that import it (`--import`). `options` are
    those of a job, such as `queue`, `retries`, `timeout`, `requires`, and `secrets` of the
    worker that it needs (`windlass.current().secret`).
    """
    job = JobSpec(task=name, **canonical_options(options, _OF_FUNCTIONS))

    def mark(function: Function) -> Function:
        setattr(function, MARK, job)
        if name != PYTHON:
            _register(name, function)
        return function

    return mark if function is None else mark(function)


def _register(name: str, function: Callable[..., Any]) -> None:
    known = _NAMED.setdefault(name, function)
    if _place(known) != _place(function):
        raise InvalidInput("name", f"another than that of {'.'.join(_place(known))}", name)
    _NAMED[name] = function


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    module = function.__module__
    return (_name_of_main() or module) if module == "__main__" else module, function.__qualname__


def named_functions() -> dict[str, Callable[..., Any]]:
    """Returns the named tasks that this process knows."""
    return dict(_NAMED)


def options_of(function: object) -> JobSpec | None:
    """Returns the job that a function was marked with, without arguments; None if it was not."""
    job = getattr(function, MARK, None)
    return job if isinstance(job, JobSpec) else None


def path_of(function: Callable[..., Any]) -> str:
    """Returns the import path of a function: `package.module:qualname`."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    if module == "__main__":
        module = _name_of_main()
    if not module or not name or "<" in name:
        raise InvalidInput(
            "function", "a function of a module that workers can import", repr(function)
        )
    return f"{module}:{name}"


_signature: Final = lru_cache(maxsize=1_000)(inspect.signature)


def _name_of_main() -> str | None:
    """Returns the name under which another process can import the main module."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    stem = PurePath(getattr(main, "__file__", None) or "").stem
    return stem if stem.isidentifier() else None


def request(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> JobSpec:
    """Returns the job that calls a marked function with these arguments."""
    job = options_of(function)
    if job is None:
        raise InvalidInput("function", "a function marked with @windlass.task", repr(function))
    path = path_of(function)
    try:
        bound = _signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise InvalidInput("args", f"arguments that {path} takes", str(error)) from None
    call = {"function": path, "args": list(args), "kwargs": kwargs}
    return msgspec.structs.replace(job, args=call if job.task == PYTHON else as_arguments(bound))


class Canceled(BaseException):
    """Raised inside a job that must stop. Let it propagate; clean up in `finally`."""


class Channel(Protocol):
    """How a job's process talks to its agent."""

    def progress(self, seq: int, value: object) -> None: ...

    def log(self, seq: int, text: str) -> None: ...

    def canceled(self, seq: int) -> bool: ...

    def ask(self, seq: int, body: bytes) -> "Answer": ...

    async def ask_async(self, seq: int, body: bytes) -> "Answer": ...


class Answer(Protocol):
    """The server's answer to a request: JSON, which is an error if it was `refused`."""

    @property
    def body(self) -> bytes: ...

    @property
    def refused(self) -> bool: ...


class Current(msgspec.Struct, frozen=True):
    """The job that a function runs for."""

    job: int
    attempt: int
    workflow: int | None
    seq: int
    channel: Channel
    secrets: Mapping[str, str] = {}

    def progress(self, value: object) -> None:
        """Reports progress: a number from 0 to 1, or any JSON value up to 4 KiB."""
        self.channel.progress(self.seq, value)

    def log(self, text: str) -> None:
        """Writes a line to the job's log, from any thread."""
        self.channel.log(self.seq, text if text.endswith("\n") else text + "\n")

    def secret(self, name: str) -> str:
        """Returns a secret that the job declared; it is masked in the log and in results."""
        if name not in self.secrets:
            declared = ", ".join(sorted(self.secrets)) or "none"
            raise InvalidInput("secret", f"one that the job declares ({declared})", name)
        return self.secrets[name]

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> int:
        """Adds a call of a marked function to this job's workflow and returns the new job's id."""
        (job,) = self.submit_many([request(function, *args, **kwargs)])
        return job

    def submit_many(self, jobs: Sequence[JobSpec], key: str | None = None) -> list[int]:
        """Adds jobs to this job's workflow, all or none, and returns their ids.

        With a `key` that this workflow has seen, for example from an earlier attempt, it returns
        the existing jobs. Jobs without a priority take that of this job;
        “+1” and “-1” raise and lower it.
        """
        return _children(self.channel.ask(self.seq, _asked(jobs, key)))

    async def submit_many_async(self, jobs: Sequence[JobSpec], key: str | None = None) -> list[int]:
        """Does the same in async functions."""
        return _children(await self.channel.ask_async(self.seq, _asked(jobs, key)))

    @property
    def canceled(self) -> bool:
        """Returns whether the job must stop: canceled, or out of time."""
        return self.channel.canceled(self.seq)

    def check_canceled(self) -> None:
        """Raises `Canceled` if the job must stop."""
        if self.canceled:
            raise Canceled


def _asked(jobs: Sequence[JobSpec], key: str | None) -> bytes:
    return msgspec.json.encode(SubmitRequest(jobs=list(jobs), key=key))


def _children(answer: Answer) -> list[int]:
    if not answer.refused:
        return msgspec.json.decode(answer.body, type=SubmitReply).ids
    error = msgspec.json.decode(answer.body)["error"]
    if "field" in error and "expected" in error:
        raise InvalidInput(error["field"], error["expected"], error.get("got"))
    raise Conflict(error["code"], error["message"], error.get("retry_after_ms"))


class _Process:
    """The job of a process that runs one at a time; its threads see it too."""

    job: Current | None = None
    importing: str | None = None


_CURRENT: Final[ContextVar[Current | None]] = ContextVar("windlass_job", default=None)


def current() -> Current:
    """Returns the job this function runs for."""
    job = find_current()
    if job is None:
        raise Conflict("no_job", "windlass.current() was called outside of a job")
    return job


def find_current() -> Current | None:
    """Returns the job this code runs for, or None outside jobs."""
    return _CURRENT.get() or _Process.job


def enter(job: Current | None, *, alone: bool) -> None:
    """Enters a job (None leaves it): `alone` in its process, else in its context."""
    if alone:
        _Process.job = job
    else:
        _CURRENT.set(job)


def importing() -> str | None:
    """Returns the module that this process is importing for a job's function."""
    return _Process.importing


def begin_import(name: str | None) -> None:
    """Sets the module being imported; None when the import is done."""
    _Process.importing = name
