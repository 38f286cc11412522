"""Converts plain values to declared types; each error names its field."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple, TypeVar

import msgspec

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import did_you_mean

T = TypeVar("T")

_AT: Final = re.compile(r"(?P<what>.*?)(?: - at (?:`key` in )?`\$(?P<path>[^`]*)`)?", re.DOTALL)
_FIELD: Final = re.compile(
    r"Object (?:(?P<missing>missing required)|contains unknown) field `(?P<name>.*)`", re.DOTALL
)
_TYPES: Final = re.compile(r"Expected `(?P<types>[^`]*)`(?P<more>.*?)(?:, got `(?P<got>.*)`)?")
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
        raise _explain_misfit(kind, str(error), field) from None
    except UnicodeEncodeError:  # Arguments of a command may hold bytes that are not text.
        raise InvalidInput(field, "valid text", "a lone surrogate") from None
    except RecursionError:
        raise InvalidInput(field, "nested less deeply", "a very deep value") from None


class Misfit(NamedTuple):
    """A parsed message of msgspec about a value; None for what it does not mention."""

    what: str
    path: str  # from the value on, such as `.jobs[0].task`
    missing: str | None  # a missing required field
    unknown: str | None  # an unknown field
    types: str | None  # the expected ones, separated by ` | `
    more: str = ""  # what else it says, such as a range
    got: str | None = None  # the type of the given value


def read_misfit(message: str) -> Misfit:
    """Parses a message of msgspec."""
    at = _AT.fullmatch(message)
    what, path = (at["what"], at["path"] or "") if at else (message, "")
    if field := _FIELD.fullmatch(what):
        is_missing = field["missing"] is not None
        name = field["name"]
        return Misfit(what, path, name if is_missing else None, None if is_missing else name, None)
    if types := _TYPES.fullmatch(what):
        return Misfit(what, path, None, None, types["types"], types["more"], types["got"])
    return Misfit(what, path, None, None, None)


def _explain_misfit(kind: type, message: str, field: str) -> InvalidInput:
    """Returns msgspec's message about a value as one of our errors."""
    misfit = read_misfit(message)
    where = field + misfit.path
    if misfit.unknown is not None:
        fields: tuple[str, ...] = getattr(kind, "__struct_fields__", ()) if not misfit.path else ()
        expected = f"left out (known: {', '.join(fields)})" if fields else "left out"
        hint = did_you_mean(misfit.unknown, fields)
        return InvalidInput(f"{where}.{misfit.unknown}", expected, "an unknown field", hint)
    if misfit.missing is not None:
        return InvalidInput(f"{where}.{misfit.missing}", "given", "nothing")
    if misfit.types and misfit.got:
        expected = named_types(misfit.types, _NAMES) + misfit.more
        return InvalidInput(where, expected, named_types(misfit.got, _NAMES))
    return InvalidInput(where, "valid", misfit.what)


def named_types(types: str, names: Mapping[str, str]) -> str:
    """Returns types as people name them: `str | null` is "text or nothing"."""
    return " or ".join(names.get(name, name) for name in types.split(" | "))
