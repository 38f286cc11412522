"""Where the files of a workflow come from, and how they become self-contained data.

Templates are stored as such data, with the workflows of other files that they name: servers read no
files.
"""

import os
import sys
from pathlib import Path
from typing import Any, Final, Protocol

from windlass.domain.values.errors import NOT_KNOWN
from windlass.workflows.checking import check
from windlass.workflows.format import WRITTEN
from windlass.workflows.nodes import Faults, Misdescribed, Node, Place, plain
from windlass.workflows.parameters import kind_of
from windlass.workflows.reading import SIZE_LIMIT, read_text

MAX_LEVELS: Final = 10  # nesting depth of workflows

STANDARD_INPUT: Final = "-"
OPENED: Final = "the file"  # how errors name the file to submit


class Files(Protocol):
    """Finds the file that `workflow:` names; `faults` are the errors in files read so far."""

    faults: Faults

    def find(self, name: Node, field: str) -> tuple[str, Node]:
        """Returns the file's identity and its document."""


class LocalFiles:
    """Implements `Files` with local files: paths are relative to the file that names them."""

    def __init__(self) -> None:
        self._read: dict[str, Node] = {}
        self.faults = Faults()

    def find(self, name: Node, field: str) -> tuple[str, Node]:
        text = str(name.value)
        if Path(text).is_absolute():
            raise name.refuse(field, "a path relative to this file")
        path = os.path.normpath(Path(name.place.file).parent / text)
        real = os.path.realpath(path)
        if real not in self._read:
            self._read[real] = self._load(path, name, field)
        return real, self._read[real]

    def open(self, path: Path) -> tuple[str, Node]:
        """Opens the file to submit; `-` is standard input."""
        if str(path) == STANDARD_INPUT:
            content = sys.stdin.buffer.read(SIZE_LIMIT + 1)
            return STANDARD_INPUT, read_text(content, "stdin", self.faults)
        named = Node(str(path), Place(str(path)))
        real = os.path.realpath(path)
        self._read[real] = self._load(str(path), named, OPENED)
        return real, self._read[real]

    def _load(self, path: str, named: Node, field: str) -> Node:
        try:
            with Path(path).open("rb") as file:
                content = file.read(SIZE_LIMIT + 1)
        except OSError as error:
            why = error.strerror or "it does not exist"
            if field == OPENED:  # the beginning of the message
                raise Misdescribed(named.place, field, f"readable: {why}", NOT_KNOWN) from None
            raise Misdescribed(named.place, field, f"a readable file ({why})", path) from None
        return read_text(content, path, self.faults)


class NoFiles:
    """Implements `Files` for data: a nested workflow is part of its job."""

    def __init__(self) -> None:
        self.faults = Faults()

    def find(self, name: Node, field: str) -> tuple[str, Node]:
        raise name.refuse(field, "a workflow, not the name of a file")


# Values in files keep their spelling, which data would not: 3.10 is the number 3.1.
_AS_WRITTEN: Final = frozenset({"run", "env", "labels", "matrix"})


def describe_file(path: Path) -> dict[str, Any]:
    """Returns the description that `expand` takes; raises for what does not fit the schema."""
    files = LocalFiles()
    name, tree = files.open(path)
    return _describe(tree, files, (name,))


def _describe(tree: Node, files: LocalFiles, chain: tuple[str, ...]) -> dict[str, Any]:
    check(tree, WRITTEN, "")
    entries = tree.entries()
    described = {name: _data(name, node) for name, node in entries.items()}
    parameters = entries.get("parameters")
    if parameters is not None:
        described["parameters"] = {
            name: _parameter(node) for name, node in parameters.entries().items()
        }
    described["jobs"] = {
        name: _job(node, files, chain, f"jobs.{name}")
        for name, node in entries["jobs"].entries().items()
    }
    return described


def _job(node: Node, files: LocalFiles, chain: tuple[str, ...], field: str) -> dict[str, Any]:
    described = {name: _data(name, child) for name, child in node.entries().items()}
    inner = node.get("workflow")
    if inner is None or inner.value is None:
        return described
    where = f"{field}.workflow"
    if isinstance(inner.value, dict):
        described["workflow"] = _describe(inner, files, (*chain, ""))
        return described
    if inner.live:
        raise inner.refuse(
            where, "a path without parameters: a template is stored with its nested workflows"
        )
    file, tree = files.find(inner, where)
    if file in chain or len(chain) >= MAX_LEVELS:
        raise inner.refuse(where, "free of recursion")
    described["workflow"] = _describe(tree, files, (*chain, file))
    return described


def _parameter(node: Node) -> Any:
    """Returns a declaration with an explicit type, since values become text."""
    return {**_texts(node), "type": kind_of(node)}


def _data(name: str, node: Node) -> Any:
    return _texts(node) if name in _AS_WRITTEN else plain(node)


def _texts(node: Node) -> Any:
    """Returns the value with numbers as text."""
    if isinstance(node.value, dict):
        return {name: _texts(child) for name, child in node.value.items()}
    if isinstance(node.value, list):
        return [_texts(child) for child in node.value]
    number = isinstance(node.value, int | float) and not isinstance(node.value, bool)
    return node.text if number else node.value
