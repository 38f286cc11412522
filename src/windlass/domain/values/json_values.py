"""Checks that JSON from outside has a bounded depth and that every reader understands it.

Most readers of such values are recursive, and Python stops after about 1,000 nested calls. So
values are checked once, where they are decoded.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from windlass.domain.values.errors import InvalidInput

MAX_DEPTH: Final = 100  # nested lists and objects in one request or submission
_ALIKE: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_EXPECTED: Final = f"at most {MAX_DEPTH} lists and objects inside one another"


def check_depth(value: Any, field: str, text: bytes = b"") -> None:
    """Raises `InvalidInput` if `value` is deeper; `text` is its JSON, if known."""
    if text and _is_shallow(text):
        return
    level = [(name, inner) for name, inner in _named(value, field) if _is_container(inner)]
    for _ in range(MAX_DEPTH):
        if not level:
            return
        level = [
            (name, below)
            for name, inner in level
            for below in _inside(inner)
            if _is_container(below)
        ]
    raise too_deep(level[0][0])


def _is_shallow(text: bytes) -> bool:
    """Returns whether this JSON is surely shallow enough; brackets inside texts count too."""
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return True
    brackets = text.translate(_ALIKE, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        left = brackets.replace(b"[]", b"")  # removes the innermost pair
        if len(left) == len(brackets):
            break
        brackets = left
    return not brackets


def too_deep(field: str) -> InvalidInput:
    """Returns the error for a value that is too deep."""
    return InvalidInput(field, _EXPECTED, "more")


def _is_container(value: Any) -> bool:
    return isinstance(value, dict | list | tuple | msgspec.Struct)


def _named(value: Any, field: str) -> Iterable[tuple[str, Any]]:
    """Yields the direct parts, with their names; fields of a body have only their own."""
    inside = "" if field == "body" else f"{field}."
    if isinstance(value, msgspec.Struct):
        return [(inside + name, getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, dict):
        return [(f"{inside}{name}"[:100], inner) for name, inner in value.items()]
    return [(field, value)]


def _inside(value: Any) -> Iterable[Any]:
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, msgspec.Struct):
        return [getattr(value, name) for name in value.__struct_fields__]
    return list(value)


NOT_JSON: Final = (UnicodeEncodeError, RecursionError, TypeError, ValueError, OverflowError)
DEPTH_LIMIT: Final = 200  # far below the depth at which recursion fails


def not_json(error: Exception, field: str) -> InvalidInput:
    """Returns the error for a job that could not be encoded."""
    if isinstance(error, UnicodeEncodeError):
        return InvalidInput(field, "text without lone surrogates", "a lone surrogate")
    if isinstance(error, RecursionError):
        return InvalidInput(f"{field}.args", "nested less deeply", "a very deep value")
    return InvalidInput(f"{field}.args", "a JSON value", str(error))


def refuse_nul(spec: msgspec.Struct, field: str) -> None:
    """Raises `InvalidInput` if any field contains a NUL character."""
    # The escape may also be six characters that a user typed, which are harmless.
    for name, value in msgspec.structs.asdict(spec).items():
        if _holds_nul(value):
            raise InvalidInput(f"{field}.{name}", "text without NUL characters", "a NUL character")


def _holds_nul(value: object) -> bool:
    if isinstance(value, str):
        return "\x00" in value
    if isinstance(value, Mapping):
        return any(_holds_nul(k) or _holds_nul(v) for k, v in value.items())
    if isinstance(value, list | tuple):
        return any(_holds_nul(item) for item in value)
    if isinstance(value, msgspec.Struct):
        return any(_holds_nul(item) for item in msgspec.structs.astuple(value))
    return False


def refuse_deep(value: object, field: str) -> None:
    """Raises `InvalidInput` for values nested too deeply for recursive readers."""
    level = [value]
    for _ in range(DEPTH_LIMIT):
        inner: list[object] = []
        for item in level:
            if isinstance(item, Mapping):
                inner += item.values()
            elif isinstance(item, list | tuple):
                inner += item
        if not inner:
            return
        level = inner
    raise InvalidInput(field, f"nested at most {DEPTH_LIMIT} deep", "a deeper value")


def refuse_not_finite(value: object, field: str) -> None:
    """Raises `InvalidInput` for numbers that JSON cannot express."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidInput(field, "finite numbers", value)
    if isinstance(value, Mapping):
        for key, item in value.items():
            refuse_not_finite(item, f"{field}.{key}")
    elif isinstance(value, list | tuple):
        for item in value:
            refuse_not_finite(item, field)
