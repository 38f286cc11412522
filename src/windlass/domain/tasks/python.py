"""The task `python`: a marked function, by its path, with JSON arguments."""

import keyword
import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from windlass.domain.tasks.kind import TaskPlan
from windlass.domain.tasks.main_module import MAIN
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput

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
        # Clients write it like this; for a path we have seen, nothing is left to check.
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
    """This worker does not let jobs name the function's module; another one may."""

    why = "its module is not among those that the worker allows"

    def __init__(self, field: str, expected: str, function: str) -> None:
        super().__init__(field, expected, function)
        self.function = function


class Importable:
    """Which modules jobs may name on a worker, whatever else can be imported there.

    Without patterns, everything but the standard library and Windlass itself: those have no
    functions for jobs, and importing some of them has effects. A pattern is a module, with all
    those below it, or has `*` in it, as file names do.
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
            expected = "of your own modules, not of the standard library or Windlass"
            raise InvalidInput(field, expected, function)
        if self._patterns and not any(_covers(one, module) for one in self._patterns):
            expected = f"in one of the modules that this worker allows: {', '.join(self._patterns)}"
            raise NotAllowed(field, expected, function)


_OWN: Final = frozenset({*sys.stdlib_module_names, "windlass"})


def _covers(pattern: str, module: str) -> bool:
    return module == pattern or module.startswith(f"{pattern}.") or fnmatchcase(module, pattern)


def _is_name(part: str) -> bool:
    return part.isidentifier() and not keyword.iskeyword(part)
