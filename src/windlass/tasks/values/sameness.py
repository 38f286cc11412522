"""Whether a value came back as it was: equal, and of the same types throughout."""

import dataclasses
import math
from collections.abc import Mapping
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import msgspec


def same(a: Any, b: Any) -> bool:
    """Returns whether two values are equal and of equal types, also inside."""
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is float:
        return bool(a == b) and math.copysign(1.0, a) == math.copysign(1.0, b)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, set | frozenset):
        return len(a) == len(b) and _same_members({x: x for x in a}, b)
    if isinstance(a, dict):
        return len(a) == len(b) and _same_items(a, b)
    if kind is Decimal:
        return bool(a.as_tuple() == b.as_tuple())
    if kind in (datetime, time):
        return a == b and a.tzinfo == b.tzinfo and a.utcoffset() == b.utcoffset()  # type: ignore[no-any-return]
    names = field_names(kind)
    if names is not None:
        return all(same(getattr(a, n, None), getattr(b, n, None)) for n in names)
    return bool(a == b)


def field_names(kind: type) -> list[str] | None:
    """Returns the fields of a dataclass, an attrs class or a Struct; None for other types."""
    if dataclasses.is_dataclass(kind):
        return [field.name for field in dataclasses.fields(kind)]
    if issubclass(kind, msgspec.Struct):
        return list(kind.__struct_fields__)
    attributes = getattr(kind, "__attrs_attrs__", None)
    return None if attributes is None else [field.name for field in attributes]


def _same_members(known: Mapping[Any, Any], others: Any) -> bool:
    return all(item in known and same(known[item], item) for item in others)


def _same_items(a: dict[Any, Any], b: dict[Any, Any]) -> bool:
    return _same_members({key: key for key in a}, b) and all(same(a[key], b[key]) for key in a)
