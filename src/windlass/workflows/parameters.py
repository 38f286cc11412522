"""Parameters: what a file declares, and the given values."""

from collections.abc import Mapping
from typing import Any, Final

from windlass.domain.values.names import did_you_mean
from windlass.workflows.checking import listed
from windlass.workflows.nodes import Faults, Node, Place, UnknownKey, plain, sequence
from windlass.workflows.reading import scalar_of

_EXPECTED: Final = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "list": "a list of values, or text with commas between them",
}


def bind(
    declared: Node | None, given: Mapping[str, Node], at: Place, faults: Faults
) -> dict[str, Node]:
    """Returns a value for every parameter; reports those that are missing, unknown or wrong."""
    entries = declared.entries() if declared is not None else {}
    for name, node in given.items():
        if name not in entries:
            place = node.place if node.place.line else at
            hint, expected = did_you_mean(name, entries), f"one of {listed(entries)}"
            faults.errors.append(UnknownKey(place, "parameters", expected, name, hint))
    bound: dict[str, Node] = {}
    for name, declaration in entries.items():
        with faults:
            bound[name] = _value(name, declaration, given.get(name))
    return bound


def values(bound: Mapping[str, Node]) -> dict[str, Any]:
    """Returns what is stored with the workflow."""
    return {name: plain(node) for name, node in bound.items()}


def _value(name: str, declaration: Node, given: Node | None) -> Node:
    default = declaration.get("default")
    if default is not None and default.value is None:
        default = None
    kind = kind_of(declaration)
    field = f"parameters.{name}"
    choices = declaration.get("choices")
    single = "string" if kind == "list" else kind
    allowed = [_convert(c, single, f"{field}.choices") for c in choices.items()] if choices else []
    fallback = None if default is None else _chosen(default, kind, allowed, f"{field}.default")
    if given is not None:
        own = Node(given.value, given.place if given.place.line else declaration.place, given.text)
        return _chosen(own, kind, allowed, field)
    if fallback is None:
        raise declaration.refuse(field, f"given ({_EXPECTED[kind]})", "nothing")
    return fallback


def kind_of(declaration: Node) -> str:
    """Returns the declared type, else that of the default, else text."""
    declared, default = declaration.get("type"), declaration.get("default")
    if declared is not None and declared.value is not None:
        return str(declared.value)
    value = None if default is None else default.value
    if isinstance(value, list):
        return "list"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    return "number" if isinstance(value, float) else "string"


def _chosen(node: Node, kind: str, allowed: list[Node], field: str) -> Node:
    if kind == "list":
        return _list(node, allowed, field)
    value = _convert(node, kind, field)
    if allowed and value.value not in [choice.value for choice in allowed]:
        raise node.refuse(field, f"one of {', '.join(choice.text for choice in allowed)}")
    return value


def _list(node: Node, allowed: list[Node], field: str) -> Node:
    """Returns a list with its values as written; a text is split at commas."""
    if isinstance(node.value, str):
        texts = [text.strip() for text in node.text.split(",")] if node.text.strip() else []
        items = [Node(text, node.place, text) for text in texts]
    elif isinstance(node.value, list):
        items = node.value
    else:
        raise node.refuse(field, _EXPECTED["list"])
    made = sequence([_chosen(item, "string", allowed, field) for item in items], node.place)
    made.text = ",".join(item.text for item in made.items())
    return made


def _convert(node: Node, kind: str, field: str) -> Node:
    """Converts the value to its type; numbers keep their text as written."""
    value, text = node.value, node.text
    if kind == "string":
        if isinstance(value, str) or _is_number(value):
            if "\0" in text or not _is_encodable(text):
                raise node.refuse(field, "text without NUL and lone surrogates")
            return Node(text, node.place, text)
        raise node.refuse(field, _EXPECTED[kind])
    if isinstance(value, str):
        value = scalar_of(value)
    if kind == "number" and _is_number(value):
        return Node(value, node.place, text)
    if type(value) is {"integer": int, "boolean": bool}.get(kind):
        return Node(value, node.place, text)
    raise node.refuse(field, _EXPECTED[kind])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
