"""`matrix` and `count`: one entry of a file that becomes many jobs.

Their number is computed before any of them is made.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Final

from windlass.workflows.nodes import Node

MAX_JOBS: Final = 100_000  # jobs of one matrix or count
MAX_EXCLUDED: Final = 250  # rows, each of which is compared with every job
INDEX: Final = "index"
_OWN: Final = ("include", "exclude")

Combination = Mapping[str, Node]


def combinations(matrix: Node | None, count: Node | None, field: str) -> list[Combination]:
    """Returns the values of each job, by axis; one empty combination without a matrix."""
    chosen = [{}] if matrix is None else _of_matrix(matrix, f"{field}.matrix")
    if count is None or count.value is None:
        return chosen
    number = count.value
    if number < 1 or number * len(chosen) > MAX_JOBS:
        expected = (
            f"from 1 to {MAX_JOBS}" if len(chosen) == 1 else f"{MAX_JOBS} jobs with the matrix"
        )
        raise count.refuse(f"{field}.count", expected, number)
    indexes = [Node(n, count.place, str(n)) for n in range(number)]
    return [{**values, INDEX: index} for values in chosen for index in indexes]


def named(entry: str, values: Combination) -> str:
    """Returns the name of one of an entry's jobs: `test[3.12,linux]`."""
    return f"{entry}[{','.join(node.text for node in values.values())}]" if values else entry


def scope_of(values: Combination) -> dict[str, Node]:
    """Returns what `${{ … }}` finds in one of the jobs."""
    return {name if name == INDEX else f"matrix.{name}": node for name, node in values.items()}


def _of_matrix(matrix: Node, field: str) -> list[Combination]:
    axes = {name: node for name, node in matrix.entries().items() if name not in _OWN}
    for name, node in axes.items():
        _check_axis(name, node, field)
    size = math.prod(len(node.value) for node in axes.values()) if axes else 0
    included = _rows(matrix.get("include"), f"{field}.include")
    if size + len(included) > MAX_JOBS:
        raise matrix.refuse(field, f"at most {MAX_JOBS} jobs", f"{size + len(included)}")
    excluded = _rows(matrix.get("exclude"), f"{field}.exclude")
    names = list(axes) or (list(included[0].entries()) if included else [])
    if len(excluded) > MAX_EXCLUDED:
        raise matrix.refuse(f"{field}.exclude", f"at most {MAX_EXCLUDED}", len(excluded))
    for row in excluded:
        _check_row(row, names, field)
    for row in included:
        _check_row(row, names, field)
        _check_whole(row, names, field)
    chosen = list(_product(axes, excluded)) if axes else []
    chosen += [{name: row.entries()[name] for name in names} for row in included]
    if not chosen:
        raise matrix.refuse(field, "at least one job", "none")
    _check_apart(matrix, chosen, field)
    return chosen


def _product(axes: Mapping[str, Node], excluded: list[Node]) -> Iterator[Combination]:
    for values in itertools.product(*(node.value for node in axes.values())):
        chosen = dict(zip(axes, values, strict=True))
        if not any(_is_like(chosen, row) for row in excluded):
            yield chosen


def _is_like(chosen: Combination, row: Node) -> bool:
    return all(chosen[name].text == node.text for name, node in row.entries().items())


def _rows(node: Node | None, field: str) -> list[Node]:
    if node is None or node.value is None:
        return []
    for row in node.items():
        if not isinstance(row.value, dict) or not row.value:
            raise row.refuse(field, "a list of mappings")
    return node.items()


def _check_axis(name: str, node: Node, field: str) -> None:
    where = f"{field}.{name}"
    if name == INDEX:
        raise node.refuse(field, f"without an axis {INDEX}, which is reserved for count", name)
    if not isinstance(node.value, list) or not node.value:
        raise node.refuse(where, "a list of values")
    for item in node.value:
        if item.value is None or isinstance(item.value, dict | list):
            raise item.refuse(where, "a list of values")


def _check_row(row: Node, names: list[str], field: str) -> None:
    for name, node in row.entries().items():
        if name not in names:
            raise row.refuse(field, f"about {', '.join(names) or 'some axis'}", name)
        if node.value is None or isinstance(node.value, dict | list):
            raise node.refuse(f"{field}.{name}", "a value")


def _check_whole(row: Node, names: list[str], field: str) -> None:
    for name in names:
        if name not in row.entries():
            raise row.refuse(f"{field}.include", f"a value for {name}")


def _check_apart(matrix: Node, chosen: list[Combination], field: str) -> None:
    seen: set[tuple[str, ...]] = set()
    for values in chosen:
        texts = tuple(node.text for node in values.values())
        if texts in seen:
            raise matrix.refuse(field, "free of duplicate jobs", named("", values))
        seen.add(texts)
