"""`${{ … }}` in values and names: each is replaced once, and nothing is computed.

The names are `${{ parameters.NAME }}`, `${{ matrix.NAME }}` and `${{ index }}`, and in the inputs
of a job `${{ jobs.NAME.outputs.OUTPUT }}`, which is known when that job has completed. A value that
is only an expression takes the type of its replacement; within a text it is text. `$${{` is a plain
`${{`.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from windlass.domain.tasks.references import RESULT, TEXT
from windlass.domain.values.names import did_you_mean
from windlass.workflows.checking import listed
from windlass.workflows.nodes import (
    MARK,
    Consequence,
    Faults,
    Misdescribed,
    Node,
    Place,
    Referring,
    mapping,
    sequence,
)

_OUTPUT: Final = re.compile(r"jobs\.(.+)\.outputs\.([\w-]+)")
_NAME: Final = r"(jobs\.[^\s{}]+|[A-Za-z0-9_.-]+)"
_FOUND: Final = re.compile(rf"\$\$\{{\{{|\$\{{\{{(?:\s*{_NAME}\s*\}}\}})?")
TEXT_LIMIT: Final = 64 << 20  # characters that parameters fill in, in a whole workflow
_OTHER_FIRST: Final = {
    "inputs": "parameters", "job": "jobs", "needs": "jobs", "param": "parameters",
    "params": "parameters", "vars": "parameters",
}  # fmt: skip
SHELL: Final = ("sh", "-c")
_WHOLE: Final = re.compile(rf"\$\{{\{{\s*{_NAME}\s*\}}\}}")


class Budget:
    """How much text names may expand to: a short file can ask for more than memory holds."""

    def __init__(self) -> None:
        self._left = TEXT_LIMIT

    def spend(self, node: Node, field: str, place: Place) -> None:
        """Counts the use of a value; raises `Misdescribed` if that is too much."""
        self._left -= _weight(node)
        if self._left < 0:
            expected = f"within the {TEXT_LIMIT >> 20} MiB that parameters may expand to"
            raise Misdescribed(place, field, expected, "more")


class Scope:
    """The values of names. It remembers which of them were used."""

    def __init__(
        self,
        values: Mapping[str, Node],
        budget: Budget,
        unknown: frozenset[str] = frozenset(),
        outputs: bool = False,
    ) -> None:
        self._values = values
        self._budget = budget
        self._unknown = unknown  # names whose values are wrong, which was already reported
        self._used: set[str] = set()
        self.outputs = outputs  # whether outputs of jobs may be used here
        self.refers = False  # whether some are used

    def with_values(self, more: Mapping[str, Node]) -> "Scope":
        """Returns a scope with more names."""
        return Scope({**self._values, **more}, self._budget, self._unknown, self.outputs)

    def with_outputs(self) -> "Scope":
        """Returns a scope for values that may use outputs of jobs."""
        return Scope(self._values, self._budget, self._unknown, outputs=True)

    def output(self, name: str, place: Place, field: str) -> dict[str, Any] | None:
        """Returns the reference that `jobs.NAME.outputs.OUTPUT` means; None for other names."""
        if not name.startswith("jobs."):
            return None
        found = _OUTPUT.fullmatch(name)
        if found is None:
            raise Misdescribed(place, field, "jobs.NAME.outputs.OUTPUT", name)
        if not self.outputs:
            expected = "without outputs of jobs, which only run, env and args can use"
            raise Misdescribed(place, field, expected, f"{MARK} {name} }}}}")
        self.refers = True
        return {RESULT: {"job": found[1], "output": found[2]}}

    @property
    def names(self) -> list[str]:
        """Returns the defined names, including those whose values are wrong."""
        return [*self._values, *self._unknown]

    def knows(self, name: str) -> bool:
        """Returns whether a name is defined."""
        return name in self._values

    def uses_more_than(self, other: "Scope") -> bool:
        """Returns whether a name was used that the other scope lacks."""
        return not all(map(other.knows, self._used))

    def find(self, name: str, place: Place, field: str) -> Node:
        """Returns the value of a name."""
        found = self._values.get(name)
        if found is None and name in self._unknown:
            raise Consequence(place, field, f"a value for {name}", "none")
        if found is None:
            known = self.names
            expected = f"an expression with known names ({listed(known)})"
            if not known:
                expected = f"without {MARK} … }}}}, as there are no parameters and no matrix"
            ours = _translated(name)
            hint = did_you_mean(ours, known, 1) or did_you_mean(name, known)
            if not hint and ours.startswith("jobs."):
                hint = f"did you mean {ours}?"
            raise Misdescribed(place, field, expected, f"{MARK} {name} }}}}", hint)
        self._used.add(name)
        self._budget.spend(found, field, place)
        return found


def _translated(name: str) -> str:
    """Returns another system's name in our spelling."""
    first, dot, rest = name.partition(".")
    return f"{_OTHER_FIRST.get(first, first)}{dot}{rest}"


def substitute(node: Node, scope: Scope, field: str) -> Node:
    """Returns the node with every expression replaced; the same node if there is none."""
    if not node.live:
        return node
    value = node.value
    if isinstance(value, dict):
        return _entries(node, scope, field)
    if isinstance(value, list):
        faults, items = Faults(), list[Node]()
        for number, item in enumerate(value):
            with faults:
                items.append(substitute(item, scope, f"{field}[{number}]"))
        faults.tell()
        return sequence(items, node.place)
    whole = _WHOLE.fullmatch(value)
    if whole:
        reference = scope.output(whole[1], node.place, field)
        if reference is not None:
            return _referring(value, reference, node.place)
        found = scope.find(whole[1], node.place, field)
        if isinstance(found.value, list):
            return sequence(found.value, node.place)
        return Node(found.value, node.place, found.text)
    return _within_text(node, scope, field)


def _within_text(node: Node, scope: Scope, field: str) -> Node:
    """Returns a text with the names in it replaced; outputs of jobs are joined in later."""
    pieces: list[Any] = [""]
    done = 0
    for match in _FOUND.finditer(node.value) if "jobs." in node.value else ():
        named = match[1]
        reference = None if named is None else scope.output(named, node.place, field)
        if reference is not None:
            before = node.value[done : match.start()]
            pieces += [substitute_text(before, scope, node.place, field), reference]
            done = match.end()
    rest = substitute_text(node.value[done:], scope, node.place, field)
    if not done:
        return Node(rest, node.place, rest)
    parts = [part for part in (*pieces, rest) if part != ""]
    return _referring(node.value, {TEXT: parts}, node.place)


def _referring(text: str, reference: dict[str, Any], place: Place) -> Node:
    made = Node(Referring.of(text, reference), place, text)
    made.live = False
    return made


def substitute_text(text: str, scope: Scope, place: Place, field: str) -> str:
    """Returns a text with every expression replaced."""
    faults = Faults()

    def replace(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return MARK
        with faults:
            _check_whole(match, text, place, field)
            return scope.find(match[1], place, field).text
        return ""

    replaced = _FOUND.sub(replace, text)
    faults.tell()
    return replaced


def _check_whole(match: re.Match[str], text: str, place: Place, field: str) -> None:
    """Refuses an incomplete expression."""
    if match[1] is None:
        expected = f"free of {MARK} except for expressions such as {MARK} parameters.NAME }}}}"
        raise Misdescribed(place, field, expected, text[match.start() :])


def substitute_line(node: Node, scope: Scope, field: str) -> Node:
    """Returns a shell line as arguments; names in it become the shell's own variables.

    So a value is never parsed as part of the line, whatever it contains. A line that is a single
    list becomes the arguments themselves.
    """
    whole = _WHOLE.fullmatch(node.value)
    if whole and whole[1].startswith("jobs."):
        whole = None
    if whole and isinstance(scope.find(whole[1], node.place, field).value, list):
        return substitute(node, scope, field)
    values: dict[str, Node] = {}
    faults = Faults()

    def replace(match: re.Match[str]) -> str:
        if match[0].startswith("$$"):
            return MARK
        with faults:
            _check_whole(match, node.value, node.place, field)
            reference = scope.output(match[1], node.place, field)
            if reference is None:
                text = scope.find(match[1], node.place, field).text
                values.setdefault(match[1], Node(text, node.place, text))
            else:
                values.setdefault(match[1], _referring(match[0], {TEXT: [reference]}, node.place))
            return f"${{{list(values).index(match[1]) + 1}}}"
        return ""

    line = _FOUND.sub(replace, node.value)
    faults.tell()
    words = [*SHELL, line, *([SHELL[0]] if values else [])]
    nodes = [Node(word, node.place, word) for word in words]
    for word in nodes:
        word.live = False
    return sequence([*nodes, *values.values()], node.place)


def _weight(node: Node) -> int:
    items = node.value if isinstance(node.value, list) else ()
    return 1 + len(node.text) + sum(map(_weight, items))


def _entries(node: Node, scope: Scope, field: str) -> Node:
    entries: dict[str, Node] = {}
    keys: dict[str, Place] = {}
    faults = Faults()
    for name, child in node.entries().items():
        place = node.place_of(name)
        with faults:
            key = substitute_text(name, scope, place, field) if MARK in name else name
            if key in entries:
                raise Misdescribed(place, field, "free of duplicate names", key)
            entries[key] = substitute(child, scope, f"{field}.{key}" if field else key)
            keys[key] = place
    faults.tell()
    return mapping(entries, node.place, keys)
