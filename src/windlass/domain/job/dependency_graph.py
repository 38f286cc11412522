"""Dependencies inside one submission: unique names, no cycles, an order to write them in."""

from collections.abc import Collection, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput


class Named(NamedTuple):
    """The id of each job, the ids of its dependencies, and the order to write them in.

    `ids`, `after` and `after_any` have one entry per job; the ids of dependencies ascend without
    duplicates. `order` holds indexes. `numbered` tells whether some job also names dependencies by
    id, which are not checked here.
    """

    order: Sequence[int]
    ids: Sequence[int]
    after: Sequence[Sequence[int]]
    after_any: Sequence[Sequence[int]]
    numbered: bool


def ids_in(spec: JobSpec) -> list[int]:
    """Returns the jobs that this one waits for by id."""
    return [ref for ref in (*spec.after, *spec.after_any) if isinstance(ref, int)]


def order_by_dependencies(specs: Sequence[JobSpec]) -> Sequence[int]:
    """Returns indexes such that every job follows its dependencies; ties keep their order.

    Raises `InvalidInput` for a duplicate name, an unknown name, or a cycle, which it spells out.
    """
    return find_names(specs, range(len(specs))).order


def find_names(specs: Sequence[JobSpec], ids: Sequence[int]) -> Named:
    """Gives jobs these ascending ids in dependency order, and looks up all names.

    Raises as `order_by_dependencies` does. Most submissions list jobs after their dependencies, so
    ids are first given in that order, and again only if that was wrong.
    """
    index = _names(specs, ids)
    try:
        numbered = False
        after = _look_up(index, [spec.after for spec in specs])
        after_any = _look_up(index, [spec.after_any for spec in specs])
    except KeyError:
        numbered = True
        after, after_any = _look_up_names(index, specs)
    pairs = zip(ids, after, after_any, strict=True)
    if all((not a or a[-1] < own) and (not b or b[-1] < own) for own, a, b in pairs):
        return Named(range(len(specs)), ids, after, after_any, numbered)
    return _reorder(specs, Named((), ids, after, after_any, numbered))


def _look_up(
    index: Mapping[Any, int], each: Sequence[Sequence[int | str]]
) -> Sequence[Sequence[int]]:
    """Returns the ids that each job's references mean, with few calls.

    There may be a million references. Raises `KeyError` if some are not names.
    """
    if not any(each):
        return ((),) * len(each)
    found = map(index.__getitem__, chain.from_iterable(each))
    ids = [sorted(islice(found, len(names))) for names in each]
    if sum(map(len, map(set, ids))) < sum(map(len, ids)):  # a job is named twice
        ids = [sorted(set(some)) for some in ids]
    return ids


def _look_up_names(
    index: Mapping[str, int], specs: Sequence[JobSpec]
) -> tuple[list[list[int]], list[list[int]]]:
    """Looks names up one by one, if some references are ids or unknown names."""
    after: list[list[int]] = []
    after_any: list[list[int]] = []
    for number, spec in enumerate(specs):
        after.append(_only_names(index, spec.after, f"jobs[{number}].after"))
        after_any.append(_only_names(index, spec.after_any, f"jobs[{number}].after_any"))
    return after, after_any


def _only_names(index: Mapping[str, int], references: Sequence[int | str], field: str) -> list[int]:
    """Returns the ids of those references that are names."""
    named = {ref for ref in references if isinstance(ref, str)}
    for name in sorted(named):
        if name not in index:
            known = ", ".join(sorted(index)[:5]) or "none"
            expected = f"the name of a job in this submission ({known})"
            raise InvalidInput(field, expected, name)
    return sorted({index[name] for name in named})


def _names(specs: Sequence[JobSpec], ids: Sequence[int]) -> dict[str, int]:
    """Returns the id of each name; raises `InvalidInput` for a duplicate."""
    index: dict[Any, int] = dict(zip([spec.name for spec in specs], ids, strict=True))
    if len(index) == len(specs) and None not in index:
        return index
    index = {}
    twice: dict[str, int] = {}
    for number, (own, spec) in enumerate(zip(ids, specs, strict=True)):
        if spec.name is not None and index.setdefault(spec.name, own) != own:
            twice.setdefault(spec.name, number)
    if twice:
        named = {ref for spec in specs for ref in (*spec.after, *spec.after_any)}
        for name, number in twice.items():
            if name in named:
                raise InvalidInput(f"jobs[{number}].name", "unique in its submission", name)
    return index


def _reorder(specs: Sequence[JobSpec], named: Named) -> Named:
    """Returns the names with ids that ascend from dependencies to dependents."""
    place = {job: number for number, job in enumerate(named.ids)}
    needs = zip(named.after, named.after_any, strict=True)
    order, circle = put_in_order([{place[job] for job in (*all_, *any_)} for all_, any_ in needs])
    if circle:
        names = [str(specs[n].name or f"jobs[{n}]") for n in circle]
        raise InvalidInput("jobs.after", "free of cycles", " → ".join(names))
    now = {named.ids[number]: job for number, job in zip(order, named.ids, strict=True)}
    after, after_any = (
        [sorted(now[job] for job in jobs) for jobs in each]
        for each in (named.after, named.after_any)
    )
    return Named(order, [now[job] for job in named.ids], after, after_any, named.numbered)


def put_in_order(waits: Sequence[Collection[int]]) -> tuple[list[int], list[int]]:
    """Returns numbers ordered after their dependencies, and a cycle if there is one.

    A cycle begins and ends with the same number; it is empty if there is none.
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
