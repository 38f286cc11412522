"""What a codec is, why it refuses a value, and the JSON forms with a special meaning."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from windlass.domain.tasks.references import LITERAL, RESERVED, RESULT
from windlass.domain.values.errors import shorten
from windlass.tasks.handles import REFERRED, reference_of

TYPE: Final = "$type"  # with VALUE: the member of a union that a value belongs to
VALUE: Final = "$value"
_SIMPLE: Final = frozenset({"None", "bool", "int", "float", "str"})
_BUILT_IN: Final = (str, int, float, bytes, dict, list, tuple, set, frozenset)


class Misfit(Exception):
    """A value that does not fit its annotation; `where` is its place below the parameter."""

    def __init__(self, expected: str, got: str, hint: str = "", where: str = "") -> None:
        super().__init__(expected, got, hint, where)
        self.expected = expected
        self.got = got
        self.hint = hint
        self.where = where

    def inside(self, place: str) -> "Misfit":
        """Returns the same error, as seen from the enclosing value."""
        return Misfit(self.expected, self.got, self.hint, place + self.where)


class Codec:
    """Encodes and decodes the values of one annotation.

    `name` is its name in messages, `kinds` are the types of JSON values that `encode` returns.
    """

    name: str
    kinds: frozenset[type]

    def encode(self, value: Any) -> Any:
        """Returns the value as plain JSON; raises `Misfit`."""
        raise NotImplementedError

    def decode(self, json: Any) -> Any:
        """Returns the value for this JSON; raises `Misfit`."""
        raise NotImplementedError

    def parts(self) -> Iterable["Codec"]:
        """Returns the codecs of the parts of its values."""
        return ()

    def refuse(self, value: Any) -> Any:
        """Returns the reference for a handle of a job; raises for everything else."""
        reference = reference_of(value)
        if reference is None:
            raise Misfit(self.name, described(value), advice(value, self.name))
        next(REFERRED)
        return {RESULT: reference}

    def reject(self, json: Any) -> Misfit:
        """Returns the error for JSON that is not of this type."""
        got = f"the text {shorten(json)!r}" if type(json) is str else shorten(json)
        return Misfit(self.name, got)


def escaped(encoded: dict[str, Any]) -> dict[str, Any]:
    """Returns a dict escaped, so that it is not read as a reference."""
    if len(encoded) == 1 and next(iter(encoded)) in RESERVED:
        return {LITERAL: encoded}
    return encoded


def unescaped(json: dict[str, Any]) -> Any:
    """Returns the original of an escaped value."""
    return json[LITERAL] if len(json) == 1 and LITERAL in json else json


def described(value: Any) -> str:
    """Returns a value with its type, shortened: `the tuple (1, 2)`."""
    kind = type(value)
    if value is None or kind in (bool, int, float):
        return shorten(value)
    return f"the {kind.__qualname__} {shorten(value)}"


def advice(value: Any, annotated: str) -> str:
    """Returns what to write instead, for a value that its annotation does not allow."""
    # imported here, since it needs the codecs first
    from windlass.tasks.values.compile import name_for

    name = name_for(type(value))
    if isinstance(value, Iterator):
        return "make a list of it"
    if name is None:
        for kind in _BUILT_IN:
            if isinstance(value, kind):
                return f"make a {kind.__name__} of it, since its own class would be lost"
        if hasattr(value, "tolist"):  # arrays and numbers of numpy
            return "use its tolist()"
        return "use JSON values, or a dataclass or another supported type"
    # A text where a number belongs is a mistake of the caller, not of the annotation.
    wrong = name in _SIMPLE and annotated in _SIMPLE
    return "" if wrong or name == annotated else f"annotate it as {name}"
