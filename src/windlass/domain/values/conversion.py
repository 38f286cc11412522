"""Converts plain values to declared types; each error names its field."""

import re
from typing import Final, TypeVar

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.suggest import did_you_mean

T = TypeVar("T")

_AT: Final = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(?P<name>.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(?P<name>.*)`", re.DOTALL)
_TYPES: Final = re.compile(r"Expected `(?P<expected>.+?)`(?P<more>.*), got `(?P<got>.+?)`")
_NAMES: Final = {
    "object": "a mapping",
    "array": "a list",
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
}


def convert(value: object, kind: type[T], field: str) -> T:
    """Returns `value` as a `kind`; raises `InvalidInput` for the part that does not fit."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise explain_misfit(kind, str(error), field) from None
    except RecursionError:
        raise InvalidInput(field, "nested less deeply", "a very deep value") from None


def explain_misfit(kind: type, message: str, field: str) -> InvalidInput:
    """Returns what msgspec says about a value as an error of ours."""
    at = _AT.fullmatch(message)
    what, path = (at["what"], at["path"] or "") if at else (message, "")
    where = field + path
    if unknown := _UNKNOWN.fullmatch(what):
        fields: tuple[str, ...] = getattr(kind, "__struct_fields__", ()) if not path else ()
        expected = f"left out (known: {', '.join(fields)})" if fields else "left out"
        hint = did_you_mean(unknown["name"], fields)
        return InvalidInput(f"{where}.{unknown['name']}", expected, "an unknown field", hint)
    if missing := _MISSING.fullmatch(what):
        return InvalidInput(f"{where}.{missing['name']}", "given", "nothing")
    if types := _TYPES.fullmatch(what):
        expected = _named(types["expected"]) + types["more"]
        return InvalidInput(where, expected, _named(types["got"]))
    return InvalidInput(where, "valid", what)


def _named(types: str) -> str:
    """Returns the names that people use: `str | null` is "text or nothing"."""
    return " or ".join(_NAMES.get(name, name) for name in types.split(" | "))
