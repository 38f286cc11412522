"""A file as self-contained data, the form in which templates are stored: servers read no files.

The workflows of other files that it names are put into it.
"""

from pathlib import Path
from typing import Any, Final

from windlass.workflows.checking import check
from windlass.workflows.expansion import LEVEL_LIMIT
from windlass.workflows.files import LocalFiles
from windlass.workflows.format import RELAXED, ROOT
from windlass.workflows.nodes import Node, plain
from windlass.workflows.parameters import kind_of

# Values in files keep their spelling, which data would not: 3.10 is the number 3.1.
_AS_WRITTEN: Final = frozenset({"run", "env", "labels", "matrix"})


def describe_file(path: Path) -> dict[str, Any]:
    """Returns the description that `expand` takes; raises for what does not fit the schema."""
    files = LocalFiles()
    name, tree = files.open(path)
    return _describe(tree, files, (name,))


def _describe(tree: Node, files: LocalFiles, chain: tuple[str, ...]) -> dict[str, Any]:
    check(tree, RELAXED[ROOT], RELAXED, "")
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
    if file in chain or len(chain) >= LEVEL_LIMIT:
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
