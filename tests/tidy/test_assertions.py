"""A test that asserts nothing cannot fail, so it proves nothing."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ASSERTING_CALL = re.compile(
    r"(^|[._])(raises|warns|fail|assert|expect|check|verify|prove|compare|conform|run_state_machine)",
    re.IGNORECASE,
)


def asserts_something(node: ast.AST, asserting: frozenset[str] = frozenset()) -> bool:
    """Returns whether a test holds an assertion or calls a function that asserts."""
    for child in ast.walk(node):
        if isinstance(child, ast.Assert | ast.Raise):
            return True
        if isinstance(child, ast.Call):
            name = ast.unparse(child.func)
            if ASSERTING_CALL.search(name) or name.rpartition(".")[2] in asserting:
                return True
    return False


def asserting_functions(trees: dict[Path, ast.Module]) -> frozenset[str]:
    """Returns the names of functions in the tests that assert, directly or through another."""
    bodies = {
        node.name: node
        for tree in trees.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    known: frozenset[str] = frozenset()
    while True:
        more = frozenset(name for name, node in bodies.items() if asserts_something(node, known))
        if more == known:
            return known
        known = more


def empty_tests(trees: dict[Path, ast.Module]) -> list[str]:
    known = asserting_functions(trees)
    return [
        f"{path}:{node.lineno} {node.name} asserts nothing"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name.startswith("test")
        and not asserts_something(node, known)
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
