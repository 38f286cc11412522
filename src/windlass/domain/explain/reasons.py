"""Collects and groups the reasons why workers cannot take a job, and shows them as a table.

Claims use the same checks (`shapes.py`, `claim_planning.py` and `workers.py` in `domain/matching`);
this module puts their results into words.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.access.secrets import KEY_START
from windlass.domain.explain.explanation import Cell, Column, Matrix, MatrixRow, WorkerEntry
from windlass.domain.matching.clauses import Clause, resource_key
from windlass.domain.matching.functions import MISSING
from windlass.domain.matching.matching import (
    ALLOWLIST,
    APART,
    DENYLIST,
    PER_WORKER,
    Mismatch,
    mismatch_text,
    shown_value,
)
from windlass.domain.matching.shapes import NAMESPACES, Shape, shape_mismatches
from windlass.domain.matching.suspects import ALONE, Company
from windlass.domain.matching.workers import WorkerStatus, may_claim
from windlass.domain.values.quantities import counted, readable_duration

MAX_GROUPS: Final = 50  # with more workers, those with the same unmet clause become one group
NAMED: Final = 3  # members of a group that are named


class Obstacle(NamedTuple):
    """One reason why a worker cannot take a job; `key` is the metadata key, if any.

    `says` replaces the text "needs …, has …".
    """

    kind: str  # clause, status, excluded, slots, resources, apart, reserved, per_worker, company
    clause: str
    needs: str
    has: str
    key: str = ""
    says: str = ""

    @property
    def text(self) -> str:
        """Returns the words that follow the worker's name."""
        return self.says or mismatch_text(self.key, self.needs, self.has)

    def about(self, worker: str) -> str:
        """Returns a sentence with the worker's name."""
        if self.text.startswith("needs "):
            return f"it needs {self.needs}, {worker} has {self.has}"
        return f"{worker} {self.text}"


Obstacles = tuple[Obstacle, ...]


class Group(NamedTuple):
    """Workers with the same obstacles; with none, they can take the job now.

    `status` and `metadata` belong to the first member.
    """

    obstacles: Obstacles
    status: int
    metadata: Mapping[str, Any]
    ids: list[int]
    names: list[str]

    @property
    def capable(self) -> bool:
        """Returns True if their metadata meets every clause."""
        return not any(found.kind == "clause" for found in self.obstacles)

    @property
    def away(self) -> bool:
        """Returns True if their status keeps them from taking any job."""
        return any(found.kind == "status" for found in self.obstacles)


class Matcher:
    """Matches the clauses of one shape against many workers.

    Workers also differ in metadata that the shape does not ask for, such as their host name. So
    results are cached by the keys that it does ask for.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        required_keys = {clause.key for clause in shape.requires}
        required_keys |= {resource_key(name) for name, _ in shape.resources}
        self._keys = (NAMESPACES, DENYLIST, ALLOWLIST, *sorted(required_keys))
        self._known: dict[object, Obstacles] = {}

    def obstacles(self, metadata: Mapping[str, Any]) -> Obstacles:
        """Returns the clauses that this metadata does not meet."""
        values = tuple(map(metadata.get, self._keys))
        # Keep the types in the key: 1 equals True, but means something else.
        seen: object = values, tuple(map(type, values))
        try:
            known = self._known.get(seen)
        except TypeError:  # A list is not hashable.
            seen = repr(values)
            known = self._known.get(seen)
        if known is None:
            found = shape_mismatches(self._shape, metadata)
            known = self._known[seen] = tuple(
                Obstacle("clause", m.clause_text, m.needs, m.has, m.key) for m in found
            )
        return known


def status_obstacles(status: int, reason: str | None) -> Iterator[Obstacle]:
    """Yields an obstacle if the worker's status keeps it from jobs.

    An unhealthy worker may claim, since its sync heals it; but until it syncs, it does not ask for
    jobs.
    """
    if status == WorkerStatus.PROBATION:
        has = f"on probation ({reason})" if reason else "on probation"
        says = f"gets one job at a time: {has}"
        yield Obstacle("status", "status", "a worker in good standing", has, says=says)
        return
    if may_claim(status) and status != WorkerStatus.UNHEALTHY:
        return
    name = WorkerStatus(status).name.lower()
    has = f"{name} ({reason})" if reason else name
    says = f"takes no jobs: {has}"
    yield Obstacle("status", "status", "a worker that takes jobs", has, says=says)


def slot_obstacles(slots: int, held: int) -> Iterator[Obstacle]:
    """Yields an obstacle if all slots of the worker are in use."""
    if held >= slots:
        has = f"{held} of {slots} in use"
        yield Obstacle("slots", "slots", "a free slot", has, says=f"no slot is free ({has})")


def room_obstacles(missing: Mismatch) -> Iterator[Obstacle]:
    """Yields what the worker lacks given the jobs it holds, as a claim computes it."""
    kinds = {APART: "apart", PER_WORKER: "per_worker"}
    kind = kinds.get(missing.key, "resources")
    yield Obstacle(kind, missing.clause_text, missing.needs, missing.has, missing.key)


def excluded_obstacle(excluded: str | None, worker: int, now: int) -> Obstacle:
    """Returns the obstacle of a worker that recently handed the job back."""
    until = max((until for who, until in json.loads(excluded or "[]") if who == worker), default=0)
    left = readable_duration(max(1_000, (until - now) // 1_000 * 1_000))
    has = f"handed it back and may get it again in {left}"
    return Obstacle(
        "excluded", "excluded", "a worker that has not handed it back", has, says=has
    )  # fmt: skip


def company_obstacles(company: Company, suspicion: int) -> Iterator[Obstacle]:
    """Yields an obstacle if this suspected job may not join the jobs that the worker holds."""
    if company.admits(suspicion):
        return
    if company.most == ALONE:
        needs, has = "a worker where no suspected job runs alone", "a suspected job, alone on it"
        says = "holds a job that runs alone, since it lost several workers before"
    elif suspicion == ALONE:
        needs = "a worker without other jobs, since it lost workers that held others too"
        has = counted(company.held, "job")
        says = f"holds {has}, and this one must run alone, since it lost several workers before"
    else:
        most = min(suspicion, company.most)
        needs = f"a worker with fewer than {most} jobs that lost their worker beside others"
        has = str(company.suspects)
        says = (
            f"holds {counted(company.suspects, 'job')} that lost a worker before; at most "
            f"{most} of them may share a worker, including this one"
        )
    yield Obstacle("company", "company", needs, has, says=says)


def entries(groups: Iterable[Group]) -> tuple[WorkerEntry, ...]:
    """Returns workers for display: one entry per set of obstacles, the best match first."""
    ordered = sorted(groups, key=lambda g: (len(g.obstacles), -len(g.names), g.names[0]))
    if len(ordered) > MAX_GROUPS:
        return _by_clause(ordered)
    return tuple(_entry(group.obstacles, group.names) for group in ordered)


def _by_clause(ordered: Sequence[Group]) -> tuple[WorkerEntry, ...]:
    merged: dict[str, tuple[Obstacles, list[str], bool]] = {}
    for obstacles, _, _, _, names in ordered:
        clause = obstacles[0].clause if obstacles else ""
        first, members, _ = merged.setdefault(clause, (obstacles, [], False))
        members += names
        if first and first[0] != obstacles[0]:
            merged[clause] = first, members, True
    return tuple(
        _entry((_similar(first[0]),) if mixed else first, members)
        for first, members, mixed in merged.values()
    )


def _similar(first: Obstacle) -> Obstacle:
    """Returns the common obstacle of workers that lack the same thing but have different values."""
    says = f"{first.says} or similar" if first.says else ""
    return first._replace(has=f"{first.has} or similar", says=says)


def _entry(obstacles: Obstacles, names: list[str]) -> WorkerEntry:
    only = names[0] if len(names) == 1 else None
    group = None if only is not None else list_names(names)
    return WorkerEntry(worker=only, group=group, count=len(names), **shown(obstacles))


def shown(obstacles: Obstacles) -> dict[str, Any]:
    """Returns the fields of `Ability`: the first obstacle in words, and the others."""
    if not obstacles:
        return {"runnable": True}
    first, *others = obstacles
    return {
        "clause": first.clause,
        "needs": first.needs,
        "has": first.has,
        "why": first.text,
        "also": tuple(found.text for found in others),
    }


def list_names(names: Sequence[str]) -> str:
    """Returns a few of the names and how many more there are."""
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED:,} more" if len(names) > NAMED else shown


MAX_ROWS: Final = 50
SAMPLED: Final = 20  # workers of a row whose values are compared

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
    """Returns the distinct values of some workers; None for keys that namespaces hide."""
    if not key or key == MISSING or key.startswith(KEY_START):
        return None
    values = list(dict.fromkeys(shown_value(key, one.get(key)) for one in known))
    return list_names(values) if len(values) > NAMED else ", ".join(values)
