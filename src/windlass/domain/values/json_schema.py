"""A small part of JSON Schema: what the answer to a question must look like.

Supported are `type`, `enum`, `const`, `properties`, `required`, `additionalProperties`, `items`,
`prefixItems`, `anyOf`, `$ref` into `$defs`, and bounds of numbers, texts and lists. `title`,
`description`, `default`, `examples` and `format` are for people. Anything else is refused, since a
check that is silently left out would be worse.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.values.errors import InvalidInput

DEPTH: Final = 50

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
_SIZES: Final[Mapping[str, tuple[type, Callable[[int, int], bool], str]]] = {
    "minLength": (str, lambda size, bound: size >= bound, "a text of at least {} characters"),
    "maxLength": (str, lambda size, bound: size <= bound, "a text of at most {} characters"),
    "minItems": (list, lambda size, bound: size >= bound, "a list of at least {}"),
    "maxItems": (list, lambda size, bound: size <= bound, "a list of at most {}"),
}
_OTHERS: Final = frozenset(
    {
        "type", "enum", "const", "properties", "required", "additionalProperties", "items",
        "prefixItems", "anyOf", "$ref", "$defs", "$schema", "title", "description", "default",
        "examples", "format",
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
        if name not in _TYPES:
            raise InvalidInput(f"{field}.type", f"one of {', '.join(_TYPES)}", name)
    for name, kind, shown in (
        ("properties", dict, "an object"), ("$defs", dict, "an object"), ("enum", list, "a list"),
        ("anyOf", list, "a list"), ("prefixItems", list, "a list"), ("required", list, "a list"),
    ):  # fmt: skip
        if name in schema and not isinstance(schema[name], kind):
            raise InvalidInput(f"{field}.{name}", shown, schema[name])
    for name in (*_BOUNDS, *_SIZES):
        if name in schema and not _is_number(schema[name]):
            raise InvalidInput(f"{field}.{name}", "a number", schema[name])
    target = schema.get("$ref", "#/$defs/")
    if not isinstance(target, str) or not target.startswith("#/$defs/"):
        raise InvalidInput(f"{field}.$ref", "a reference into #/$defs/", target)


def find_mismatch(
    schema: Any, value: Any, field: str, defs: Mapping[str, Any] | None = None, depth: int = 0
) -> Mismatch | None:
    """Returns the first place where the value does not fit, or None if it fits."""
    if schema is None or schema is True:
        return None
    if schema is False or depth > DEPTH:
        return Mismatch(field, "nothing here", value)
    defs = schema.get("$defs", {}) if defs is None else defs
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        return find_mismatch(defs.get(name, False), value, field, defs, depth + 1)
    found = _plain(schema, value, field)
    if found is None and "anyOf" in schema:
        parts = schema["anyOf"]
        tried = [find_mismatch(part, value, field, defs, depth + 1) for part in parts]
        if tried and all(one is not None for one in tried):
            shown = " or ".join(dict.fromkeys(one.expected for one in tried if one is not None))
            found = Mismatch(field, shown, value)
    if found is None and isinstance(value, dict):
        found = _inside_object(schema, value, field, defs, depth)
    if found is None and isinstance(value, list):
        found = _inside_list(schema, value, field, defs, depth)
    return found


def _plain(schema: Mapping[str, Any], value: Any, field: str) -> Mismatch | None:
    types = _types_of(schema)
    if types and not any(_TYPES[name](value) for name in types):
        return Mismatch(field, " or ".join(_SHOWN[name] for name in types), value)
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
    return None


def _inside_object(
    schema: Mapping[str, Any], value: dict[str, Any], field: str, defs: Mapping[str, Any],
    depth: int,
) -> Mismatch | None:  # fmt: skip
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
        found = find_mismatch(inner, part, f"{field}.{name}", defs, depth + 1)
        if found is not None:
            return found
    return None


def _inside_list(
    schema: Mapping[str, Any], value: Sequence[Any], field: str, defs: Mapping[str, Any],
    depth: int,
) -> Mismatch | None:  # fmt: skip
    first: Sequence[Any] = schema.get("prefixItems", ())
    for index, part in enumerate(value):
        inner = first[index] if index < len(first) else schema.get("items", True)
        found = find_mismatch(inner, part, f"{field}[{index}]", defs, depth + 1)
        if found is not None:
            return found
    return None


def _types_of(schema: Mapping[str, Any]) -> list[Any]:
    types = schema.get("type", [])
    return types if isinstance(types, list) else [types]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(one: Any, other: Any) -> bool:
    """Compares as JSON does: true is not 1."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


_SHOWN: Final = {
    "null": "null", "boolean": "true or false", "integer": "a whole number", "number": "a number",
    "string": "a text", "array": "a list", "object": "an object",
}  # fmt: skip
