"""A test that asserts nothing cannot fail, so it proves nothing."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ASSERTING_CALL = re.compile(
    r"(^|[._])(raises|warns|fail|assert|expect|check|verify|prove|compare|conform|run_state_machine)",
    re.IGNORECASE,
)


class Body(NamedTuple):
    """What a function does as far as it matters here: it asserts, or it calls these."""

    asserts: bool
    calls: frozenset[str]

    def asserts_something(self, asserting: frozenset[str]) -> bool:
        """Returns whether it holds an assertion or calls a function that asserts."""
        return self.asserts or not self.calls.isdisjoint(asserting)


@cache
def body_of(node: ast.AST) -> Body:
    """Reads a function, with those inside it."""
    calls = set()
    for child in ast.walk(node):
        if isinstance(child, ast.Assert | ast.Raise):
            return Body(True, frozenset())
        if isinstance(child, ast.Call):
            name = ast.unparse(child.func)
            if ASSERTING_CALL.search(name):
                return Body(True, frozenset())
            calls.add(name.rpartition(".")[2])
    return Body(False, frozenset(calls))


def functions(node: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yields all functions under `node`."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # holds no function, and most of a file is expressions
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield child
        yield from functions(child)


def asserting_functions(trees: dict[Path, ast.Module]) -> frozenset[str]:
    """Returns the names of functions in the tests that assert, directly or through another."""
    bodies = {node.name: body_of(node) for tree in trees.values() for node in functions(tree)}
    known: frozenset[str] = frozenset()
    while True:
        more = frozenset(name for name, body in bodies.items() if body.asserts_something(known))
        if more == known:
            return known
        known = more


def empty_tests(trees: dict[Path, ast.Module]) -> list[str]:
    known = asserting_functions(trees)
    return [
        f"{path}:{node.lineno} {node.name} asserts nothing"
        for path, tree in trees.items()
        for node in functions(tree)
        if node.name.startswith("test") and not body_of(node).asserts_something(known)
    ]


def test_every_test_asserts_something() -> None:
    paths = sorted((ROOT / "tests").rglob("*.py"))
    trees = {path.relative_to(ROOT): ast.parse(path.read_text()) for path in paths}
    assert empty_tests(trees) == []


def test_a_test_without_an_assertion_is_reported() -> None:
    source = (
        "def test_empty():\n    run()\n"
        "def test_direct():\n    assert run()\n"
        "def holds(x):\n    assert x\n"
        "def test_through_a_function():\n    holds(run())\n"
    )
    assert empty_tests({Path("a.py"): ast.parse(source)}) == ["a.py:1 test_empty asserts nothing"]
