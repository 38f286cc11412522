"""A function that is a task of its own name. Its arguments are an object or a list.

`{"width": 320}` calls it by name, `[320]` by position. If the server could import it, we refuse
arguments that do not fit at submit.
"""

import inspect
from typing import Any, NamedTuple

from windlass.domain.tasks.kind import TaskPlan
from windlass.domain.values.errors import InvalidInput


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
