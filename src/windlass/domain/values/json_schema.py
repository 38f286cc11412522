"""A subset of JSON Schema: what the answer to a question must look like.

Supported are `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`,
`prefixItems`, `uniqueItems`, `anyOf`, `$ref` into `$defs`, bounds of numbers, texts and lists,
`contentEncoding` (base64), and `format` as far as it stands for a Python type. Other formats,
`title`, `description`, `default` and `examples` are for people. Anything else is refused, since
skipping a check silently would be worse.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.domain.values.quantities import parse_duration_ms


class _Format(NamedTuple):
    read: Callable[[str], Any]
    expected: str


def _duration(text: str) -> Any:
    if text.startswith(("P", "-P")):
        return msgspec.convert(text, timedelta)
    return parse_duration_ms(text)


def _number(text: str) -> None:
    if Decimal(text).is_nan():
        raise ValueError(text)


_FORMATS: Final[Mapping[str, _Format]] = {
    "date": _Format(date.fromisoformat, "a date such as 2026-01-31"),
    "date-time": _Format(datetime.fromisoformat, "a time such as 2026-01-31T08:00:00Z"),
    "time": _Format(time.fromisoformat, "a time of day such as 08:30"),
    "duration": _Format(_duration, "a duration such as 15m or PT900S"),
    "uuid": _Format(UUID, "a UUID"),
    "decimal": _Format(_number, "a number as text, such as 9.50"),
}
_BASE64: Final = _Format(lambda text: base64.b64decode(text, validate=True), "bytes as base64")


def misfit(schema: Mapping[str, Any], text: str) -> str | None:
    """Returns what a text should be by `format` or `contentEncoding`; None if it fits.

    Formats that are unknown here, such as `email`, are for people.
    """
    name = schema.get("format")
    wanted = _FORMATS.get(name) if isinstance(name, str) else None
    if schema.get("contentEncoding") == "base64":
        wanted = _BASE64
    if wanted is None:
        return None
    try:
        wanted.read(text)
    except (ValueError, ArithmeticError, WindlassError, msgspec.ValidationError):
        return wanted.expected
    return None


_OR: Final = " or "

DEPTH: Final = 50
BRANCHES: Final = 20_000  # references and alternatives followed by one comparison

_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _is_number(value) and value % 1 == 0,
    "number": lambda value: _is_number(value),  # noqa: PLW0108 - defined below
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
_BOUNDS: Final[Mapping[str, tuple[Callable[[Any, Any], bool], str]]] = {
    "minimum": (lambda value, bound: value >= bound, "at least {}"),
    "maximum": (lambda value, bound: value <= bound, "at most {}"),
    "exclusiveMinimum": (lambda value, bound: value > bound, "more than {}"),
    "exclusiveMaximum": (lambda value, bound: value < bound, "less than {}"),
}
_SIZES: Final[Mapping[str, tuple[type[str] | type[list[Any]], Callable[[int, int], bool], str]]] = {
    "minLength": (str, lambda size, bound: size >= bound, "a text of at least {} characters"),
    "maxLength": (str, lambda size, bound: size <= bound, "a text of at most {} characters"),
    "minItems": (list, lambda size, bound: size >= bound, "a list of at least {}"),
    "maxItems": (list, lambda size, bound: size <= bound, "a list of at most {}"),
}
_OTHERS: Final = frozenset(
    {
        "type", "enum", "const", "properties", "required", "additionalProperties", "items",
        "prefixItems", "anyOf", "$ref", "$defs", "$schema", "title", "description", "default",
        "examples", "format", "uniqueItems", "contentEncoding",
    }
)  # fmt: skip
KNOWN: Final = _OTHERS | _BOUNDS.keys() | _SIZES.keys()


class Mismatch(NamedTuple):
    """Where a value does not fit its schema, and why."""

    field: str
    expected: str
    got: Any


def check_schema(schema: Any, field: str = "schema", depth: int = 0) -> None:
    """Raises `InvalidInput` for a schema that this module cannot check."""
    if schema is None or schema is True:
        return
    if not isinstance(schema, dict):
        raise InvalidInput(field, "a JSON Schema (an object)", schema)
    if depth > DEPTH:
        raise InvalidInput(field, f"at most {DEPTH} levels", "more")
    for name in schema:
        if name not in KNOWN:
            raise InvalidInput(f"{field}.{name}", f"one of {', '.join(sorted(KNOWN))}", name)
    _check_parts(schema, field)
    for name in ("properties", "$defs"):
        for key, part in schema.get(name, {}).items():
            check_schema(part, f"{field}.{name}.{key}", depth + 1)
    for name in ("anyOf", "prefixItems"):
        for index, part in enumerate(schema.get(name, [])):
            check_schema(part, f"{field}.{name}[{index}]", depth + 1)
    for name in ("items", "additionalProperties"):
        if name in schema and schema[name] is not False:
            check_schema(schema[name], f"{field}.{name}", depth + 1)


def _check_parts(schema: Mapping[str, Any], field: str) -> None:
    """Checks the forms of the keywords themselves."""
    for name in _types_of(schema):
        if not isinstance(name, str) or name not in _TYPES:
            raise InvalidInput(f"{field}.type", f"one of {', '.join(_TYPES)}", name)
    for name, kind, shown in (
        ("properties", dict, "an object"), ("$defs", dict, "an object"), ("enum", list, "a list"),
        ("anyOf", list, "a list"), ("prefixItems", list, "a list"), ("required", list, "a list"),
    ):  # fmt: skip
        if name in schema and not isinstance(schema[name], kind):
            raise InvalidInput(f"{field}.{name}", shown, schema[name])
    for name in schema.get("required", ()):
        if not isinstance(name, str):
            raise InvalidInput(f"{field}.required", "names of fields", name)
    for name in (*_BOUNDS, *_SIZES):
        if name in schema and not _is_number(schema[name]):
            raise InvalidInput(f"{field}.{name}", "a number", schema[name])
    if schema.get("contentEncoding", "base64") != "base64":
        raise InvalidInput(f"{field}.contentEncoding", "base64", schema["contentEncoding"])
    target = schema.get("$ref", "#/$defs/")
    if not isinstance(target, str) or not target.startswith("#/$defs/"):
        raise InvalidInput(f"{field}.$ref", "a reference into #/$defs/", target)


def find_mismatch(schema: Any, value: Any, field: str) -> Mismatch | None:
    """Returns the first place where the value does not fit, or None if it fits."""
    defs = schema.get("$defs", {}) if isinstance(schema, dict) else {}
    return _Comparison(defs).compare(schema, value, field, 0)


class _Comparison:
    """Compares one value with one schema, within a limited number of branches."""

    def __init__(self, defs: Mapping[str, Any]) -> None:
        self._defs = defs
        self._left = BRANCHES

    def compare(self, schema: Any, value: Any, field: str, depth: int) -> Mismatch | None:
        if self._left < 0 or depth > DEPTH:
            return Mismatch(field, "an answer that can be checked in a few steps", value)
        if schema is None or schema is True:
            return None
        if schema is False:
            return Mismatch(field, "nothing here", value)
        if "$ref" in schema:
            self._left -= 1
            name = schema["$ref"].removeprefix("#/$defs/")
            return self.compare(self._defs.get(name, False), value, field, depth + 1)
        found = _plain(schema, value, field) or self._any(schema, value, field, depth)
        if found is None and isinstance(value, dict):
            found = self._inside_object(schema, value, field, depth)
        if found is None and isinstance(value, list):
            found = self._inside_list(schema, value, field, depth)
        return found

    def _any(
        self, schema: Mapping[str, Any], value: Any, field: str, depth: int
    ) -> Mismatch | None:
        wanted: list[str] = []
        for part in schema.get("anyOf", ()):
            self._left -= 1
            found = self.compare(part, value, field, depth + 1)
            if found is None:
                return None
            wanted += found.expected.split(_OR)  # That of parts may have alternatives, too.
        return Mismatch(field, _OR.join(dict.fromkeys(wanted)), value) if wanted else None

    def _inside_object(
        self, schema: Mapping[str, Any], value: dict[str, Any], field: str, depth: int
    ) -> Mismatch | None:
        properties: Mapping[str, Any] = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                return Mismatch(f"{field}.{name}", "a value", "nothing")
        rest = schema.get("additionalProperties", True)
        for name, part in value.items():
            if name not in properties and rest is False:
                known = ", ".join(properties) or "none"
                return Mismatch(f"{field}.{name}", f"one of the fields {known}", name)
            inner = properties.get(name, rest)
            found = self.compare(inner, part, f"{field}.{name}", depth + 1)
            if found is not None:
                return found
        return None

    def _inside_list(
        self, schema: Mapping[str, Any], value: Sequence[Any], field: str, depth: int
    ) -> Mismatch | None:
        first: Sequence[Any] = schema.get("prefixItems", ())
        for index, part in enumerate(value):
            inner = first[index] if index < len(first) else schema.get("items", True)
            found = self.compare(inner, part, f"{field}[{index}]", depth + 1)
            if found is not None:
                return found
        return None


def _plain(schema: Mapping[str, Any], value: Any, field: str) -> Mismatch | None:
    types = _types_of(schema)
    if types and not any(_TYPES[name](value) for name in types):
        return Mismatch(field, _OR.join(_SHOWN[name] for name in types), value)
    if "enum" in schema and not any(_equal(value, one) for one in schema["enum"]):
        return Mismatch(field, f"one of {', '.join(map(repr, schema['enum']))}", value)
    if "const" in schema and not _equal(value, schema["const"]):
        return Mismatch(field, repr(schema["const"]), value)
    for name, (holds, text) in _BOUNDS.items():
        if name in schema and _is_number(value) and not holds(value, schema[name]):
            return Mismatch(field, text.format(schema[name]), value)
    for name, (kind, fits, text) in _SIZES.items():
        if name in schema and isinstance(value, kind) and not fits(len(value), schema[name]):
            return Mismatch(field, text.format(schema[name]), f"{len(value)}")
    if isinstance(value, str) and (wanted := misfit(schema, value)) is not None:
        return Mismatch(field, wanted, value)
    if isinstance(value, list) and schema.get("uniqueItems") is True and _repeats(value):
        return Mismatch(field, "a list without duplicates", value)
    return None


def _types_of(schema: Mapping[str, Any]) -> list[Any]:
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def _repeats(items: Sequence[Any]) -> bool:
    """Returns whether a list has a duplicate; compares items as JSON text, which is fast."""
    return len({msgspec.json.encode(item, order="sorted") for item in items}) < len(items)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(one: Any, other: Any) -> bool:
    """Compares as JSON does: true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


_SHOWN: Final = {
    "null": "null", "boolean": "true or false", "integer": "a whole number", "number": "a number",
    "string": "a text", "array": "a list", "object": "an object",
}  # fmt: skip
