"""What the type variables of generic classes stand for, also in the bases of a class."""

import typing
from collections.abc import Mapping
from typing import Any

Variables = Mapping[Any, Any]


def variables_of(generic: Any, arguments: tuple[Any, ...]) -> Variables:
    """Returns what the variables of a generic class or alias stand for, given its arguments."""
    parameters = getattr(generic, "__parameters__", ()) or getattr(generic, "__type_params__", ())
    return dict(zip(parameters, arguments, strict=False))


def substituted(annotation: Any, variables: Variables) -> Any:
    """Returns an annotation with what its type variables stand for; unknown ones stay."""
    if isinstance(annotation, typing.TypeVar):
        return variables.get(annotation, annotation)
    parameters = getattr(annotation, "__parameters__", ())
    if typing.get_origin(annotation) is None or not any(one in variables for one in parameters):
        return annotation
    return annotation[tuple(variables.get(one, one) for one in parameters)]


def variables_by_class(kind: type, variables: Variables) -> dict[type, Variables]:
    """Returns what the variables of a class and of its bases stand for.

    In `class Users(Page[User])`, the `T` of `Page` is `User`; the same `T` may stand for
    something else in another base.
    """
    found = {kind: variables}
    for base in vars(kind).get("__orig_bases__", kind.__bases__):
        origin = typing.get_origin(base) or base
        if isinstance(origin, type):
            given = [substituted(one, variables) for one in typing.get_args(base)]
            inner = variables_of(origin, tuple(given))
            for owner, known in variables_by_class(origin, inner).items():
                found.setdefault(owner, known)
    return found
