"""Codecs of unions, and of abstract types with several concrete ones.

A union uses the type that restores the value unchanged: equal, and of the same types throughout.
"""

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from typing import Any

import msgspec

from windlass.domain.tasks.references import FILE, RESULT
from windlass.tasks.handles import reference_of
from windlass.tasks.values.codec import (
    TYPE,
    VALUE,
    Codec,
    Misfit,
    unescaped,
)
from windlass.tasks.values.scalars import NoneCodec


def same(a: Any, b: Any) -> bool:
    """Returns whether two values and their types are equal, at every level."""
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


class OptionalCodec(Codec):
    """One type or None."""

    def __init__(self, inner: Codec) -> None:
        self.name = f"{inner.name} | None"
        self.kinds = inner.kinds | NoneCodec.kinds
        self._inner = inner
        self._encode = inner.encode
        self._decode = inner.decode

    def parts(self) -> Iterable[Codec]:
        return (self._inner,)

    def encode(self, value: Any) -> Any:
        return None if value is None else self._encode(value)

    def decode(self, json: Any) -> Any:
        return None if json is None else self._decode(json)


class UnionCodec(Codec):
    """One of several types.

    A value is encoded by its own type if no other member could read it as its own, else with the
    type's name: `{"$type": "date", "$value": "2026-01-31"}`. Python considers `str | date` and
    `date | str` equal, and may give one process the one and another process the other. So the order
    of the members must not affect the result, unless they are `ranked`.
    """

    def __init__(self, members: Sequence[Codec], name: str, *, ranked: bool = False) -> None:
        self.name = name
        self.kinds = frozenset(kind for member in members for kind in member.kinds)
        self._members = members
        self._ranked = ranked
        self._by_kind = {
            kind: [
                *(member for member in members if kind in member.kinds),
                *(member for member in members if kind not in member.kinds),
            ]
            for kind in (dict, list, str, int, float, bool, type(None))
        }

    def parts(self) -> Iterable[Codec]:
        return self._members

    def encode(self, value: Any) -> Any:
        if reference_of(value) is not None:
            return self.refuse(value)
        tagged: dict[str, Any] | None = None
        fallback: list[Any] = []
        problem: Misfit | None = None
        for member in self._members:
            try:
                encoded = member.encode(value)
            except Misfit as misfit:
                problem = misfit if misfit.where else problem
                continue
            if has_reference(encoded) or self._is_clear(encoded, value):
                return encoded
            named = {TYPE: member.name, VALUE: encoded}
            if same(member.decode(encoded), value):
                tagged = tagged or named
            elif member.decode(encoded) == value:
                fallback.append(encoded)  # an int that becomes a float
        if tagged is not None:
            return self._checked(tagged, value)
        if fallback and self.decode(fallback[0]) == value:
            return fallback[0]
        if problem is not None:
            raise problem
        return self.refuse(value)

    def _is_clear(self, encoded: Any, value: Any) -> bool:
        """Returns whether a reader that knows only the union restores the same value."""
        if not _returns(self, encoded, value):
            return False
        kind = type(encoded)
        likely = [] if self._ranked else [one for one in self._members if kind in one.kinds]
        return all(_returns(member, encoded, value) is not False for member in likely)

    def _checked(self, tagged: dict[str, Any], value: Any) -> dict[str, Any]:
        """Returns a value with the name of its type, unless two members share that name."""
        if not same(self.decode(tagged), value):
            hint = "rename one of them, or use parameters of their own"
            raise Misfit(self.name, f"two types with the name {tagged[TYPE]}", hint)
        return tagged

    def decode(self, json: Any) -> Any:
        members: Sequence[Codec] = self._by_kind[type(json)]
        if type(json) is dict and json.keys() == {TYPE, VALUE}:
            members = [member for member in self._members if member.name == json[TYPE]]
            json = json[VALUE]
        for member in members:
            try:
                return member.decode(json)
            except Misfit:
                continue
        raise self.reject(json)


def _returns(codec: Codec, encoded: Any, value: Any) -> bool | None:
    """Returns whether JSON restores a value; None if it cannot be decoded at all."""
    try:
        return same(codec.decode(encoded), value)
    except Misfit:
        return None


def has_reference(encoded: Any) -> bool:
    """Returns whether encoded JSON refers to the result of a job, or to a file."""
    if type(encoded) is list:
        return any(map(has_reference, encoded))
    if type(encoded) is not dict:
        return type(encoded) not in (str, int, float, bool, type(None))
    if len(encoded) == 1 and (RESULT in encoded or FILE in encoded):
        return True
    inner = unescaped(encoded)
    values = inner.values() if type(inner) is dict else (inner,)
    return any(map(has_reference, values))
