"""The task `python`: a marked function, by its path, with JSON arguments."""

import keyword
from typing import Any, Final

import msgspec

from windlass.domain.tasks.kind import TaskPlan
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
        return TaskPlan(read_args(args, field))


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
    if module == "__main__":
        raise InvalidInput(field, f"{_EXPECTED}; no worker can import __main__", path)


def _is_name(part: str) -> bool:
    return part.isidentifier() and not keyword.iskeyword(part)
