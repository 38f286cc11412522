"""The limit on lists and objects inside one another, for everything that came as JSON.

Much of what reads such values calls itself for each level, and Python ends that after about 1,000
calls. So values are checked once, where they are decoded.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from windlass.domain.values.errors import InvalidInput

MAX_DEPTH: Final = 100  # lists and objects inside one another, in one request or submission
_ALIKE: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_EXPECTED: Final = f"at most {MAX_DEPTH} lists and objects inside one another"


def check_depth(value: Any, field: str, text: bytes = b"") -> None:
    """Raises `InvalidInput` if `value` is deeper; `text` is the JSON it was made of, if known."""
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
    """Returns whether this JSON is surely not too deep; brackets inside its texts count too."""
    if text.count(b"[") + text.count(b"{") <= MAX_DEPTH:
        return True
    brackets = text.translate(_ALIKE, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        left = brackets.replace(b"[]", b"")  # takes the innermost away
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
    """Returns what is directly inside, with its name; fields of a body have only their own."""
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
