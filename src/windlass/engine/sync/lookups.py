"""Resolves names in arguments: `{"$lookup": NAME}` becomes an artifact at assignment.

`@JOB/ARTIFACT` is an artifact of a job that this one waits for (`upstream_files.py`). We store the
result with the attempt, so that a lost answer is sent again unchanged, while a retry resolves
again. A job with an unknown name is rejected by a separate transaction, after the one that made
the lease, because jobs are locked before leases.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.files import Dynamic, NameRow
from windlass.domain.rows.records import Lease
from windlass.engine.jobs.close import Closing, Failure
from windlass.engine.sync.upstream_files import UPSTREAM, find_upstream
from windlass.engine.transaction.unit_of_work import Work
from windlass.wire.sync import Assignment

_MARK: Final = b'"$lookup"'
_BYTE: Final = ord("$")
_KEY: Final = "$lookup"

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="deterministic").encode


def has_names(spec: bytes) -> bool:
    """Returns whether a spec may have names to resolve."""
    # For most specs, searching for one byte is enough, at a tenth of the time of the full mark.
    return _BYTE in spec and _MARK in spec


async def resolve(work: Work, granted: Sequence[Assignment]) -> list[Assignment]:
    """Returns these with their names resolved; leaves out those that must be rejected."""
    resolved: list[Assignment] = []
    rows: list[Dynamic] = []
    for assignment in granted:
        job, attempt, body = assignment.job, assignment.attempt, bytes(assignment.spec)
        spec = _decode(body) if _MARK in body else {}
        wanted = sorted(set(names_in(spec.get("args"))))
        if not wanted:
            resolved.append(assignment)
            continue
        values = await _find(work, spec, wanted)
        missing = [name for name in wanted if name not in values]
        if missing:
            _give_up(work, job, attempt, missing)
            continue
        rows.append(Dynamic(job, attempt, _encode(values)))
        filled = msgspec.Raw(_encode(filled_in(spec, values)))
        resolved.append(msgspec.structs.replace(assignment, spec=filled))
    await work.tx.files.put_dynamic(rows)
    return resolved


async def _find(work: Work, spec: dict[str, Any], wanted: Sequence[str]) -> dict[str, object]:
    """Returns what the names refer to, without unknown ones."""
    own = [name for name in wanted if not name.startswith(UPSTREAM)]
    found = await work.tx.files.lookup(spec.get("namespace", "default"), own) if own else {}
    values: dict[str, object] = {name: _artifact(row) for name, row in found.items()}
    if len(own) < len(wanted):
        above = [name for name in wanted if name.startswith(UPSTREAM)]
        values |= await find_upstream(work.tx, spec, above)
    return values


async def resolve_again(
    work: Work, leases: Sequence[Lease], specs: Mapping[int, bytes]
) -> dict[int, bytes]:
    """Returns the specs of attempts that are sent again, resolved as the first time."""
    again = dict(specs)
    marked = [lease for lease in leases if _MARK in specs[lease.job]]
    if not marked:
        return again
    rows = await work.tx.files.dynamic([lease.job for lease in marked])
    for lease in marked:
        spec, row = _decode(specs[lease.job]), rows.get(lease.job)
        wanted = sorted(set(names_in(spec.get("args"))))
        if row is not None and row.attempt == lease.attempt:
            again[lease.job] = _encode(filled_in(spec, _decode(row.body)))
        elif wanted:
            del again[lease.job]
            _give_up(work, lease.job, lease.attempt, wanted)
    return again


async def reject_unresolved(work: Work, unresolved: Sequence[tuple[int, int, str]]) -> None:
    """Rejects the jobs of active attempts (job, attempt, why) with unknown names."""
    jobs = sorted({job for job, _, _ in unresolved})
    facts = await work.tx.jobs.lock(jobs)
    leases = await work.tx.leases.lock(jobs)
    await work.catalog.know(work.tx, {fact.shape for fact in facts.values()})
    closing = Closing(work)
    await closing.learn(list(leases))
    for job, attempt, why in unresolved:
        lease = leases.get(job)
        if lease is not None and lease.attempt == attempt:
            closing.fail(facts[job], lease, Failure(FailureClass.CONFIGURATION, why, misfit=True))
    await closing.write()


def names_in(value: object) -> Iterator[str]:
    """Yields every name that is looked up in a JSON value."""
    if isinstance(value, dict):
        if _is_lookup(value):
            yield value[_KEY]
        else:
            for item in value.values():
                yield from names_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from names_in(item)


def filled_in(spec: dict[str, Any], values: Mapping[str, object]) -> dict[str, Any]:
    """Returns a spec with its names replaced by their values."""
    return {**spec, "args": _fill(spec.get("args"), values)}


def _fill(value: Any, values: Mapping[str, object]) -> Any:
    if isinstance(value, dict):
        if _is_lookup(value):
            return values[value[_KEY]]
        return {name: _fill(item, values) for name, item in value.items()}
    return [_fill(item, values) for item in value] if isinstance(value, list) else value


def _is_lookup(value: dict[str, Any]) -> bool:
    return len(value) == 1 and isinstance(value.get(_KEY), str)


def _artifact(row: NameRow) -> dict[str, object]:
    return {"name": row.name, "job": row.job, "artifact": row.artifact, "sha256": row.sha256}


def _give_up(work: Work, job: int, attempt: int, missing: Sequence[str]) -> None:
    why = f"no artifact has the name {', '.join(missing)}"
    work.effects.unresolved.append((job, attempt, why))
