"""Checks that a job's arguments are JSON that every reader understands."""

import math
from collections.abc import Mapping
from typing import Final

import msgspec

from windlass.domain.values.errors import InvalidInput

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
