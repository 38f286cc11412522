"""Checks the values of a file against the schema; errors name the line.

Only the keywords that `format.py` uses are understood.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from windlass.domain.values.names import did_you_mean
from windlass.workflows.format import OTHER_KEYS, Schema
from windlass.workflows.nodes import (
    Faults,
    Misdescribed,
    Node,
    UnknownKey,
    mapping,
    sequence,
    together,
)

_KINDS: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
    "array": "a list",
    "object": "a mapping",
}


def check(node: Node, schema: Schema, field: str) -> None:
    """Raises `Misdescribed` for all values that do not fit; `field` is the node's path."""
    errors = list(_errors(node, schema, field))
    if errors:
        raise together(errors)


def fitting(node: Node, schema: Schema, field: str, faults: Faults) -> Node | None:
    """Collects the values that do not fit; returns the node without them, or None."""
    errors = list(_errors(node, schema, field))
    faults.errors += errors
    return _without_errors(node, schema, field) if errors else node


def _without_errors(node: Node, schema: Schema, field: str) -> Node | None:
    options = schema.get("anyOf")
    if options is not None:
        found = next((option for option in options if _fits(node, option)), None)
        return None if found is None else _without_errors(node, found, field)
    if not _fits(node, schema):
        return None
    if isinstance(node.value, list) and "items" in schema:
        parts = [_without_errors(part, schema["items"], field) for part in node.value]
        return sequence([part for part in parts if part is not None], node.place)
    if not isinstance(node.value, dict):
        return node
    left: dict[str, Node] = {}
    others = schema.get("additionalProperties", True)
    for name, child in node.entries().items():
        inner = schema.get("properties", {}).get(name, others)
        kept = child if inner is True else None
        if isinstance(inner, Mapping):
            kept = _without_errors(child, inner, field)
        if kept is not None:
            left[name] = kept
    return mapping(left, node.place, node.keys)


def _errors(node: Node, schema: Schema, field: str) -> Iterator[Misdescribed]:
    options = schema.get("anyOf")
    if options is not None:
        yield from _errors_of_any(node, options, field)
    elif not _fits(node, schema):
        yield node.refuse(field or "the workflow", _describe([schema]), _shown(node))
    elif isinstance(node.value, dict):
        yield from _errors_in(node, schema, field)
    elif isinstance(node.value, list) and "items" in schema:
        for number, item in enumerate(node.value):
            yield from _errors(item, schema["items"], f"{field}[{number}]")


def listed(known: Iterable[str], most: int = 8) -> str:
    """Lists names to choose from; with many, only the first few."""
    names = sorted(known)
    more = ", …" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else "none"


def _errors_of_any(node: Node, options: Sequence[Schema], field: str) -> Iterator[Misdescribed]:
    fitting = next((option for option in options if _fits(node, option)), None)
    if fitting is None:
        yield node.refuse(field, _describe(options), _shown(node))
    else:
        yield from _errors(node, fitting, field)


def _errors_in(node: Node, schema: Schema, field: str) -> Iterator[Misdescribed]:
    known: Mapping[str, Schema] = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    for name, child in node.entries().items():
        where = f"{field}.{name}" if field else name
        if name in known:
            yield from _errors(child, known[name], where)
        elif others is False:
            expected = f"one of {listed(known, most=40)}"
            ours = OTHER_KEYS.get(name)
            hint = f"did you mean {ours}?" if ours in known else did_you_mean(name, known)
            yield UnknownKey(node.place_of(name), field or "the workflow", expected, name, hint)
        elif isinstance(others, Mapping):
            yield from _errors(child, others, where)
    for name in schema.get("required", ()):
        if name not in node.entries():
            yield node.refuse(f"{field}.{name}" if field else name, "given", "nothing")


def _fits(node: Node, schema: Schema) -> bool:
    """Returns whether the value itself has the right type; its contents are checked later."""
    value = node.value
    if "enum" in schema:
        return value in schema["enum"] and not isinstance(value, bool)
    kind = schema.get("type")
    if kind is None:
        return True
    if kind == "string":
        pattern = schema.get("pattern")
        return isinstance(value, str) and (pattern is None or bool(re.search(pattern, value)))
    if kind == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    kinds = {"boolean": bool, "array": list, "object": dict, "null": type(None)}
    return isinstance(value, kinds[kind])


def _describe(options: Sequence[Schema]) -> str:
    words: list[str] = []
    for option in options:
        if "enum" in option:
            words += [str(word) for word in option["enum"]]
        elif "pattern" not in option and option.get("type") != "null":
            words.append(_KINDS[option["type"]])
    if _KINDS["number"] in words:
        words = [word for word in words if word != _KINDS["integer"]]
    single = list(dict.fromkeys(words))
    if len(single) > 2 and single[-1] == _KINDS["boolean"]:
        return ", ".join(single)
    return " or ".join(filter(None, [", ".join(single[:-1]), *single[-1:]]))


def _shown(node: Node) -> object:
    if isinstance(node.value, list):
        return f"a list of {len(node.value)}"
    if isinstance(node.value, dict):
        return "a mapping"
    return "nothing" if node.value is None else node.value
