"""`@windlass.task`: functions that workers may run, and the jobs that call them."""

import functools
import inspect
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, ParamSpec, Self, TypeVar, Unpack, overload

import msgspec

from windlass.domain.job.job import KEYWORDS, JobSpec, canonical_options
from windlass.domain.tasks.python import MAIN, as_arguments, importable_name, name_of_main
from windlass.domain.values.errors import NOT_KNOWN, InvalidInput, shorten
from windlass.tasks.local_files import MADE, with_files
from windlass.tasks.submitting import Submits

if TYPE_CHECKING:
    from windlass.tasks.option_types import CallOptions, TaskOptions
    from windlass.tasks.values.calls import CallCodec

MAX_SIGNATURE: Final = 200  # characters of a signature in a message
PYTHON: Final = "python"  # the task of functions without a name of their own

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

# Options of a single job, which cannot be set for all jobs of a function.
_OF_ONE_JOB: Final = frozenset(
    {"task", "args", "name", "key", "after", "after_any", "workflow", "parent", "version"}
)
OF_FUNCTIONS: Final = KEYWORDS - _OF_ONE_JOB
OF_CALLS: Final = KEYWORDS - {"task", "args"}


class Task(Submits[P, R_co]):
    """A function that workers may run. Calling it runs it here and now.

    `submit` and `map` run it as jobs, `options` returns the same task with other options for
    its jobs, `job` describes a call without submitting it.
    """

    def __init__(
        self, function: Callable[P, Any], job: JobSpec, version: str | None = None
    ) -> None:
        self._function = function
        self._job = job
        self._version = version
        functools.update_wrapper(self, function)

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> R_co:
        result: R_co = self._function(*args, **kwargs)
        return result

    @property
    def function(self) -> Callable[P, Any]:
        """Returns the function itself."""
        return self._function

    @property
    def version(self) -> str | None:
        """Returns the version that the task declares (see the job option `version`)."""
        return self._version

    @property
    def defaults(self) -> JobSpec:
        """Returns the job for a call, without its arguments."""
        return self._job

    @functools.cached_property
    def signature(self) -> inspect.Signature:
        """Returns the parameters of the function."""
        return inspect.signature(self._function)

    @functools.cached_property
    def codec(self) -> "CallCodec":
        """Returns the codec of its arguments and results."""
        from windlass.tasks.values.calls import CallCodec  # imported only for calls with values

        return CallCodec(self._function)

    @functools.cached_property
    def path(self) -> str:
        """Returns the import path of the function: `package.module:qualname`."""
        return path_of(self._function)

    def options(self, **options: Unpack["CallOptions"]) -> Self:
        """Returns this task with other options for its jobs: `add.options(retries=3)`.

        They are the options of a job: `queue`, `priority`, `retries`, `timeout`, `key`, `after`…
        """
        fields = canonical_options(dict(options), OF_CALLS)
        job = msgspec.structs.replace(self._job, **fields)
        made = type(self)(self._function, job, self._version)
        for known in ("signature", "codec", "path"):
            if known in vars(self):
                vars(made)[known] = vars(self)[known]
        return made

    def job(self, /, *args: P.args, **kwargs: P.kwargs) -> JobSpec:
        """Returns the job that calls this function with these arguments."""
        before = next(MADE)
        if self._job.task != PYTHON:
            arguments = self._named_arguments(args, kwargs)
            made = msgspec.structs.replace(self._job, args=arguments)
            return with_files(made) if next(MADE) - before > 1 else made
        listed: list[Any] = []
        named: dict[str, Any] = {}
        if args or kwargs or self.signature.parameters:
            if not self.codec.fits(args, kwargs):
                self._bind(args, kwargs)
            listed, named = self._encode(args, kwargs)
        call = {"function": self.path, "args": listed, "kwargs": named}
        made = msgspec.structs.replace(self._job, args=call)
        return with_files(made) if next(MADE) - before > 1 else made

    def _named_arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        self._bind(args, kwargs)
        listed, named = self._encode(args, kwargs)
        return as_arguments(self._bind(listed, named))

    def _encode(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        try:
            return self.codec.encode(args, kwargs)
        except InvalidInput as error:
            error.of = self._function.__qualname__
            raise

    def _bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        try:
            return self.signature.bind(*args, **kwargs)
        except TypeError as error:
            expected = f"arguments that {self.path} takes"
            why = f"{error}; {self._advice(kwargs)}"
            raise InvalidInput("args", expected, NOT_KNOWN, why) from None

    def _advice(self, kwargs: Mapping[str, Any]) -> str:
        """Returns how to call the function, and where misplaced options belong."""
        parameters = self.signature.parameters
        for name in kwargs:
            if name in OF_CALLS and name not in parameters:
                return f"options of a job go into `options`: .options({name}=…).submit(…)"
        if next(iter(parameters), None) in ("self", "cls"):
            return "jobs call no methods: put @staticmethod above @windlass.task"
        return f"it takes {shorten(self._listed(), MAX_SIGNATURE) if parameters else 'none'}"

    def _listed(self) -> str:
        """Returns the parameters as people write them: `(a: int, /, b: int = 0)`."""
        plain = [
            parameter.replace(annotation=_Written(parameter.annotation))
            if isinstance(parameter.annotation, str)
            else parameter
            for parameter in self.signature.parameters.values()
        ]
        return str(inspect.Signature(plain))

    def __repr__(self) -> str:
        return f"<task {self._function.__module__}:{self._function.__qualname__}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles it by name, as functions are: `executor.submit(add, 1, 2)` runs in a process."""
        return _unpickled, (self._function.__module__, self._function.__qualname__, self._job)


class _Written(str):
    """An annotation that is text, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class AsyncTask(Task[P, R_co]):
    """An async function that workers may run. Calling it returns its coroutine."""

    def __call__(  # type: ignore[override]
        self, /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R_co]:
        result: Coroutine[Any, Any, R_co] = self._function(*args, **kwargs)
        return result


class _Decorator:
    """What `@windlass.task(...)` returns: makes a task of a function."""

    def __init__(self, name: str, job: JobSpec, version: str | None) -> None:
        self._name = name
        self._job = job
        self._version = version

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R]: ...

    def __call__(self, function: Callable[P, Any], /) -> Task[P, Any]:
        _check_function(function)
        kind = AsyncTask if inspect.iscoroutinefunction(function) else Task
        made: Task[P, Any] = kind(function, self._job, self._version)
        if self._name != PYTHON:
            _register(self._name, made)
        return made


def _check_function(function: object) -> None:
    """Raises `InvalidInput` for a function that cannot be called by name, or that yields."""
    shown = repr(function)
    if not callable(function):
        expected = "a function; options have names: @windlass.task(name=…, queue=…)"
        raise InvalidInput("task", expected, shown)
    if isinstance(function, Task):
        hint = "for other options use `.options(…)`"
        raise InvalidInput("task", "a function that is not a task yet", shown, hint)
    if isinstance(function, type) or not hasattr(function, "__qualname__"):
        hint = "define one with `def` that calls it"
        raise InvalidInput("task", "a function with a name of its own", shown, hint)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        hint = "return a list, or submit a job for each value"
        raise InvalidInput(
            "task", "a function that returns its result", f"a generator: {shown}", hint
        )


@overload
def task(function: Callable[P, Coroutine[Any, Any, R]], /) -> AsyncTask[P, R]: ...
@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(
    *, name: str = ..., version: str | None = ..., **options: Unpack["TaskOptions"]
) -> _Decorator: ...
def task(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = PYTHON,
    version: str | None = None,
    **options: Any,
) -> Any:
    """Marks a function, plain or async, as one that workers may run.

    Calling it still runs it; `client.submit(function, 1, 2)` runs it as a job. `name` makes it a
    task of its own, for workers that import it (`--import`). `options` are those of a job, such as
    `queue`, `retries`, `timeout`, `requires`, and the worker's `secrets` that it needs
    (`windlass.current().secret`). `version` is the function's: a job that asks for one
    (`function.options(version="2")`) runs only where it is the same.
    """
    if version is not None and not isinstance(version, str):
        raise InvalidInput("version", 'text, such as "2"', version)
    job = JobSpec(task=name, **canonical_options(options, OF_FUNCTIONS))
    decorator = _Decorator(name, job, version)
    return decorator if function is None else decorator(function)


_NAMED: Final[dict[str, Task[..., Any]]] = {}


def _register(name: str, made: Task[..., Any]) -> None:
    known = _NAMED.setdefault(name, made)
    if _place(known.function) != _place(made.function):
        place = ".".join(_place(known.function))
        raise InvalidInput("name", f"another name than the task at {place}", name)
    _NAMED[name] = made


def _place(function: Callable[..., Any]) -> tuple[str, str]:
    module = function.__module__
    return importable_name(module) or module, function.__qualname__


def named_tasks() -> Mapping[str, Task[..., Any]]:
    """Returns the named tasks that this process knows."""
    return dict(_NAMED)


def known_task(name: str, args: Any) -> Task[..., Any] | None:
    """Returns the task that a job calls, if this process has imported it."""
    if name != PYTHON:
        return _NAMED.get(name)
    path = args.get("function") if isinstance(args, dict) else None
    module, _, names = path.partition(":") if isinstance(path, str) else ("", "", "")
    found: Any = sys.modules.get("__main__" if module == name_of_main() else module)
    for part in names.split("."):
        found = getattr(found, part, None)
    return found if isinstance(found, Task) else None


def _unpickled(module: str, name: str, job: JobSpec) -> Task[..., Any]:
    """Returns the task for a pickle from another process, with its options."""
    found = attrgetter(name)(import_module(module))
    if not isinstance(found, Task):
        raise TypeError(f"{module}:{name} is not a task")
    if found.defaults == job:
        return found
    return type(found)(found.function, job, found.version)


def path_of(function: Callable[..., Any]) -> str:
    """Returns the import path of a function: `package.module:qualname`."""
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None)
    hint = "define it with `def` at the top of a module, not as a lambda or inside a function"
    if module in MAIN:
        module = name_of_main()
        if module is None and name and "<" not in name:
            hint = "move it from the prompt, notebook or script into a module such as tasks.py"
    if not module or not name or "<" in name:
        expected = "a function of a module that workers can import"
        raise InvalidInput("function", expected, repr(function), hint)
    return f"{module}:{name}"


def spec_of(function: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> JobSpec:
    """Returns the job that calls a task; raises for anything else."""
    if not isinstance(function, Task):
        raise InvalidInput("function", "a function marked with @windlass.task", repr(function))
    made: JobSpec = function.job(*args, **kwargs)
    return made


class _Process:
    """What this process is importing for a job."""

    importing: str | None = None


def importing() -> str | None:
    """Returns the module that this process is importing for a job's function."""
    return _Process.importing


def begin_import(name: str | None) -> None:
    """Sets the module being imported; None when the import is done."""
    _Process.importing = name


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
        from windlass.tasks.values.containers import named_arguments

        return msgspec.structs.replace(self._job, args=named_arguments(kwargs))

    def __repr__(self) -> str:
        return f"<task {self._job.task}>"


def named(task: str, /) -> NamedTask:
    """Returns a task by its name, such as `shell`."""
    return NamedTask(JobSpec(task=task))
