"""Finds the smallest change that would let a job run, as steps for an operator.

A step that one command does (resume a queue, enable a worker) is smaller than one that needs a
machine. If every worker lacks something, we suggest a new one similar to the best.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from windlass.domain.access.rights import Action
from windlass.domain.explain.explanation import Change, Request, Step
from windlass.domain.explain.reasons import Group, Matcher, Obstacle
from windlass.domain.matching.clauses import Clause, resource_key, satisfies
from windlass.domain.matching.functions import MISSING, UNSEEN, VERSIONS
from windlass.domain.matching.isolation import DEFAULT, WEAKEST
from windlass.domain.matching.matching import ALLOWLIST, DENYLIST
from windlass.domain.matching.shapes import NAMESPACES, Shape
from windlass.domain.matching.workers import LEAVING, WorkerStatus
from windlass.domain.tasks.worker_lists import BUILT_IN

# Statuses that only an operator sets.
_DECIDED: Final = frozenset({NAMESPACES, ALLOWLIST, DENYLIST})

_COSTS: Final = {
    "status": 2, "slots": 4, "resources": 4, "apart": 4, "reserved": 4, "per_worker": 4,
    "company": 4, "excluded": 5,
}  # fmt: skip
_DECISION_COST: Final = 3
_CLAUSE_COST: Final = 10
_OFFLINE_COST: Final = 6

_VERSION: Final = re.compile(r"[0-9]+(?:\.[0-9]+)*")


def change_of(steps: Sequence[Step]) -> Change | None:
    """Joins several steps into one change; returns None if there are none."""
    if not steps:
        return None
    return Change(text="; then ".join(step.text for step in steps), steps=tuple(steps))


def nearest(groups: Iterable[Group]) -> Group | None:
    """Returns the workers with the smallest obstacle."""
    return min(groups, key=lambda group: (_cost(group), group.names[0]), default=None)


def steps_for(shape: Shape, group: Group | None) -> list[Step]:
    """Returns the steps that let this worker, or a new one (None), take jobs of `shape`."""
    if group is None:
        return [_add_worker(shape, None, {}, [])]
    if not group.obstacles:
        return []
    clauses = [found for found in group.obstacles if found.kind == "clause"]
    others = [found for found in group.obstacles if found.kind != "clause"]
    needs_machine = any(not _is_decision(shape, found) for found in clauses)
    if needs_machine or any(found.kind not in ("status", "clause") for found in others):
        return [_add_worker(shape, group.names[0], group.metadata, clauses)]
    steps = [_decide(shape, group, clauses)] if clauses else []
    return steps + [_rouse(group) for _ in others]


def _is_decision(shape: Shape, found: Obstacle) -> bool:
    """Returns whether only an operator keeps the worker from it. No list teaches it a task."""
    if found.key == ALLOWLIST:
        return shape.task in BUILT_IN
    return found.key in _DECIDED


def satisfied(shape: Shape, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what must be added to `metadata` so that it meets every clause of `shape`."""
    wanted: dict[str, Any] = {}
    clauses = [*shape.requires]
    clauses += [Clause(resource_key(name), ">=", amount) for name, amount in shape.resources]
    matcher = Matcher(shape)
    for clause in clauses:
        have = {**metadata, **wanted}
        failing = {found.key for found in matcher.obstacles(have)}
        if clause.key in failing and not _meets(shape, clause, have):
            value = _value_for(clause)
            wanted[clause.key] = (
                _joined(wanted[clause.key], value) if clause.key in wanted else value
            )
    have = {**metadata, **wanted}
    for found in matcher.obstacles(have):
        if found.key == DENYLIST:
            wanted[DENYLIST] = [task for task in _listed(have[DENYLIST]) if task != shape.task]
        elif found.key == ALLOWLIST:
            wanted[ALLOWLIST] = [*_listed(have[ALLOWLIST]), shape.task]
        elif found.key == MISSING:
            wanted |= {MISSING: None, VERSIONS: None}
        elif found.key == NAMESPACES:
            wanted[NAMESPACES] = [*_listed(have[NAMESPACES]), shape.namespace]
    return wanted


def _meets(shape: Shape, clause: Clause, metadata: Mapping[str, Any]) -> bool:
    alone = Shape(shape.namespace, shape.queue, shape.task, (clause,))
    return not any(found.key == clause.key for found in Matcher(alone).obstacles(metadata))


def _value_for(clause: Clause) -> Any:
    """Returns a value that meets the clause."""
    op, wanted = clause.op, clause.value
    if op == "!=":
        return None
    if isinstance(wanted, tuple):
        return _plain(wanted[0])
    if op == "matches":
        return _version_for(str(wanted))
    if op == ">" and not isinstance(wanted, str):
        return wanted + 1
    if op == "<" and not isinstance(wanted, str):
        return wanted - 1
    return [_plain(wanted)] if op == "has" else _plain(wanted)


def _plain(value: Any) -> Any:
    """Turns the text of a boolean in a clause into the boolean that metadata holds."""
    return {"true": True, "false": False}.get(value, value) if isinstance(value, str) else value


def _version_for(specifier: str) -> str:
    """Returns a version that the specifier allows: one it names, or one next to it."""
    named: list[str] = _VERSION.findall(specifier)
    near = [*named, *(f"{version}.1" for version in named), "0"]
    return next((version for version in near if satisfies(version, specifier)), named[0])


def _joined(first: Any, second: Any) -> Any:
    if first is None or second is None:
        return first if second is None else second
    return [*_listed(first), *_listed(second)]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _cost(group: Group) -> int:
    clauses = [found for found in group.obstacles if found.kind == "clause"]
    if any(found.key not in _DECIDED for found in clauses):
        # A new, similar worker would be idle and healthy, so only the clauses count.
        return _CLAUSE_COST * len(clauses)
    cost = _DECISION_COST * len(clauses)
    for found in group.obstacles:
        cost += _COSTS.get(found.kind, 0)
    asleep = (WorkerStatus.OFFLINE, WorkerStatus.UNHEALTHY)
    return cost + _OFFLINE_COST * (group.status in asleep)


def _add_worker(
    shape: Shape, like: str | None, metadata: Mapping[str, Any], clauses: Sequence[Obstacle]
) -> Step:
    wanted = satisfied(shape, metadata)
    needs = [found.needs for found in clauses]
    if like is None:
        needs = [clause.needs for clause in shape.requires]
        needs += [Clause(resource_key(n), ">=", amount).needs for n, amount in shape.resources]
    text = "start a worker" if like is None else f"add a worker like {like}"
    if like is not None and any(found.key == ALLOWLIST for found in clauses):
        text = f"install what brings task {shape.task} on worker {like} and restart it, or {text}"
    lacking = [found for found in clauses if found.key == MISSING]
    if like is not None and any(UNSEEN in found.has for found in lacking):
        text = f"restart worker {like} where jobs can read its code, or {text}"
    elif like is not None and lacking:
        text = (
            f"restart worker {like} where its code is found (or start it with --reload), or {text}"
        )
    if like is not None and not clauses:
        text = f"wait for a worker to be free, or {text}"
    return Step(
        action="add_worker", text=text + (f" with {' and '.join(needs)}" if needs else ""),
        worker=like, metadata=wanted,
    )  # fmt: skip


def _decide(shape: Shape, group: Group, clauses: Sequence[Obstacle]) -> Step:
    wanted = satisfied(shape, group.metadata)
    needs = " and ".join(found.needs for found in clauses)
    name = group.names[0]
    entries = (f"{key}={','.join(map(str, value))}" for key, value in wanted.items())
    mixes = NAMESPACES in wanted and group.metadata.get(DEFAULT) == WEAKEST
    warning = "(with isolation process, jobs can read the files of its other jobs)"
    return Step(
        action="set_metadata",
        text=f"let worker {name} take jobs of {needs}{warning if mixes else ''}",
        worker=name, metadata=wanted,
        command=f"windlass workers set {shlex.join([name, *entries])}",
        request=Request(
            method="PATCH", path=f"/api/v1/workers/{group.ids[0]}/static", body=wanted,
            needs=Action.MANAGE_WORKERS,
        ),
    )  # fmt: skip


def _rouse(group: Group) -> Step:
    """Returns the step that makes a worker take jobs again."""
    name, quoted = group.names[0], shlex.quote(group.names[0])
    if any(LEAVING in found.has for found in group.obstacles):
        return Step(action="start_worker", text=f"start worker {name} again", worker=name)
    if group.status in (WorkerStatus.DRAINING, WorkerStatus.DISABLED, WorkerStatus.PROBATION):
        return Step(
            action="enable_worker", text=f"enable worker {name}", worker=name,
            command=f"windlass workers enable {quoted}", request=_act(group, "enable"),
        )  # fmt: skip
    if group.status == WorkerStatus.PENDING_APPROVAL:
        return Step(
            action="approve_worker", text=f"approve worker {name}", worker=name,
            command=f"windlass workers approve {quoted}", request=_act(group, "approve"),
        )  # fmt: skip
    return Step(action="start_worker", text=f"start worker {name} again", worker=name)


def _act(group: Group, action: str) -> Request:
    path = f"/api/v1/workers/{group.ids[0]}/{action}"
    return Request(method="POST", path=path, needs=Action.MANAGE_WORKERS)
