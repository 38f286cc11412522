"""The ratchet: what has been won in tidiness is kept.

A function over its limit must stand in `allowed.toml` with the size it has today
and the reason. The entry is the new limit; it may shrink, and one that is no longer
needed fails until it is removed.
"""

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = tomllib.loads(Path(__file__).with_name("allowed.toml").read_text())

FUNCTION_LIMIT = 70
FUNCTION_USUAL = 25
MAX_SHARE = 0.8
"""The share of functions that must stay under the usual size."""

BANNED_NAMES = {"common", "helper", "helpers", "misc", "util", "utils"}


def python_files() -> list[Path]:
    folders = ("src", "fuzz/src", "tests", "benchmarks")
    return sorted(path for folder in folders for path in (ROOT / folder).rglob("*.py"))


@cache
def function_sizes() -> dict[str, int]:
    sizes: dict[str, int] = {}
    for path in python_files():
        name = path.relative_to(ROOT).as_posix()
        for function, size in functions(ast.parse(path.read_text())):
            key = f"{name}::{function}"
            sizes[key] = max(size, sizes.get(key, 0))
    return sizes


def functions(node: ast.AST, within: str = "") -> Iterator[tuple[str, int]]:
    """Each function under `node` with its dotted name and its number of lines."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue  # holds no function, and most of a file is expressions
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            name = f"{within}.{child.name}" if within else child.name
            if not isinstance(child, ast.ClassDef):
                yield name, (child.end_lineno or child.lineno) - child.lineno + 1
            yield from functions(child, name)
        else:
            yield from functions(child, within)


def complaints(sizes: dict[str, int], limit: int, allowed: dict[str, int]) -> list[str]:
    """What is too large, and which allowances are larger than they need to be."""
    found = []
    for name, size in sizes.items():
        bound = max(limit, allowed.get(name, 0))
        if size > bound:
            found.append(f"{name}: expected at most {bound} lines, got {size}; split it")
    for name, bound in allowed.items():
        size = sizes.get(name, 0)
        if size <= limit:
            found.append(f"{name}: no longer over {limit} lines; remove it from allowed.toml")
        elif size < bound:
            found.append(f"{name}: now {size} lines; lower its {bound} in allowed.toml")
    return found


def share_within(sizes: dict[str, int], usual: int) -> float:
    return sum(size <= usual for size in sizes.values()) / max(len(sizes), 1)


def test_no_function_is_too_long() -> None:
    assert complaints(function_sizes(), FUNCTION_LIMIT, ALLOWED["functions"]) == []


def test_most_functions_are_short() -> None:
    assert share_within(function_sizes(), FUNCTION_USUAL) >= MAX_SHARE


def test_every_module_has_a_telling_name() -> None:
    paths = [path.relative_to(ROOT) for path in python_files()]
    assert [str(p) for p in paths if BANNED_NAMES & {*p.parts, p.stem}] == []


@pytest.mark.parametrize(
    ("size", "allowed", "complaint"),
    [
        (70, {}, None),
        (71, {}, "expected at most 70 lines, got 71"),
        (80, {"f": 80}, None),
        (81, {"f": 80}, "expected at most 80 lines, got 81"),
        (79, {"f": 80}, "lower its 80"),
        (70, {"f": 80}, "remove it"),
    ],
)
def test_an_allowance_may_only_shrink(
    size: int, allowed: dict[str, int], complaint: str | None
) -> None:
    found = complaints({"f": size}, 70, allowed)
    assert [complaint in text for text in found if complaint] == ([True] if complaint else [])
    assert bool(found) == bool(complaint)


def test_functions_are_measured_inside_classes_and_functions() -> None:
    source = "class A:\n    def f(self):\n        async def g():\n            pass\n"
    assert dict(functions(ast.parse(source))) == {"A.f": 3, "A.f.g": 2}
