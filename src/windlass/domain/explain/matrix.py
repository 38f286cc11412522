"""Workers against a job's requirements, as a table of what is met and what they have."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.access.secrets import KEY_START
from windlass.domain.explain.explanation import Cell, Column, Matrix, MatrixRow
from windlass.domain.explain.reasons import Group, list_names
from windlass.domain.matching.clauses import Clause, resource_key
from windlass.domain.matching.functions import MISSING
from windlass.domain.matching.matching import shown_value
from windlass.domain.matching.shapes import Shape
from windlass.domain.matching.workers import WorkerStatus

MAX_ROWS: Final = 50
SAMPLED: Final = 20  # workers of a row whose values are compared
NAMED: Final = 3  # different values shown per row

STATUS: Final = "status"
Describe = Callable[[Sequence[int]], Sequence[Mapping[str, Any]]]


class _Requirement(NamedTuple):
    """A column, and its metadata key, if any."""

    column: Column
    key: str = ""
    is_clause: bool = False


def matrix_of(job: int, shape: Shape, groups: Sequence[Group], describe: Describe) -> Matrix:
    """Returns the table of a job; `describe` fetches the details of some workers."""
    ordered = sorted(groups, key=lambda g: (len(g.obstacles), -len(g.names), g.names[0]))
    shown, rest = ordered[:MAX_ROWS], ordered[MAX_ROWS:]
    requirements = _columns(shape, shown)
    return Matrix(
        job=job,
        columns=tuple(one.column for one in requirements),
        rows=tuple(_row(group, requirements, describe) for group in shown),
        more=sum(len(group.names) for group in rest),
    )


def _columns(shape: Shape, groups: Sequence[Group]) -> list[_Requirement]:
    found = {c.text: _Requirement(Column(clause=c.text, needs=c.needs), c.key, True)
             for c in shape.requires}  # fmt: skip
    for name, amount in shape.resources:
        clause, text = Clause(resource_key(name), ">=", amount), f"{name}={amount}"
        found[text] = _Requirement(Column(clause=text, needs=clause.needs), clause.key, True)
    found[STATUS] = _Requirement(Column(clause=STATUS, needs="a worker that takes jobs"))
    for group in groups:
        for one in group.obstacles:
            if one.clause not in found:
                column = Column(clause=one.clause, needs=one.needs)
                found[one.clause] = _Requirement(column, "", one.kind == "clause")
    return list(found.values())


def _row(group: Group, requirements: Sequence[_Requirement], describe: Describe) -> MatrixRow:
    known = describe(group.ids[:SAMPLED])
    only = len(group.names) == 1
    return MatrixRow(
        worker=group.names[0] if only else None,
        id=group.ids[0] if only else None,
        group=None if only else list_names(group.names),
        count=len(group.names),
        runnable=not group.obstacles,
        cells=tuple(_cell(group, one, known) for one in requirements),
    )


def _cell(group: Group, requirement: _Requirement, known: Sequence[Mapping[str, Any]]) -> Cell:
    for found in group.obstacles:
        if found.clause == requirement.column.clause:
            return Cell(met=False, has=found.has)
    if requirement.column.clause == STATUS:
        return Cell(met=True, has=WorkerStatus(group.status).name.lower())
    if requirement.is_clause:
        return Cell(met=True, has=_values(requirement.key, known))
    # What a worker holds matters only if it could run the job at all.
    is_open = group.capable and not group.away
    return Cell(met=True if is_open else None)


def _values(key: str, known: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns the distinct values of some workers, without those that are secret between
    namespaces.
    """
    if not key or key == MISSING or key.startswith(KEY_START):
        return None
    values = list(dict.fromkeys(shown_value(key, one.get(key)) for one in known))
    return list_names(values) if len(values) > NAMED else ", ".join(values)
