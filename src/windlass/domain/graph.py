"""Dependencies inside one submission: unique names, no cycles, an order to write them in."""

from collections.abc import Sequence

from windlass.domain.errors import InvalidInput
from windlass.domain.job import JobSpec


def order_by_dependencies(specs: Sequence[JobSpec]) -> list[int]:
    """Indexes such that every job comes after those it names; ties keep their order.

    Raises `InvalidInput` for a name given twice, an unknown name, or a cycle, which is
    named in full.
    """
    index = _names(specs)
    if not index:
        return list(range(len(specs)))
    waits_for: list[set[int]] = []
    for number, spec in enumerate(specs):
        named = {ref for ref in (*spec.after, *spec.after_any) if isinstance(ref, str)}
        for name in sorted(named):
            if name not in index:
                known = ", ".join(sorted(index)[:5])
                expected = f"the name of a job in this submission ({known})"
                raise InvalidInput(f"jobs[{number}].after", expected, name)
        waits_for.append({index[name] for name in named})
    return _sorted(specs, waits_for)


def _names(specs: Sequence[JobSpec]) -> dict[str, int]:
    index: dict[str, int] = {}
    for number, spec in enumerate(specs):
        if spec.name is None:
            continue
        if spec.name in index and _is_referenced(specs, spec.name):
            raise InvalidInput(f"jobs[{number}].name", "unique in its submission", spec.name)
        index.setdefault(spec.name, number)
    return index


def _is_referenced(specs: Sequence[JobSpec], name: str) -> bool:
    return any(name in spec.after or name in spec.after_any for spec in specs)


def _sorted(specs: Sequence[JobSpec], waits_for: list[set[int]]) -> list[int]:
    dependents: list[list[int]] = [[] for _ in specs]
    missing = [len(wanted) for wanted in waits_for]
    for number, wanted in enumerate(waits_for):
        for other in wanted:
            dependents[other].append(number)
    order = [number for number, count in enumerate(missing) if not count]
    for number in order:
        for dependent in dependents[number]:
            missing[dependent] -= 1
            if not missing[dependent]:
                order.append(dependent)
    if len(order) < len(specs):
        cycle = _cycle(specs, waits_for, {n for n, count in enumerate(missing) if count})
        raise InvalidInput("jobs.after", "free of cycles", " → ".join(cycle))
    return order


def _cycle(specs: Sequence[JobSpec], waits_for: list[set[int]], left: set[int]) -> list[str]:
    path: list[int] = []
    seen: dict[int, int] = {}
    number = min(left)
    while number not in seen:
        seen[number] = len(path)
        path.append(number)
        number = min(waits_for[number] & left)
    around = [*path[seen[number] :], number]
    return [str(specs[n].name or f"jobs[{n}]") for n in around]
