"""Finds marked functions and reports how their calls ended: for the child processes."""

import errno
import importlib
import inspect
import os
import re
import socket
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Literal, NamedTuple

import msgspec

from windlass.domain.lifecycle.failures import FailureClass, Raised
from windlass.domain.tasks.references import FILE
from windlass.domain.values.errors import Conflict, InvalidInput, WaitTimeout, causes_of
from windlass.domain.values.names import NAME_LIMIT
from windlass.executors.python.messages import Call, Done, Failed
from windlass.tasks.current import Canceled
from windlass.tasks.exceptions import Abort, Retry, exception_info, is_public, text_of, type_name
from windlass.tasks.local_files import LocalFile
from windlass.tasks.steps import Suspended
from windlass.tasks.task import Task, begin_import
from windlass.tracing.current import VARIABLE, enter_trace, leave_trace
from windlass.tracing.exporting import trace_program

OWN_START: Final = "WINDLASS_"  # never passed
_LOOK_UP: Final = type(os.environ).__getitem__.__code__
# Messages of python-decouple, environs, django-environ and starlette.
_SAYS: Final = re.compile(
    r"^(?P<a>[A-Za-z_]\w*) not found\. Declare it as envvar"
    r"|Environment variable \"(?P<b>[A-Za-z_]\w*)\" not set"
    r"|Set the (?P<c>[A-Za-z_]\w*) environment variable"
    r"|Config '(?P<d>[A-Za-z_]\w*)' is missing"
)

MESSAGE_LIMIT: Final = 2_000
WHY_LIMIT: Final = 200  # of a reason that becomes metadata
MAX_NAMES: Final = 50  # of the classes of an exception
# Other names of built-in exceptions, in modules that do not define them.
ALIASES: Final[Mapping[type, tuple[str, ...]]] = {
    OSError: ("EnvironmentError", "IOError", "os.error", "select.error", "socket.error"),
    TimeoutError: (
        "asyncio.TimeoutError", "asyncio.exceptions.TimeoutError",
        "concurrent.futures.TimeoutError", "socket.timeout",
    ),
}  # fmt: skip
SUSPENDED: Final = "suspended"  # replaces a failure: the function waits
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
RESULT_LIMIT: Final = 64 * 1024 * 1024


def missing_variable(error: BaseException) -> str | None:
    """Returns the environment variable whose absence made a function fail, if any."""
    for cause in causes_of(error):
        if isinstance(cause, KeyError) and _raised_in(cause.__traceback__) is _LOOK_UP:
            name = cause.args[0]
            return name if isinstance(name, str) else None
        said = _SAYS.search(str(cause.args[0])) if cause.args else None
        if said is not None:
            return str(next(filter(None, said.groups())))
    return None


def _raised_in(trace: TracebackType | None) -> object:
    """Returns the code of the function that raised."""
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return None if trace is None else trace.tb_frame.f_code


def advise(name: str | None, environ: Mapping[str, str]) -> str:
    """Returns advice about a missing variable, given the worker's environment."""
    if name is None or name.startswith(OWN_START):
        return ""
    if name in environ:
        return (
            f"; the worker has {name} but does not pass it to jobs: start it with --pass-env {name}"
        )
    return (
        f"; the worker has no {name} either: set it where the worker starts, and start it with "
        f"--pass-env {name}"
    )


def _named(value: object) -> dict[str, str]:
    """Returns the reference to a file that a function returns."""
    if isinstance(value, LocalFile):
        return {FILE: os.path.abspath(value.path)}
    raise TypeError(f"{type(value).__name__} cannot be encoded")


_encode: Final = msgspec.json.Encoder(enc_hook=_named).encode


class Unfit(Exception):
    """The call cannot be made on this worker: the message says what to change."""


class Missing(Unfit):
    """This worker does not have the function, or has another version; `why` is one line.

    `variable` is the environment variable that its module needs and did not find.
    """

    def __init__(self, message: str, why: str, variable: str | None = None) -> None:
        super().__init__(message)
        self.why = why
        self.variable = variable


class FoundFunction(NamedTuple):
    """A function that may be called; `is_silent`: nothing declares a return value."""

    function: Callable[..., Any]
    is_async: bool
    task: Task[..., Any]
    is_silent: bool
    version: str | None

    def arguments(self, call: Call) -> tuple[Sequence[Any], Mapping[str, Any]]:
        """Returns the arguments of a call as annotated; raises `Unfit`."""
        if not call.args and not call.kwargs:
            return (), {}
        try:
            return self.task.codec.decode(call.args, call.kwargs)
        except InvalidInput as error:
            raise Unfit(f"{call.function}: {error.message}") from None


class Functions:
    """The functions a process has imported so far, by path."""

    def __init__(self) -> None:
        self._found: dict[str, FoundFunction] = {}

    def find(self, path: str, version: str | None = None) -> FoundFunction:
        """Returns the marked function of this path and version; raises `Unfit`."""
        found = self._found.get(path)
        if found is None:
            found = self._found[path] = self.look_up(path)
        if version is not None and found.version != version:
            has = "no version" if found.version is None else f"version {found.version}"
            raise Missing(f"expected version {version} of {path} on this worker, got {has}", has)
        return found

    def look_up(self, path: str) -> FoundFunction:
        """Imports the module of a path and returns the function in it; raises `Unfit`."""
        module, _, name = path.partition(":")
        return find_in(_import(module), path, name)


def find_in(module: object, path: str, name: str) -> FoundFunction:
    """Returns the marked function of this name in a module; raises `Unfit`."""
    target: Any = module
    for part in name.split("."):
        target = getattr(target, part, None)
        if target is None:
            why = f"{path.partition(':')[0]} has no {name}"
            raise Missing(f"expected {path} to exist on this worker: {why}", why)
    if not isinstance(target, Task):
        raise Unfit(f"expected {path} to be marked with @windlass.task, but it is not")
    function = target.function
    silent = getattr(function, "__annotations__", {}).get("return") in (None, "None")
    is_async = inspect.iscoroutinefunction(function)
    return FoundFunction(function, is_async, target, silent, target.version)


def _import(name: str) -> object:
    begin_import(name)
    try:
        return importlib.import_module(name)
    except BaseException as error:
        if not _is_absent(name, error):
            traceback.print_exception(_below(error, "importlib"))
        why = describe(error)
        if isinstance(error, Conflict):
            raise Unfit(f"expected {name} to be importable, got {why}") from None
        raise Missing(
            f"expected {name} to be importable on this worker, got {why}: start the "
            "worker where its module is found (its folder, its environment, or PYTHONPATH)",
            why,
            missing_variable(error),
        ) from None
    finally:
        begin_import(None)


def _is_absent(name: str, error: BaseException) -> bool:
    """Returns whether the module itself is missing, so that a traceback would not help."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    return missing is not None and f"{name}.".startswith(f"{missing}.")


def describe(error: BaseException) -> str:
    """Describes an exception in one line: its type and its message."""
    name, text = type_name(type(error)), text_of(error)
    return f"{name}: {text}"[:MESSAGE_LIMIT] if text else name


def ended(call: Call, found: FoundFunction, value: object) -> Done | Failed:
    """Returns the report of a call that returned `value`."""
    if value is None and found.is_silent:
        return Done(call.seq)
    try:
        encoded = found.task.codec.encode_result(value)
        body = None if encoded is None else _encode(encoded)
        if body is None or len(body) <= RESULT_LIMIT:
            return Done(call.seq, body)
        why = f"expected {call.function} to return at most {RESULT_LIMIT} bytes, got {len(body)}: "
        why += "write them to a file below windlass.current().scratch, and return its Path"
    except InvalidInput as error:
        why = error.message
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        why = f"expected {call.function} to return a JSON value, got {error}"
    return Failed(call.seq, FailureClass.CONFIGURATION, why[:MESSAGE_LIMIT])


def raised(call: Call, error: BaseException) -> Failed:
    """Returns the report of a call that raised; the traceback goes to the log."""
    if isinstance(error, Unfit):
        misfit = _misfit(call, str(error))
        if not isinstance(error, Missing):
            return misfit
        return msgspec.structs.replace(
            misfit, missing=error.why[:WHY_LIMIT], variable=error.variable
        )
    error = _unwound(error)
    if isinstance(error, Suspended):
        return Failed(call.seq, SUSPENDED, str(error))
    if isinstance(error, Canceled):
        return Failed(call.seq, FailureClass.CANCELED, "stopped")
    own = error.__traceback__
    inside = own is not None and own.tb_next is not None
    error = error.with_traceback(own.tb_next if own is not None else None)  # without our caller
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        message = f"{call.function} called sys.exit({error.code!r})"
        raised = told(error)
        return Failed(
            call.seq, FailureClass.EXECUTION, message[:MESSAGE_LIMIT], code, raised=raised
        )
    if isinstance(error, Retry | Abort):
        return _decided(call, error)
    traceback.print_exception(error)
    if isinstance(error, TypeError) and not inside:
        return _misfit(call, f"expected arguments that {call.function} takes: {error}")
    return Failed(
        call.seq, failure_of(error), describe(error), raised=told(error),
        variable=missing_variable(error),
    )  # fmt: skip


def _decided(call: Call, error: Retry | Abort) -> Failed:
    """Returns the report of a call whose function itself decides whether it is retried."""
    cause = error.__cause__
    failure = FailureClass.EXECUTION
    if cause is not None:
        traceback.print_exception(cause)
        failure = failure_of(cause)
    text = str(error) or (describe(cause) if cause is not None else describe(error))
    asks: Literal["retry", "abort"] = "retry" if isinstance(error, Retry) else "abort"
    after_ms = error.after_ms if isinstance(error, Retry) else None
    raised = msgspec.structs.replace(told(error), asks=asks, after_ms=after_ms)
    return Failed(call.seq, failure, text[:MESSAGE_LIMIT], raised=raised)


def told(error: BaseException) -> Raised:
    """Returns what the server is told about an exception."""
    return Raised(names_of(error), exception=exception_info(error))


def names_of(error: BaseException) -> tuple[str, ...]:
    """Returns the names of an exception's classes, including aliases in their packages.

    `requests.exceptions.ConnectionError` is `requests.ConnectionError` too.
    """
    names: dict[str, None] = {}
    for kind in type(error).__mro__[:-1]:
        module, name = str(kind.__module__), kind.__qualname__
        names[name if module == "builtins" else f"{module}.{name}"] = None
        names |= dict.fromkeys(ALIASES.get(kind, ()))
        if is_public(kind):  # which the package loads lazily
            names[f"windlass.{name}"] = None
        parts = module.split(".")
        for length in range(1, len(parts)):
            package = ".".join(parts[:length])
            if vars(sys.modules.get(package, object)).get(name) is kind:
                names[f"{package}.{name}"] = None
    return tuple(name for name in names if len(name) <= NAME_LIMIT)[:MAX_NAMES]


def _unwound(error: BaseException) -> BaseException:
    """Returns the `Suspended` or `Canceled` in a group: a task group wraps what its tasks raise."""
    while isinstance(error, BaseExceptionGroup):
        for kind in (Canceled, Suspended):
            found = error.subgroup(kind)
            if found is not None:
                error = found.exceptions[0]
                break
        else:
            return error
    return error


def _misfit(call: Call, message: str) -> Failed:
    return Failed(call.seq, FailureClass.CONFIGURATION, message[:MESSAGE_LIMIT], misfit=True)


def failure_of(error: BaseException) -> FailureClass:
    """Returns the class of an exception, by its type alone."""
    if isinstance(error, MemoryError):
        return FailureClass.RESOURCE
    if isinstance(error, WaitTimeout):
        return FailureClass.EXECUTION  # Another attempt would fail the same way.
    if isinstance(error, ConnectionError | TimeoutError | socket.gaierror | socket.herror):
        return FailureClass.NETWORK
    if isinstance(error, OSError):
        if error.errno in _FULL:
            return FailureClass.RESOURCE
        # urllib wraps the original error.
        reason = getattr(error, "reason", None)
        if isinstance(reason, OSError) and reason is not error:
            return failure_of(reason)
    return FailureClass.EXECUTION


def _below(error: BaseException, name: str) -> BaseException:
    """Returns the error without the frames of the import machinery on top."""
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None:
        where = frames.tb_frame.f_code.co_filename
        if name not in where and __file__ != where:
            break
        frames = frames.tb_next
    return error.with_traceback(frames)


class _Process:
    """Whether this process has looked for an exporter."""

    looked = False


def enter_call_trace(trace: str, *, alone: bool) -> None:
    """Makes spans of the function belong to its attempt; if it is `alone`, of programs as well.

    They are exported if the process sees OpenTelemetry's variables (`windlass worker --env`), or if
    the function's own code configures an exporter.
    """
    if not _Process.looked:
        _Process.looked = True
        trace_program("windlass-function")
    if alone:
        os.environ[VARIABLE] = trace
    enter_trace(trace)


def leave_call_trace() -> None:
    """Leaves the trace of a call that was alone."""
    os.environ.pop(VARIABLE, None)
    leave_trace()
