"""Finding marked functions, and saying how a call of one ended: for the child processes."""

import errno
import importlib
import inspect
import math
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple

import msgspec

from windlass.domain.lifecycle.failures import FailureClass, Raised
from windlass.domain.values.errors import Conflict
from windlass.domain.values.names import NAME_LIMIT
from windlass.executors.python.messages import Call, Done, Failed
from windlass.tasks.current import Canceled
from windlass.tasks.outcomes import Abort, Retry
from windlass.tasks.task import Task, begin_import

MESSAGE_LIMIT: Final = 2_000
WHY_LIMIT: Final = 200  # of a reason that becomes metadata
MOST_NAMES: Final = 50  # of the classes of an exception
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
_encode: Final = msgspec.json.Encoder().encode


class Unfit(Exception):
    """The call cannot be made on this worker: the message says what to change."""


class Missing(Unfit):
    """This worker does not have the function, or has another version; `why` is one line."""

    def __init__(self, message: str, why: str) -> None:
        super().__init__(message)
        self.why = why


class FoundFunction(NamedTuple):
    """A function that may be called."""

    function: Callable[..., Any]
    is_async: bool
    version: str | None


class Functions:
    """The functions a process has imported so far, by path."""

    def __init__(self) -> None:
        self._found: dict[str, FoundFunction] = {}

    def find(self, path: str, version: str | None = None) -> FoundFunction:
        """Returns the marked function of this path and version; raises `Unfit`."""
        found = self._found.get(path)
        if found is None:
            found = self._found[path] = _find(path)
        if version is not None and found.version != version:
            has = "no version" if found.version is None else f"version {found.version}"
            raise Missing(f"expected version {version} of {path} on this worker, got {has}", has)
        return found


def _find(path: str) -> FoundFunction:
    module_name, _, name = path.partition(":")
    target: Any = _import(module_name)
    for part in name.split("."):
        target = getattr(target, part, None)
        if target is None:
            why = f"{module_name} has no {name}"
            raise Missing(f"expected {path} to exist on this worker: {why}", why)
    if not isinstance(target, Task):
        raise Unfit(f"expected {path} to be marked with @windlass.task, which it is not")
    is_async = inspect.iscoroutinefunction(target.function)
    return FoundFunction(target.function, is_async, target.version)


def _import(name: str) -> object:
    begin_import(name)
    try:
        return importlib.import_module(name)
    except BaseException as error:
        traceback.print_exception(_below(error, "importlib"))
        why = describe(error)
        if isinstance(error, Conflict):
            raise Unfit(f"expected {name} to be importable, got {why}") from None
        raise Missing(
            f"expected {name} to be importable on this worker, got {why}: start the "
            "worker where its module is found (its folder, its environment, or PYTHONPATH)",
            why,
        ) from None
    finally:
        begin_import(None)


def describe(error: BaseException) -> str:
    """Returns an exception in one line: its type and its message."""
    kind = type(error)
    name = kind.__qualname__
    if kind.__module__ not in ("builtins", "__main__"):
        name = f"{kind.__module__}.{name}"
    try:
        text = str(error)
    except Exception:  # An exception that cannot be shown must not hide that it happened.
        text = "(its message cannot be shown)"
    return f"{name}: {text}"[:MESSAGE_LIMIT] if text else name


def ended(call: Call, value: object) -> Done | Failed:
    """Returns what to say of a call that returned `value`."""
    if value is None:
        return Done(call.seq)
    try:
        result = _encode(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        return _not_json(call, str(error))
    if b"null" in result and _holds_infinite(value):
        return _not_json(call, "a number that is not finite")
    return Done(call.seq, result)


def _not_json(call: Call, why: str) -> Failed:
    message = f"expected {call.function} to return a JSON value, got {why}"
    return Failed(call.seq, FailureClass.CONFIGURATION, message[:MESSAGE_LIMIT])


def raised(call: Call, error: BaseException) -> Failed:
    """Returns what to say of a call that raised; the traceback goes to the log."""
    if isinstance(error, Unfit):
        why = error.why[:WHY_LIMIT] if isinstance(error, Missing) else None
        return _misfit(call, str(error), why)
    if isinstance(error, Canceled):
        return Failed(call.seq, FailureClass.CANCELED, "stopped")
    if isinstance(error, SystemExit):
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
        message = f"{call.function} called sys.exit({error.code!r})"
        names = Raised(names_of(error))
        return Failed(call.seq, FailureClass.EXECUTION, message[:MESSAGE_LIMIT], code, raised=names)
    if isinstance(error, Retry | Abort):
        return _decided(call, error)
    own = error.__traceback__
    inside = own is not None and own.tb_next is not None
    traceback.print_exception(error.with_traceback(own.tb_next if own is not None else None))
    if isinstance(error, TypeError) and not inside:
        return _misfit(call, f"expected arguments that {call.function} takes: {error}")
    return Failed(call.seq, failure_of(error), describe(error), raised=Raised(names_of(error)))


def _decided(call: Call, error: Retry | Abort) -> Failed:
    """Returns what to say of a call whose function itself decides whether it is retried."""
    cause = error.__cause__
    failure = FailureClass.EXECUTION
    if cause is not None:
        traceback.print_exception(cause)
        failure = failure_of(cause)
    text = str(error) or (describe(cause) if cause is not None else describe(error))
    asks: Literal["retry", "abort"] = "retry" if isinstance(error, Retry) else "abort"
    after_ms = error.after_ms if isinstance(error, Retry) else None
    raised = Raised(names_of(error), asks, after_ms)
    return Failed(call.seq, failure, text[:MESSAGE_LIMIT], raised=raised)


def names_of(error: BaseException) -> tuple[str, ...]:
    """Returns the names of an exception's classes, also those that packages give them again.

    `requests.exceptions.ConnectionError` is `requests.ConnectionError` too.
    """
    names: dict[str, None] = {}
    for kind in type(error).__mro__[:-1]:
        module, name = str(kind.__module__), kind.__qualname__
        names[name if module == "builtins" else f"{module}.{name}"] = None
        parts = module.split(".")
        for length in range(1, len(parts)):
            package = ".".join(parts[:length])
            if vars(sys.modules.get(package, object)).get(name) is kind:
                names[f"{package}.{name}"] = None
    return tuple(name for name in names if len(name) <= NAME_LIMIT)[:MOST_NAMES]


def _misfit(call: Call, message: str, missing: str | None = None) -> Failed:
    return Failed(
        call.seq, FailureClass.CONFIGURATION, message[:MESSAGE_LIMIT], misfit=True, missing=missing
    )


def failure_of(error: BaseException) -> FailureClass:
    """Returns the class of an exception, by its type alone."""
    if isinstance(error, MemoryError):
        return FailureClass.RESOURCE
    if isinstance(error, ConnectionError | TimeoutError | socket.gaierror | socket.herror):
        return FailureClass.NETWORK
    if isinstance(error, OSError):
        if error.errno in _FULL:
            return FailureClass.RESOURCE
        # urllib wraps what it met.
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


def _holds_infinite(value: object) -> bool:
    if isinstance(value, float):
        return not math.isfinite(value)
    if isinstance(value, Mapping):
        return any(_holds_infinite(item) for item in value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return any(_holds_infinite(item) for item in value)
    return False
