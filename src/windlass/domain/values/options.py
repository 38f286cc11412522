"""Options document themselves: their types hold the unit, smallest value and meaning.

The reference page, `--help`, the names in files and in the environment, and the checks at start all
come from there. Values are read as people write them in a file, a variable or a flag.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Final, get_args, get_origin

from msgspec import NODEFAULT, Meta, Struct
from msgspec.structs import fields

from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import (
    DURATION_LIMIT_MS,
    exact_size,
    format_duration,
    parse_duration_ms,
    parse_size,
)

# Far above every sensible value, far below the limit of a 64-bit column.
_MAX_OF_UNIT: Final = {"ms": DURATION_LIMIT_MS, "bytes": 2**40}
_MAX_COUNT: Final = 1_000_000_000
_DAY_MS: Final = 86_400_000

NEVER: Final = "never"


class Option(Struct, frozen=True):
    """One option as the reference page shows it; `name` is the path of its field."""

    name: str
    unit: str
    default: object
    description: str
    kind: object = int

    @property
    def shown(self) -> str:
        """Returns its name for people, without the unit suffix of the field."""
        return shown_name(self.name, self.unit)

    @property
    def variable(self) -> str:
        """Returns its environment variable."""
        return "WINDLASS_" + self.shown.replace(".", "_").upper()

    @property
    def flag(self) -> str:
        """Returns the flag that it once had; now `--set` takes its name."""
        return "--" + self.shown.replace(".", "-").replace("_", "-")

    @property
    def is_table(self) -> bool:
        """Returns True if it holds one value for each of several names."""
        return get_origin(self.kind) is dict

    @property
    def is_list(self) -> bool:
        """Returns True if it holds names."""
        return get_origin(self.kind) is tuple

    def show(self, value: object) -> str:
        """Formats a value as a person would write it."""
        if isinstance(value, dict):
            return ",".join(f"{name}={self.show(one)}" for name, one in value.items())
        if isinstance(value, tuple | list):
            return ",".join(str(one) for one in value)
        if value is None:
            return NEVER
        if isinstance(value, int) and self.unit == "ms":
            return _show_duration(value)
        if isinstance(value, int) and self.unit == "bytes":
            return exact_size(value)
        return f"{value:g}" if isinstance(value, float) else str(value)


def doc(description: str, unit: str = "ms", *, least: float = 0) -> Meta:
    """Returns the annotation of an option; numbers below `least` are refused."""
    return Meta(description=description, extra={"unit": unit, "least": least})


def describe_fields(kind: type[Struct], prefix: str = "") -> list[Option]:
    """Returns the options of a type in order, including nested types under `name.`."""
    options: list[Option] = []
    for field in fields(kind):
        name = prefix + field.name
        meta = _meta(field.type)
        if meta is not None:
            default = _default(field.default, field.default_factory)
            annotated = get_args(field.type)[0]
            options.append(Option(name, _unit(meta), default, meta.description or "", annotated))
        elif isinstance(field.type, type) and issubclass(field.type, Struct):
            options.extend(describe_fields(field.type, name + "."))
    return options


def check_fields(options: Struct, prefix: str = "") -> None:
    """Raises `InvalidInput` for values that are not numbers, too small or absurdly large."""
    for field in fields(options):
        name = prefix + field.name
        value = getattr(options, field.name)
        meta = _meta(field.type)
        if isinstance(value, Struct):
            check_fields(value, name + ".")
        elif meta is not None:
            _check_value(name, value, get_args(field.type)[0], meta)


def shown_ms(ms: float) -> str:
    """Formats milliseconds as seconds: 90 s, 0.5 s."""
    return f"{ms / 1000:g} s"


def shown_name(name: str, unit: str) -> str:
    """Returns a field's name without its unit."""
    return name.removesuffix("_ms") if unit == "ms" else name


def _show_duration(ms: int) -> str:
    """Formats like `format_duration`, but shows whole days as days."""
    return f"{ms // _DAY_MS}d" if ms and ms % _DAY_MS == 0 else format_duration(ms)


def _default(default: object, factory: object) -> object:
    if default is not NODEFAULT:
        return default
    return factory() if callable(factory) else None


def _check_value(name: str, value: object, kind: object, meta: Meta) -> None:
    if kind in (int, float) or (value is not None and kind == int | None):
        _check_number(name, value, kind is float, meta)
    elif get_origin(kind) is dict:
        if not isinstance(value, dict):
            raise InvalidInput(name, "a table of numbers by name", value)
        for key, number in value.items():
            _check_number(f"{name}.{key}", number, False, meta)


def _check_number(name: str, value: object, fraction: bool, meta: Meta) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float if fraction else int):
        raise InvalidInput(name, "a number" if fraction else "an integer", value)
    unit = _unit(meta)
    is_ms = unit == "ms"
    least = (meta.extra or {}).get("least", 0)
    largest = _MAX_OF_UNIT.get(unit, _MAX_COUNT)
    # Written this way so that NaN, which compares false with everything, is refused too.
    if not value >= least:
        bound, got = (shown_ms(least), shown_ms(value)) if is_ms else (least, value)
        raise InvalidInput(shown_name(name, unit), f"at least {bound}", got)
    if value > largest:
        raise InvalidInput(name, f"at most {largest}", value)


def _meta(annotation: object) -> Meta | None:
    if get_origin(annotation) is not Annotated:
        return None
    return next((item for item in get_args(annotation)[1:] if isinstance(item, Meta)), None)


def _unit(meta: Meta) -> str:
    return str((meta.extra or {}).get("unit", ""))


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
    """Returns one value; for a table, the value under a name."""
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
