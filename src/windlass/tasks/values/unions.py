"""Codecs of unions, and of abstract types that several concrete ones stand for."""

from collections.abc import Iterable, Sequence
from typing import Any

from windlass.domain.tasks.references import FILE, RESULT
from windlass.tasks.handles import reference_of
from windlass.tasks.values.codec import (
    TYPE,
    VALUE,
    Codec,
    Misfit,
    unescaped,
)
from windlass.tasks.values.sameness import same
from windlass.tasks.values.scalars import NoneCodec


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

    A value travels as that of its own type if it comes back as the same, else with the type's
    name beside it: `{"$type": "date", "$value": "2026-01-31"}`.
    """

    def __init__(self, members: Sequence[Codec], name: str) -> None:
        self.name = name
        self.kinds = frozenset(kind for member in members for kind in member.kinds)
        self._members = members
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
            if has_reference(encoded) or self._returns(encoded, value):
                return encoded
            if same(member.decode(encoded), value):
                tagged = tagged or {TYPE: member.name, VALUE: encoded}
            elif member.decode(encoded) == value:
                fallback.append(encoded)  # an int that becomes a float
        if tagged is not None:
            return tagged
        if fallback and self.decode(fallback[0]) == value:
            return fallback[0]
        if problem is not None:
            raise problem
        return self.refuse(value)

    def _returns(self, encoded: Any, value: Any) -> bool:
        """Whether a reader that knows only the union gets the same value back."""
        try:
            return same(self.decode(encoded), value)
        except Misfit:
            return False

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


def has_reference(encoded: Any) -> bool:
    """Returns whether encoded JSON waits for the result of a job, or for a file."""
    if type(encoded) is list:
        return any(map(has_reference, encoded))
    if type(encoded) is not dict:
        return type(encoded) not in (str, int, float, bool, type(None))
    if len(encoded) == 1 and (RESULT in encoded or FILE in encoded):
        return True
    inner = unescaped(encoded)
    values = inner.values() if type(inner) is dict else (inner,)
    return any(map(has_reference, values))
