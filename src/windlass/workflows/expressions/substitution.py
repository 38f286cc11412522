"""`${{ … }}` in values and names: what stands there is replaced once, and nothing is computed.

`${{ parameters.NAME }}`, `${{ matrix.NAME }}` and `${{ index }}` are all there is. A value
that is nothing else takes the type of what it stands for; within a text it is text.
`$${{` is a plain `${{`.
"""

import re
from collections.abc import Mapping
from typing import Final

from windlass.domain.values.suggest import did_you_mean
from windlass.workflows.checking import listed
from windlass.workflows.nodes import MARK, Misdescribed, Node, Place, mapping, sequence

_FOUND: Final = re.compile(r"\$\$\{\{|\$\{\{(?:\s*([A-Za-z0-9_.-]+)\s*\}\})?")
TEXT_LIMIT: Final = 64 << 20  # characters that parameters fill in, in a whole workflow
SHELL: Final = ("sh", "-c")
_WHOLE: Final = re.compile(r"\$\{\{\s*([A-Za-z0-9_.-]+)\s*\}\}")


class Budget:
    """How much text may be filled in for names: a short file can ask for more than memory holds."""

    def __init__(self) -> None:
        self._left = TEXT_LIMIT

    def spend(self, node: Node, field: str, place: Place) -> None:
        """Counts the use of a value; raises `Misdescribed` if that is too much."""
        self._left -= _weight(node)
        if self._left < 0:
            expected = f"within the {TEXT_LIMIT >> 20} MiB that parameters may fill in"
            raise Misdescribed(place, field, expected, "more")


class Scope:
    """What names stand for. It remembers which of them were asked for."""

    def __init__(self, values: Mapping[str, Node], budget: Budget) -> None:
        self._values = values
        self._budget = budget
        self._used: set[str] = set()

    def with_values(self, more: Mapping[str, Node]) -> "Scope":
        """Returns a scope with more names."""
        return Scope({**self._values, **more}, self._budget)

    def knows(self, name: str) -> bool:
        """Returns whether a name is defined."""
        return name in self._values

    def uses_more_than(self, other: "Scope") -> bool:
        """Returns whether a name was looked up that the other scope lacks."""
        return not all(map(other.knows, self._used))

    def find(self, name: str, place: Place, field: str) -> Node:
        """Returns the value of a name."""
        found = self._values.get(name)
        if found is None:
            expected = f"without names other than {listed(self._values)}"
            hint = did_you_mean(name, self._values)
            raise Misdescribed(place, field, expected, f"{MARK} {name} }}}}", hint)
        self._used.add(name)
        self._budget.spend(found, field, place)
        return found


def substitute(node: Node, scope: Scope, field: str) -> Node:
    """Returns the node with every expression replaced; the same node if there is none."""
    if not node.live:
        return node
    value = node.value
    if isinstance(value, dict):
        return _entries(node, scope, field)
    if isinstance(value, list):
        items = [substitute(item, scope, f"{field}[{n}]") for n, item in enumerate(value)]
        return sequence(items, node.place)
    whole = _WHOLE.fullmatch(value)
    if whole:
        found = scope.find(whole[1], node.place, field)
        if isinstance(found.value, list):
            return sequence(found.value, node.place)
        return Node(found.value, node.place, found.text)
    text = substitute_text(value, scope, node.place, field)
    return Node(text, node.place, text)


def substitute_text(text: str, scope: Scope, place: Place, field: str) -> str:
    """Returns a text with every expression replaced."""

    def replace(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return MARK
        if match[1] is None:
            expected = f"free of {MARK} but for {MARK} parameters.NAME }}}} and its like"
            raise Misdescribed(place, field, expected, text[match.start() :])
        return scope.find(match[1], place, field).text

    return _FOUND.sub(replace, text)


def substitute_line(node: Node, scope: Scope, field: str) -> Node:
    """Returns a line for the shell as words; names in it become the shell's own variables.

    So a value is never read as a part of the line, whatever it contains. A line that is one list
    stands for the words themselves.
    """
    whole = _WHOLE.fullmatch(node.value)
    if whole and isinstance(scope.find(whole[1], node.place, field).value, list):
        return substitute(node, scope, field)
    values: dict[str, str] = {}

    def replace(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return MARK
        if match[1] is None:
            expected = f"free of {MARK} but for {MARK} parameters.NAME }}}} and its like"
            raise Misdescribed(node.place, field, expected, node.value[match.start() :])
        values.setdefault(match[1], scope.find(match[1], node.place, field).text)
        return f"${{{list(values).index(match[1]) + 1}}}"

    line = _FOUND.sub(replace, node.value)
    words = [*SHELL, line, *([SHELL[0], *values.values()] if values else [])]
    return sequence([Node(word, node.place, word) for word in words], node.place)


def _weight(node: Node) -> int:
    items = node.value if isinstance(node.value, list) else ()
    return 1 + len(node.text) + sum(map(_weight, items))


def _entries(node: Node, scope: Scope, field: str) -> Node:
    entries: dict[str, Node] = {}
    keys: dict[str, Place] = {}
    for name, child in node.entries().items():
        place = node.place_of(name)
        key = substitute_text(name, scope, place, field) if MARK in name else name
        if key in entries:
            raise Misdescribed(place, field, "without the same name twice", key)
        entries[key] = substitute(child, scope, f"{field}.{key}" if field else key)
        keys[key] = place
    return mapping(entries, node.place, keys)
