"""Collects and groups the reasons why workers cannot take a job.

The checks are the same functions that claims use (`shapes.py`, `claim_planning.py` and `workers.py`
in `domain/matching`); this module only words their results.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from windlass.domain.explain.explanation import WorkerEntry
from windlass.domain.matching.clauses import resource_key
from windlass.domain.matching.matching import (
    ALLOWLIST,
    APART,
    DENYLIST,
    PER_WORKER,
    Mismatch,
    mismatch_text,
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
        """Returns it as words to follow the worker's name."""
        return self.says or mismatch_text(self.key, self.needs, self.has)

    def about(self, worker: str) -> str:
        """Returns it as a sentence of its own, with the worker's name."""
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
    if not obstacles:
        return WorkerEntry(worker=only, group=group, count=len(names), runnable=True)
    first, *others = obstacles
    return WorkerEntry(
        worker=only, group=group, count=len(names), clause=first.clause, needs=first.needs,
        has=first.has, why=first.text, also=tuple(found.text for found in others),
    )  # fmt: skip


def list_names(names: Sequence[str]) -> str:
    """Returns a few of the names and how many more there are."""
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED:,} more" if len(names) > NAMED else shown
