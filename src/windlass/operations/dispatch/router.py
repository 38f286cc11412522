"""Finds the route of a request: a tree of path segments, fixed names before placeholders."""

import re
from collections.abc import Iterable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")

PLACEHOLDER = re.compile(r"\{(\w+):(int|str|path)\}")


class Match(NamedTuple, Generic[T]):
    """The routes of a path by method, and the text of its placeholders."""

    methods: dict[str, T]
    values: dict[str, str]


class Router(Generic[T]):
    """Maps method and path to a value; empty segments and a final slash do not count."""

    def __init__(self, routes: Iterable[tuple[str, str, T]]) -> None:
        self._root = _Node[T]()
        for method, path, value in routes:
            self._add(method, path, value)

    def find(self, path: str) -> Match[T] | None:
        """Returns what the path leads to, or None."""
        node = self._root
        values: dict[str, str] = {}
        segments = iter(path.split("/"))
        for segment in segments:
            if not segment:
                continue
            fixed = node.fixed.get(segment)
            if fixed is not None:
                node = fixed
            elif node.rest is not None:
                values[node.rest_name] = "/".join([segment, *filter(None, segments)])
                return Match(node.rest, values)
            elif node.child is None or (node.child_is_integer and not _is_integer(segment)):
                return None
            else:
                values[node.child_name] = segment
                node = node.child
        return Match(node.methods, values) if node.methods else None

    def _add(self, method: str, path: str, value: T) -> None:
        node = self._root
        for segment in filter(None, path.split("/")):
            placeholder = PLACEHOLDER.fullmatch(segment)
            if placeholder is None:
                node = node.fixed.setdefault(segment, _Node())
                continue
            name, kind = placeholder.groups()
            if kind == "path":
                node.rest_name = name
                node.rest = node.rest or {}
                node.rest[method] = value
                return
            if node.child is None:
                node.child, node.child_is_integer = _Node(), True
            # Where one route takes any text, the others refuse what is no number themselves.
            node.child_is_integer = node.child_is_integer and kind == "int"
            node.child_name = name
            node = node.child
        node.methods[method] = value


class _Node(Generic[T]):
    """One segment: fixed names below it, or one placeholder, or the rest of the path."""

    __slots__ = (
        "child", "child_is_integer", "child_name", "fixed", "methods", "rest", "rest_name"
    )  # fmt: skip

    def __init__(self) -> None:
        self.fixed: dict[str, _Node[T]] = {}
        self.child: _Node[T] | None = None
        self.child_name = ""
        self.child_is_integer = False
        self.rest: dict[str, T] | None = None
        self.rest_name = ""
        self.methods: dict[str, T] = {}


def _is_integer(segment: str) -> bool:
    return segment.isascii() and segment.removeprefix("-").isdigit()
