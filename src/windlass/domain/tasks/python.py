"""The task `python`, a marked function by its path, and functions that are tasks of their own.

Arguments of a function are JSON: `{"width": 320}` calls it by name, `[320]` by position. If the
server could import it, we refuse arguments that do not fit at submit.
"""

import inspect
import keyword
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.tasks.kind import TaskPlan
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput

# The name of the program's own module inside itself and inside processes of `multiprocessing`.
MAIN: Final = frozenset({"__main__", "__mp_main__"})


def importable_name(module: str) -> str | None:
    """Returns the name under which another process can import a module; None if it cannot."""
    return name_of_main() if module in MAIN else module


def name_of_main() -> str | None:
    """Returns the name under which another process can import the main module."""
    # While a process of `multiprocessing` imports the program, its `__main__` is a different
    # module.
    main = sys.modules.get("__mp_main__") or sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    stem = PurePath(getattr(main, "__file__", None) or "").stem
    return stem if stem.isidentifier() else None


PATH_LIMIT: Final = 500
_EXPECTED: Final = "package.module:function, importable on the worker"


class PythonArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call: the function's path and its arguments."""

    function: str
    args: list[Any] = []
    kwargs: dict[str, Any] = {}


class PythonTask:
    """Functions marked with `@windlass.task`."""

    name: Final = "python"

    def check(self, args: object, field: str) -> TaskPlan:
        """Checks the form of the call; only workers know whether the function exists."""
        call = read_args(args, field)
        return TaskPlan(call, function=call.function)


def read_args(args: object, field: str) -> PythonArgs:
    """Returns the call that a job's arguments describe."""
    if type(args) is dict and len(args) == 3:
        # Clients write this form; for a path we have seen, nothing is left to check.
        function, listed, named = args.get("function"), args.get("args"), args.get("kwargs")
        known = isinstance(function, str) and function in _SEEN
        if known and isinstance(listed, list) and named == {}:
            return PythonArgs(str(function), listed, {})
    call = convert(args, PythonArgs, field)
    if call.function not in _SEEN:
        _check_path(call.function, f"{field}.function")
        if len(_SEEN) >= 1_000:
            _SEEN.clear()
        _SEEN.add(call.function)
    return call


_SEEN: Final[set[str]] = set()  # valid paths we have seen, bounded in number


def _check_path(path: str, field: str) -> None:
    module, colon, name = path.partition(":")
    parts = [*module.split("."), *name.split(".")]
    if len(path) > PATH_LIMIT or not colon or not all(_is_name(part) for part in parts):
        raise InvalidInput(field, _EXPECTED, path)
    if module in MAIN:
        raise InvalidInput(field, f"{_EXPECTED}; no worker can import {module}", path)


class NotAllowed(InvalidInput):
    """This worker does not allow jobs to use the function's module; another one may."""

    why = "its module is not among those this worker allows"

    def __init__(self, field: str, expected: str, function: str) -> None:
        super().__init__(field, expected, function)
        self.function = function


class Importable:
    """Which modules jobs may name on a worker, whatever else can be imported there.

    Without patterns, everything but the standard library and Windlass itself: those have no
    functions for jobs, and importing some of them has side effects. A pattern is a module with
    everything below it, or contains `*` as file globs do.
    """

    def __init__(self, patterns: Sequence[str] = (), preloaded: Sequence[str] = ()) -> None:
        self._patterns = tuple(patterns)
        self._preloaded = frozenset(preloaded)

    def check(self, function: str, field: str = "args.function") -> None:
        """Raises `InvalidInput` for a function whose module may not be imported."""
        module = function.partition(":")[0]
        if module in self._preloaded:
            return
        if not self._patterns and module.partition(".")[0] in _OWN:
            expected = "in your own modules, not in the standard library or Windlass"
            raise InvalidInput(field, expected, function)
        if self._patterns and not any(_covers(one, module) for one in self._patterns):
            expected = f"in one of the modules that this worker allows: {', '.join(self._patterns)}"
            raise NotAllowed(field, expected, function)


_OWN: Final = frozenset({*sys.stdlib_module_names, "windlass"})


def _covers(pattern: str, module: str) -> bool:
    return module == pattern or module.startswith(f"{pattern}.") or fnmatchcase(module, pattern)


def _is_name(part: str) -> bool:
    return part.isidentifier() and not keyword.iskeyword(part)


class FunctionCall(NamedTuple):
    """The arguments of a function call."""

    args: list[Any]
    kwargs: dict[str, Any]


class FunctionTask:
    """Implements `TaskKind`."""

    def __init__(self, name: str, signature: inspect.Signature) -> None:
        self.name = name
        self._signature = signature

    def check(self, args: object, field: str) -> TaskPlan:
        """Raises `InvalidInput` unless the function takes these arguments."""
        call = read_call(args, field)
        try:
            self._signature.bind(*call.args, **call.kwargs)
        except TypeError as error:
            expected = f"arguments of {self.name}{self._signature}"
            raise InvalidInput(field, expected, str(error)) from None
        return TaskPlan(args)


def read_call(args: object, field: str = "args") -> FunctionCall:
    """Reads a call from the arguments of a job."""
    if args is None:
        return FunctionCall([], {})
    if isinstance(args, dict):
        return FunctionCall([], args)
    if isinstance(args, list | tuple):
        return FunctionCall(list(args), {})
    raise InvalidInput(field, "an object with arguments by name, or a list of arguments", args)


def as_arguments(bound: inspect.BoundArguments) -> dict[str, Any] | list[Any]:
    """Returns the arguments of a job for a call with these."""
    kinds = {name: bound.signature.parameters[name].kind for name in bound.arguments}
    by_place = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    if any(kind in by_place for kind in kinds.values()):
        if bound.kwargs:
            expected = "all given by position, since the function takes some only by position"
            raise InvalidInput("args", expected, f"{', '.join(bound.kwargs)} by name")
        return list(bound.args)
    named: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if kinds[name] is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    return named
