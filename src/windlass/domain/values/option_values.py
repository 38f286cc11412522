"""Reads values of options as people write them in a file, a variable or a flag."""

import re
from collections.abc import Mapping
from typing import Final

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.options import NEVER, Option
from windlass.domain.values.quantities import parse_duration_ms, parse_size

_INTEGER: Final = re.compile(r"-?[0-9]{1,30}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")


def read_text(option: Option, text: str, field: str) -> object:
    """Returns the value of a variable or a flag; `field` names it in errors."""
    if option.is_table:
        return read_typed(option, _table(text, field), field)
    if option.is_list:
        return tuple(part.strip() for part in text.split(",") if part.strip())
    if option.unit in ("ms", "bytes"):
        return read_entry(option, text, field)
    return read_entry(option, _number(text, option.kind is float), field)


def read_typed(option: Option, value: object, field: str) -> object:
    """Returns the value from a typed file; `field` names it in errors."""
    if option.is_table:
        if not isinstance(value, Mapping):
            raise InvalidInput(field, "a table of values by name", value)
        return {str(name): read_entry(option, one, field) for name, one in value.items()}
    if option.is_list:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise InvalidInput(field, "a list of names", value)
        return tuple(value)
    return read_entry(option, value, field)


def read_entry(option: Option, value: object, field: str) -> object:
    """Returns one value; of a table, the one under a name."""
    if option.kind == int | None and value == NEVER:
        return None
    if option.unit == "ms":
        return _duration(option, value, field)
    if option.unit == "bytes":
        return parse_size(value, field)
    if option.kind is float:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidInput(field, "a number", _quoted(value))
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidInput(field, "an integer", _quoted(value))
    return value


def _duration(option: Option, value: object, field: str) -> int:
    try:
        return parse_duration_ms(value, field)
    except InvalidInput as error:
        if option.kind != int | None:
            raise
        raise InvalidInput(field, f"{error.expected}, or {NEVER}", value) from None


def _quoted(value: object) -> object:
    """Returns a text in quotes: in a typed file, the quotes are what is wrong with "3"."""
    return f'"{value}"' if isinstance(value, str) else value


def _table(text: str, field: str) -> dict[str, object]:
    table: dict[str, object] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        name, separator, value = part.partition("=")
        if not separator or not name.strip():
            raise InvalidInput(field, "comma-separated NAME=VALUE pairs", text)
        table[name.strip()] = value.strip()
    return table


def _number(text: str, fraction: bool) -> object:
    """Returns the number that a text means, else the text itself, which is then refused."""
    stripped = text.strip()
    if _INTEGER.fullmatch(stripped):
        return int(stripped)
    return float(stripped) if fraction and _NUMBER.fullmatch(stripped) else text
