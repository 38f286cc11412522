"""From the text of a YAML or JSON file to nodes.

It is read as a stream of events, so that nothing is built before its size is known to be bounded:
tags are refused, aliases count as their contents, size and depth have limits. Plain words mean the
same as in JSON: `on`, `no` and `3.11.0` are text, and so is `007`.
"""

import json
import re
from pathlib import PurePath
from typing import Any, Final

import yaml

from windlass.domain.values.errors import NOT_KNOWN
from windlass.workflows.nodes import (
    NODE_LIMIT,
    Faults,
    Misdescribed,
    Node,
    Place,
    mapping,
    sequence,
)

SIZE_LIMIT: Final = 4 * 1024 * 1024
DEPTH_LIMIT: Final = 50

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: Final = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_NUMBER: Final = re.compile(
    r"[-+]?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{0,30})?(?:[eE][-+]?[0-9]{1,2})?"
)
_PAIR: Final = re.compile(
    r"(?<!\\)((?:\\\\)*)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
)


def read_text(content: bytes | str, file: str, faults: Faults | None = None) -> Node:
    """Reads the document in a file; `file` names it in errors.

    With `faults`, errors other than syntax errors are collected there, and reading continues.
    """
    if len(content) > SIZE_LIMIT:
        raise _refuse(file, 0, f"at most {SIZE_LIMIT} bytes", f"{len(content)} bytes")
    text = _decode(content, file)
    if PurePath(file).suffix == ".json":
        text = _checked_json(text, file)
    builder = _Builder(file, Faults() if faults is None else faults)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 0
        raise _no_yaml(file, line, error.problem or "it is not", text) from None
    except yaml.YAMLError as error:
        raise _no_yaml(file, 0, str(error).partition("\n")[0], text) from None
    if builder.document is None:
        raise _refuse(file, 1, "a mapping with name and jobs", "an empty file")
    if faults is None:
        builder.faults.tell()
    return builder.document


def _no_yaml(file: str, line: int, problem: str, text: str) -> Misdescribed:
    lines = text.splitlines()
    begins = lines[line - 1] if 0 < line <= len(lines) else ""
    has_tab = "\t" in begins[: len(begins) - len(begins.lstrip())]
    hint = "indent with spaces, not with tabs" if has_tab else ""
    return Misdescribed(Place(file, line), "the file", f"valid YAML: {problem}", NOT_KNOWN, hint)


def _decode(content: bytes | str, file: str) -> str:
    if isinstance(content, str):
        return content
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _refuse(file, line, "UTF-8", error.reason) from None


def _checked_json(text: str, file: str) -> str:
    """Returns the JSON so that YAML reads it the same way: no tabs, no surrogate pairs."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        raise _refuse(file, error.lineno, "valid JSON", error.msg) from None
    except RecursionError:
        raise _refuse(file, 0, f"nested at most {DEPTH_LIMIT} deep", "deeper") from None
    return _PAIR.sub(_joined, text.replace("\t", " "))


def _joined(match: re.Match[str]) -> str:
    pair = chr(int(match[2], 16)) + chr(int(match[3], 16))
    return match[1] + pair.encode("utf-16", "surrogatepass").decode("utf-16")


def _refuse(file: str, line: int, expected: str, got: object) -> Misdescribed:
    return Misdescribed(Place(file, line), "the file", expected, got)


class _Open:
    """An open list or mapping; for a mapping, names and values alternate."""

    __slots__ = ("anchor", "children", "is_mapping", "line")

    def __init__(self, is_mapping: bool, line: int, anchor: str | None) -> None:
        self.is_mapping = is_mapping
        self.line = line
        self.anchor = anchor
        self.children: list[Node] = []


class _Builder:
    """Turns events into nodes and refuses YAML features that descriptions do not support."""

    def __init__(self, file: str, faults: Faults) -> None:
        self.document: Node | None = None
        self.faults = faults
        self._file = file
        self._open: list[_Open] = []
        self._anchors: dict[str, Node | None] = {}
        self._nodes = 0

    def take(self, event: Any) -> None:
        """Takes the next event."""
        line = event.start_mark.line + 1
        if isinstance(event, yaml.DocumentStartEvent) and self.document is not None:
            raise _refuse(self._file, line, "one document", "a second one")
        if isinstance(event, yaml.AliasEvent):
            self._add(self._alias(event.anchor, line), line)
        elif isinstance(event, yaml.NodeEvent):
            self._begin(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            done = self._open.pop()
            node = self._close(done)
            if done.anchor:
                self._anchors[done.anchor] = node
            self._add(node, line)

    def _begin(self, event: Any, line: int) -> None:
        if event.tag is not None:
            self.faults.errors.append(_refuse(self._file, line, "free of tags", event.tag))
        if isinstance(event, yaml.ScalarEvent):
            node = _scalar(event, Place(self._file, line))
            self._count(1, line)
            if event.anchor:
                self._anchors[event.anchor] = node
            self._add(node, line)
            return
        if len(self._open) >= DEPTH_LIMIT:
            raise _refuse(self._file, line, f"nested at most {DEPTH_LIMIT} deep", "deeper")
        if event.anchor:
            self._anchors[event.anchor] = None
        self._count(1, line)
        self._open.append(_Open(isinstance(event, yaml.MappingStartEvent), line, event.anchor))

    def _alias(self, anchor: str | None, line: int) -> Node:
        found = self._anchors.get(anchor or "")
        if found is None:
            inside = anchor in self._anchors
            got = f"*{anchor} inside itself" if inside else f"*{anchor}"
            raise _refuse(self._file, line, "free of aliases to something incomplete", got)
        self._count(found.size, line)
        return found

    def _count(self, nodes: int, line: int) -> None:
        self._nodes += nodes
        if self._nodes > NODE_LIMIT:
            expected = f"at most {NODE_LIMIT} values, counting the contents of aliases"
            raise _refuse(self._file, line, expected, "more")

    def _add(self, node: Node, line: int) -> None:
        if not self._open:
            self.document = node
            return
        top = self._open[-1]
        if top.is_mapping and len(top.children) % 2 == 0 and isinstance(node.value, dict | list):
            raise _refuse(self._file, line, "named by text", "a list or mapping as a name")
        top.children.append(node)

    def _close(self, done: _Open) -> Node:
        place = Place(self._file, done.line)
        if not done.is_mapping:
            return sequence(done.children, place)
        entries: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        merged: list[Node] = []
        for key, node in zip(done.children[::2], done.children[1::2], strict=True):
            if key.text == "<<":
                merged += node.items()
                continue
            if key.text in entries:
                expected = f"named once (first on line {keys[key.text].line})"
                again = Misdescribed(key.place, key.text, expected, "the same name again")
                self.faults.errors.append(again)
                continue
            entries[key.text] = node
            keys[key.text] = key.place
        for other in merged:
            for name, node in other.entries().items():
                entries.setdefault(name, node)
                keys.setdefault(name, other.place_of(name))
        return mapping(entries, place, keys)


def _scalar(event: Any, place: Place) -> Node:
    text: str = event.value
    if "\0" in text:
        raise Misdescribed(place, "text", "free of NUL characters", "one")
    return Node(scalar_of(text) if event.implicit[0] else text, place, text)


def scalar_of(text: str) -> str | int | float | bool | None:
    """Returns the meaning of an unquoted word."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text
