"""A description as it was written: values that know their file and line.

Every error about a file names the place. A description given as data (by a program, or from a
template) has no lines; its errors name only the field.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.values.errors import InvalidInput, shorten
from windlass.domain.values.json_values import check_depth

NODE_LIMIT: Final = 500_000  # values of one description
MARK: Final = "${{"  # begins an expression


class Place(NamedTuple):
    """Where something is written; line 0 means that there are no lines."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""


NOWHERE: Final = Place()


class Misdescribed(InvalidInput):
    """What cannot be accepted in a description, and where it is."""

    def __init__(
        self, place: Place, field: str, expected: str, got: object, hint: str = ""
    ) -> None:
        super().__init__(field, expected, got, hint)
        self.place = place

    @property
    def message(self) -> str:
        return f"{self.place}{super().message}"

    def details(self) -> dict[str, object]:
        where = {"file": self.place.file, "line": self.place.line} if self.place.line else {}
        return {**super().details(), **where}


class UnknownKey(Misdescribed):
    """A key that the mapping `field` does not have."""

    @property
    def message(self) -> str:
        end = f"; {self.hint}" if self.hint else f" (expected {self.expected})"
        return f"{self.place}unknown key {shorten(self.got)} in {self.field}{end}"


class Consequence(Misdescribed):
    """An error that follows from another one, which is reported instead."""


class Referring(str):
    """A text that contains outputs of jobs; `reference` is its form in arguments."""

    __slots__ = ("reference",)

    reference: dict[str, Any]

    @classmethod
    def of(cls, text: str, reference: dict[str, Any]) -> "Referring":
        """Returns the text with its reference."""
        made = cls(text)
        made.reference = reference
        return made


MAX_SHOWN: Final = 20


class ManyMisdescribed(Misdescribed):
    """Several errors in a description, by line; its own fields are those of the first."""

    def __init__(self, errors: Sequence[Misdescribed]) -> None:
        first = errors[0]
        super().__init__(first.place, first.field, first.expected, first.got, first.hint)
        self.errors = errors

    @property
    def message(self) -> str:
        lines = [error.message for error in self.errors[:MAX_SHOWN]]
        more = len(self.errors) - len(lines)
        return "\n".join([*lines, f"and {more} more"] if more else lines)

    def details(self) -> dict[str, object]:
        return {**super().details(), "errors": [error.message for error in self.errors]}


def together(errors: Iterable[Misdescribed]) -> Misdescribed:
    """Returns several errors as one: each once, in the order of their lines."""
    single: dict[str, Misdescribed] = {}
    for error in errors:
        for one in error.errors if isinstance(error, ManyMisdescribed) else (error,):
            single.setdefault(one.message, one)
    causes = [error for error in single.values() if not isinstance(error, Consequence)]
    ordered = sorted(causes or single.values(), key=lambda error: error.place)
    return ordered[0] if len(ordered) == 1 else ManyMisdescribed(ordered)


class Faults:
    """Collects errors, so that all of them are reported at once."""

    def __init__(self) -> None:
        self.errors: list[Misdescribed] = []

    def __enter__(self) -> None:
        """Begins a part whose error does not stop the others."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if not isinstance(error, Misdescribed):
            return False
        self.errors.append(error)
        return True

    def tell(self) -> None:
        """Raises what was collected, if anything."""
        if self.errors:
            raise together(self.errors)


class Node:
    """One value. Lists and mappings hold nodes; `text` is a scalar as it was written.

    `live` says that it contains an expression to substitute; `keys` are the places of its names.
    """

    __slots__ = ("keys", "live", "place", "size", "text", "value")

    def __init__(self, value: Any, place: Place = NOWHERE, text: str = "") -> None:
        self.value = value
        self.place = place
        self.text = text
        self.keys: Mapping[str, Place] = {}
        self.size = 1
        self.live = isinstance(value, str) and MARK in value

    def get(self, name: str) -> "Node | None":
        """Returns an entry of a mapping."""
        return self.value.get(name) if isinstance(self.value, dict) else None

    def entries(self) -> "Mapping[str, Node]":
        """Returns the entries of a mapping; other nodes have none."""
        return self.value if isinstance(self.value, dict) else {}

    def items(self) -> "list[Node]":
        """Returns the items of a list; a single value is a list of one."""
        return self.value if isinstance(self.value, list) else [self]

    def place_of(self, name: str) -> Place:
        """Returns the position of an entry's name."""
        return self.keys.get(name, self.place)

    def refuse(self, field: str, expected: str, got: object = None, hint: str = "") -> Misdescribed:
        """Returns the error about this value; `got` is the value by default."""
        came = plain(self) if got is None else got
        return Misdescribed(self.place, field, expected, came, hint)


def sequence(items: list[Node], place: Place) -> Node:
    """Returns a list of nodes as a node."""
    node = Node(items, place)
    _gather(node, items)
    return node


def mapping(entries: dict[str, Node], place: Place, keys: Mapping[str, Place]) -> Node:
    """Returns named nodes as a node."""
    node = Node(entries, place)
    node.keys = keys
    _gather(node, entries.values())
    node.live = node.live or any(MARK in name for name in entries)
    return node


def plain(node: Node) -> Any:
    """Returns the value without positions."""
    value = node.value
    if isinstance(value, dict):
        return {name: plain(child) for name, child in value.items()}
    if isinstance(value, list):
        return [plain(child) for child in value]
    return value.reference if isinstance(value, Referring) else value


def of_plain(value: Any) -> Node:
    """Returns a Python value as a node without positions.

    Raises `InvalidInput` for one that is too deep or too large.
    """
    check_depth(value, "body")
    node = _of_plain(value)
    if node.size > NODE_LIMIT:
        raise node.refuse("body", f"at most {NODE_LIMIT} values", "more")
    return node


def _of_plain(value: Any) -> Node:
    if isinstance(value, Mapping):
        entries = {str(name): _of_plain(child) for name, child in value.items()}
        return mapping(entries, NOWHERE, {})
    if isinstance(value, list | tuple):
        return sequence([_of_plain(child) for child in value], NOWHERE)
    return Node(value, text=as_text(value))


def as_text(value: object) -> str:
    """Returns a scalar as a file would write it."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else str(value)


def _gather(node: Node, children: Iterable[Node]) -> None:
    for child in children:
        node.size += child.size
        node.live = node.live or child.live
