"""Dependencies inside one submission: unique names, no cycles, an order to write them in."""

from collections.abc import Collection, Mapping, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from windlass.domain.errors import InvalidInput
from windlass.domain.job import JobSpec


class Named(NamedTuple):
    """Which job has which id, which ids each of them names, and the order to write them in.

    `ids`, `after` and `after_any` stand for each job; the ids it names ascend, and each is
    there once. `order` are indexes. `numbered` tells whether some job names others by id as
    well: those are not looked at here.
    """

    order: Sequence[int]
    ids: Sequence[int]
    after: Sequence[Sequence[int]]
    after_any: Sequence[Sequence[int]]
    numbered: bool


def order_by_dependencies(specs: Sequence[JobSpec]) -> Sequence[int]:
    """Indexes such that every job comes after those it names; ties keep their order.

    Raises `InvalidInput` for a name given twice, an unknown name, or a cycle, which is
    named in full.
    """
    return find_names(specs, range(len(specs))).order


def find_names(specs: Sequence[JobSpec], ids: Sequence[int]) -> Named:
    """Give jobs these ids, which ascend, in the order of dependencies; look up all names.

    Raises as `order_by_dependencies` does. Descriptions mostly have each job behind those it
    names, so ids are given as the jobs come, and again only if that was wrong.
    """
    index = _names(specs, ids)
    after: list[Sequence[int]] = []
    after_any: list[Sequence[int]] = []
    numbered, in_order = False, True
    for own, spec in zip(ids, specs, strict=True):
        for references, found in ((spec.after, after), (spec.after_any, after_any)):
            if not references:
                found.append(())
                continue
            try:
                named = _look_up(index, references)
            except KeyError:
                field = "after" if found is after else "after_any"
                named = _only_names(index, references, f"jobs[{len(found)}].{field}")
                numbered = numbered or _has_numbers(references)
            found.append(named)
            in_order = in_order and (not named or named[-1] < own)
    if in_order:
        return Named(range(len(specs)), ids, after, after_any, numbered)
    return _reorder(specs, Named((), ids, after, after_any, numbered))


def _look_up(index: Mapping[Any, int], references: Sequence[int | str]) -> list[int]:
    """The ids of these names, ascending; in few calls, since there may be a million names."""
    if len(references) == 1:
        return [index[references[0]]]
    found = sorted(itemgetter(*references)(index))
    return found if len(set(found)) == len(found) else sorted(set(found))


def _only_names(index: Mapping[str, int], references: Sequence[int | str], field: str) -> list[int]:
    """The ids of those of the references that are names."""
    named = {ref for ref in references if isinstance(ref, str)}
    for name in sorted(named):
        if name not in index:
            known = ", ".join(sorted(index)[:5]) or "none"
            expected = f"the name of a job in this submission ({known})"
            raise InvalidInput(field, expected, name)
    return sorted({index[name] for name in named})


def _has_numbers(references: Sequence[int | str]) -> bool:
    return any(isinstance(reference, int) for reference in references)


def _names(specs: Sequence[JobSpec], ids: Sequence[int]) -> dict[str, int]:
    """The id of each name; one that is given twice must not be used."""
    index: dict[str, int] = {}
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
    """The same with ids that ascend from dependencies to dependents."""
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
