"""Decides which worker can run what: two filters over a worker's metadata.

Claims and `explain` use the same functions. They get metadata, a task, clauses and resources, never
a job, so results can be cached per (metadata digest, shape).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from operator import ge, gt, le, lt
from typing import Any, Final

import msgspec
from msgspec import Struct

from windlass.domain.access.secrets import KEY_START
from windlass.domain.matching.clauses import (
    Clause,
    Scalar,
    is_size,
    resource_key,
    satisfies,
    short_key,
)
from windlass.domain.matching.functions import MISSING, why_not
from windlass.domain.matching.indices import limit_amounts
from windlass.domain.matching.isolation import OFFERED
from windlass.domain.values.errors import InvalidInput, shorten
from windlass.domain.values.quantities import parse_size, readable_size

DENYLIST: Final = "tasks_denylist"
ALLOWLIST: Final = "tasks_allowlist"
APART: Final = "apart"
PER_WORKER: Final = "max_per_worker"
REASON_LIMIT: Final = 1_000  # characters of why a worker cannot run a function

_COMPARE: Final = {">=": ge, "<=": le, ">": gt, "<": lt}


def mismatch_text(key: str, needs: str, has: str) -> str:
    """Returns why a worker cannot run a job, in words that follow the worker's name."""
    if key in (DENYLIST, ALLOWLIST):
        return f"does not run {needs}; it runs {has}"
    if key == MISSING:
        return f"cannot run {needs}: {'it has ' if has.startswith('version ') else ''}{has}"
    if key in (APART, PER_WORKER):
        return f"holds {has}"
    return f"needs {needs}, has {has}"


class Mismatch(Struct, frozen=True):
    """A clause that a worker does not meet: what it needs and what the worker has."""

    clause_text: str
    key: str
    needs: str
    has: str

    @property
    def text(self) -> str:
        return mismatch_text(self.key, self.needs, self.has)


def merge_metadata(
    dynamic: Mapping[str, object], static: Mapping[str, object]
) -> dict[str, object]:
    """Merges a worker's metadata: what operators set overrides what the agent reports."""
    merged = {**dynamic, **static}
    limit_amounts(merged)
    return merged


def metadata_of(static: str, dynamic: str) -> dict[str, Any]:
    """Returns what matching uses of a worker, from its metadata as they are stored."""
    decode = msgspec.json.decode
    return merge_metadata(decode(dynamic), decode(static))


def metadata_digest(metadata: Mapping[str, object]) -> str:
    """Returns a digest of this metadata that does not depend on the order of its keys."""
    return sha256(msgspec.json.encode(metadata, order="deterministic")).hexdigest()[:32]


def first_mismatch(
    task: str,
    requires: Sequence[Clause],
    resources: Sequence[tuple[str, int]],
    metadata: Mapping[str, object],
) -> Mismatch | None:
    """Returns the first reason why this worker cannot run such jobs; None if it can."""
    return next(mismatches(task, requires, resources, metadata), None)


def mismatches(
    task: str,
    requires: Iterable[Clause],
    resources: Iterable[tuple[str, int]],
    metadata: Mapping[str, object],
) -> Iterator[Mismatch]:
    """Yields why a worker cannot run such jobs: task lists, then clauses, then resources."""
    denied = _as_list(metadata.get(DENYLIST))
    if not all(isinstance(name, str) for name in denied):
        unreadable = f"nothing: its {DENYLIST} is not a list of tasks"
        yield Mismatch(DENYLIST, DENYLIST, f"task {task}", unreadable)
    elif task in denied:
        yield Mismatch(DENYLIST, DENYLIST, f"task {task}", f"all tasks but {_listed(denied)}")
    allowed = metadata.get(ALLOWLIST)
    if allowed is not None and task not in _as_list(allowed):
        names = _listed(_as_list(allowed))
        yield Mismatch(ALLOWLIST, ALLOWLIST, f"task {task}", f"only {names}" if names else "none")
    for clause in requires:
        if clause.key == MISSING and clause.op == "!=":
            has = why_not(str(clause.value), metadata)
            if has is not None:
                why = shorten(has, REASON_LIMIT)
                yield Mismatch(clause.text, MISSING, clause.needs, why)
        elif not _holds(clause, metadata.get(clause.key)):
            yield _mismatch(clause, clause.text, metadata)
    for name, amount in resources:
        clause = Clause(resource_key(name), ">=", amount)
        if amount and not _holds(clause, metadata.get(clause.key)):
            yield _mismatch(clause, f"{name}={amount}", metadata)


def amount_of(metadata: Mapping[str, object], resource: str) -> int:
    """Returns how much of a resource a worker has; 0 if it reports none."""
    key = resource_key(resource)
    found = [_as_number(key, item) for item in _as_list(metadata.get(key))]
    return int(max((amount for amount in found if amount is not None), default=0))


def _mismatch(clause: Clause, clause_text: str, metadata: Mapping[str, object]) -> Mismatch:
    value = metadata.get(clause.key)
    needs, has = clause.needs, shown_value(clause.key, value)
    if value is not None and is_size(clause.key) and needs.endswith(f" {has}"):
        # Rounded for display, the two would look the same.
        has = f"{value} bytes"
    return Mismatch(clause_text, clause.key, needs, has)


def _holds(clause: Clause, value: object) -> bool:
    """Returns True if a metadata value meets a clause; for a list, one item must meet it."""
    op, wanted = clause.op, clause.value
    values = [item for item in _as_list(value) if item is not None]
    if op == "!=":
        return not any(_same(clause.key, item, wanted) for item in values)
    if op in ("==", "has"):
        return any(_same(clause.key, item, wanted) for item in values)
    if op == "in":
        choices = wanted if isinstance(wanted, tuple) else (wanted,)
        return any(_same(clause.key, item, choice) for item in values for choice in choices)
    if op == "matches":
        return any(satisfies(str(item), str(wanted)) for item in values)
    return any(_ordered(clause, item) for item in values)


def _ordered(clause: Clause, value: object) -> bool:
    have = _as_number(clause.key, value)
    wanted = _as_number(clause.key, clause.value)
    return have is not None and wanted is not None and _COMPARE[clause.op](have, wanted)


def _same(key: str, have: object, wanted: Scalar | tuple[Scalar, ...]) -> bool:
    if isinstance(have, bool):
        return wanted == ("true" if have else "false")
    if isinstance(wanted, int | float):
        return _as_number(key, have) == wanted
    return str(have) == wanted


def _as_number(key: str, value: object) -> int | float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value
    if not isinstance(value, str):
        return None
    try:
        return parse_size(value) if is_size(key) else float(value)
    except (InvalidInput, ValueError):
        return None


def _as_list(value: object) -> Sequence[object]:
    if value is None:
        return ()
    return value if isinstance(value, list | tuple) else (value,)


def _listed(names: Sequence[object]) -> str:
    return ", ".join(map(str, names))


def shown_value(key: str, value: object) -> str:
    """Formats the value of a metadata key for people."""
    if value is None:
        if key.startswith(KEY_START):
            return "no such secret"
        return "only process" if key == OFFERED else f"no {short_key(key)}"
    if key.startswith(KEY_START):
        # namespaces are not public to everyone who may explain a job
        return "it for other namespaces"
    if is_size(key) and isinstance(value, int):
        return readable_size(value)
    if isinstance(value, list | tuple):
        return shorten(", ".join(str(item) for item in value) or "(empty)")
    return shorten(value)
