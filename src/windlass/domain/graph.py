"""Dependencies inside one submission: unique names, no cycles, an order to write them in."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from windlass.domain.errors import InvalidInput
from windlass.domain.job import JobSpec


class Named(NamedTuple):
    """References by name as places in the submission, and the order to write its jobs in.

    `after` and `after_any` stand for each job; `numbered` tells whether some job names others
    by id as well.
    """

    order: Sequence[int]
    after: list[Sequence[int]]
    after_any: list[Sequence[int]]
    numbered: bool


def order_by_dependencies(specs: Sequence[JobSpec]) -> Sequence[int]:
    """Indexes such that every job comes after those it names; ties keep their order.

    Raises `InvalidInput` for a name given twice, an unknown name, or a cycle, which is
    named in full.
    """
    return find_names(specs).order


def find_names(specs: Sequence[JobSpec]) -> Named:
    """Look up all names; raises as `order_by_dependencies` does."""
    index = _names(specs)
    look_up: Callable[[Any], int] = index.__getitem__
    after: list[Sequence[int]] = []
    after_any: list[Sequence[int]] = []
    numbered, in_order = False, True
    for number, spec in enumerate(specs):
        for references, places in ((spec.after, after), (spec.after_any, after_any)):
            if not references:
                places.append(())
                continue
            try:
                found = list(map(look_up, references))
            except KeyError:
                field = "after" if places is after else "after_any"
                found = _places(index, references, f"jobs[{number}].{field}")
                numbered = numbered or _has_numbers(references)
            places.append(found)
            in_order = in_order and (not found or max(found) < number)
    # Descriptions mostly have each job behind those it names.
    order = range(len(specs)) if in_order else _sorted(specs, after, after_any)
    return Named(order, after, after_any, numbered)


def _places(index: Mapping[str, int], references: Sequence[int | str], field: str) -> list[int]:
    """Those of the references that are names."""
    named = {ref for ref in references if isinstance(ref, str)}
    for name in sorted(named):
        if name not in index:
            known = ", ".join(sorted(index)[:5]) or "none"
            expected = f"the name of a job in this submission ({known})"
            raise InvalidInput(field, expected, name)
    return [index[name] for name in named]


def _has_numbers(references: Sequence[int | str]) -> bool:
    return any(isinstance(reference, int) for reference in references)


def _names(specs: Sequence[JobSpec]) -> dict[str, int]:
    index: dict[str, int] = {}
    twice: dict[str, int] = {}
    for number, spec in enumerate(specs):
        if spec.name is not None and index.setdefault(spec.name, number) != number:
            twice.setdefault(spec.name, number)
    if twice:
        named = {ref for spec in specs for ref in (*spec.after, *spec.after_any)}
        for name, number in twice.items():
            if name in named:
                raise InvalidInput(f"jobs[{number}].name", "unique in its submission", name)
    return index


def _sorted(
    specs: Sequence[JobSpec], after: list[Sequence[int]], after_any: list[Sequence[int]]
) -> list[int]:
    waits = [{*these, *those} for these, those in zip(after, after_any, strict=True)]
    order, circle = put_in_order(waits)
    if circle:
        names = [str(specs[n].name or f"jobs[{n}]") for n in circle]
        raise InvalidInput("jobs.after", "free of cycles", " → ".join(names))
    return order


def put_in_order(waits: Sequence[Collection[int]]) -> tuple[list[int], list[int]]:
    """Numbers such that each comes after those it waits for, and a circle if there is one.

    A circle begins and ends with the same number; without one it is empty.
    """
    dependents: list[list[int]] = [[] for _ in waits]
    missing = [len(wanted) for wanted in waits]
    for number, wanted in enumerate(waits):
        for other in wanted:
            dependents[other].append(number)
    order = [number for number, count in enumerate(missing) if not count]
    for number in order:
        for dependent in dependents[number]:
            missing[dependent] -= 1
            if not missing[dependent]:
                order.append(dependent)
    left = {number for number, count in enumerate(missing) if count}
    return order, _circle(waits, left) if left else []


def _circle(waits: Sequence[Collection[int]], left: set[int]) -> list[int]:
    path: list[int] = []
    seen: dict[int, int] = {}
    number = min(left)
    while number not in seen:
        seen[number] = len(path)
        path.append(number)
        number = min(other for other in waits[number] if other in left)
    return [*path[seen[number] :], number]
