"""Resolves references in arguments when a job is assigned: names, and results of other jobs.

`{"$lookup": NAME}` becomes an artifact, `@JOB/ARTIFACT` an artifact of a dependency
of the newest
successor, and `{"$result": JOB}` the result of a job (`results.py`). We store the
resolved names with the attempt, so that a repeated answer is unchanged, while a retry resolves
again. A job with an unknown name, or without a result that it needs, is rejected by a separate
transaction, after the one that made the lease, because jobs are locked before leases.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.rows.files import Dynamic, NameRow
from windlass.domain.rows.records import JobFacts, Lease
from windlass.domain.rows.views import accepted_attempt
from windlass.domain.tasks.references import (
    LOOKUP,
    RESULT,
    TEXT,
    Replace,
    as_text,
    joined,
    references_in,
    replaced,
)
from windlass.domain.tasks.shell import TEXTS, ShellTask
from windlass.engine.jobs.close import Closing, Failure
from windlass.engine.jobs.dependents import newest_of
from windlass.engine.sync.results import Filled, Results, resolved
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import Assignment
from windlass.store.sql.transaction import ReadTx

_MARKS: Final = tuple(f'"{kind}"'.encode() for kind in (LOOKUP, RESULT))
_BYTE: Final = ord("$")

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder(order="deterministic").encode


def has_names(spec: bytes) -> bool:
    """Returns whether a spec may have references to resolve."""
    # For most specs, searching for one byte is enough, at a tenth of the cost of the full mark.
    return _BYTE in spec and (_MARKS[0] in spec or _MARKS[1] in spec)


async def resolve(work: Work, granted: Sequence[Assignment]) -> list[Assignment]:
    """Returns these with their references resolved; leaves out those that must be rejected."""
    specs = {a.job: _decode(a.spec) for a in granted if has_names(bytes(a.spec))}
    results = await Results.read(work.tx, specs.values())
    resolved: list[Assignment] = []
    rows: list[Dynamic] = []
    for assignment in granted:
        job, attempt, spec = assignment.job, assignment.attempt, specs.get(assignment.job)
        if spec is None:
            resolved.append(assignment)
            continue
        wanted = sorted(set(names_in(spec.get("args"))))
        values = await _find(work, spec, wanted) if wanted else {}
        missing = [name for name in wanted if name not in values]
        filled = results.fill(spec, work.config.results_limit)
        problem = _unknown(missing) if missing else filled.problem
        if problem is not None:
            work.effects.unresolved.append((job, attempt, problem))
            continue
        if values or filled.files:
            rows.append(Dynamic(job, attempt, _encode({**values, **filled.files})))
        whole = msgspec.Raw(_encode(filled_in(spec, values, filled)))
        resolved.append(msgspec.structs.replace(assignment, spec=whole))
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
    marked = [lease for lease in leases if has_names(specs[lease.job])]
    if not marked:
        return again
    rows = await work.tx.files.dynamic([lease.job for lease in marked])
    read = {lease.job: _decode(specs[lease.job]) for lease in marked}
    results = await Results.read(work.tx, read.values())
    for lease in marked:
        spec, row = read[lease.job], rows.get(lease.job)
        wanted = sorted(set(names_in(spec.get("args"))))
        known = row is not None and row.attempt == lease.attempt
        filled = results.fill(spec, work.config.results_limit)
        problem = _unknown(wanted) if wanted and not known else filled.problem
        if problem is not None:
            del again[lease.job]
            work.effects.unresolved.append((lease.job, lease.attempt, problem))
        else:
            values = _decode(row.body) if row is not None and known else {}
            again[lease.job] = _encode(filled_in(spec, values, filled))
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
    return (name for name in references_in(value, LOOKUP) if isinstance(name, str))


def filled_in(
    spec: dict[str, Any], values: Mapping[str, object], results: Filled
) -> dict[str, Any]:
    """Returns a spec with its references replaced."""
    args = spec.get("args")
    if values:
        args = replaced(args, LOOKUP, lambda name: _value(name, values))
    if results.values:  # last: references inside results are not followed
        resolve = partial(resolved, results.values)
        args = replaced(args, TEXT, partial(joined, resolve=resolve))
        if spec.get("task") == ShellTask.name and isinstance(args, dict):
            args = {**args, **_words(args, resolve)}
        args = replaced(args, RESULT, resolve)
    return {**spec, "args": args}


def _words(args: dict[str, Any], resolve: Replace) -> dict[str, Any]:
    """Returns arguments that must be texts, with results as texts."""
    return {
        name: replaced(args[name], RESULT, lambda reference: as_text(resolve(reference)))
        for name in TEXTS
        if name in args
    }


def _value(name: Any, values: Mapping[str, object]) -> object:
    return values[name] if isinstance(name, str) else {LOOKUP: name}


def _artifact(row: NameRow) -> dict[str, object]:
    return {"name": row.name, "job": row.job, "artifact": row.artifact, "sha256": row.sha256}


def _unknown(names: Sequence[str]) -> str:
    return f"no artifact has the name {', '.join(names)}"


UPSTREAM: Final = "@"


async def find_upstream(
    tx: ReadTx, spec: Mapping[str, Any], wanted: Sequence[str]
) -> dict[str, Any]:
    """Returns what these names refer to, without unknown ones."""
    newest = await newest_of(tx, [*spec.get("after", ()), *spec.get("after_any", ())])
    facts: dict[int, JobFacts] = {
        fact.id: fact for fact in newest.values() if not fact.superseded_by
    }
    named = await _names(tx, list(facts))
    chosen = {name: _choose(name.removeprefix(UPSTREAM), named) for name in wanted}
    files = await tx.files.artifacts(sorted({job for found in chosen.values() for job, _ in found}))
    digests = {
        (row.job, row.name): row.sha256
        for rows in files.values()
        for row in rows
        if row.attempt == accepted_attempt(facts[row.job])
    }
    values: dict[str, Any] = {}
    for name, found in chosen.items():
        for job, artifact in found:
            if (job, artifact) in digests:
                digest = digests[job, artifact]
                values[name] = {"name": name, "job": job, "artifact": artifact, "sha256": digest}
                break
    return values


async def _names(tx: ReadTx, jobs: Sequence[int]) -> dict[str, int]:
    specs = await tx.jobs.specs(jobs)
    names = {job: _decode(body).get("name") for job, body in specs.items()}
    return {name: job for job, name in names.items() if name is not None}


def _choose(reference: str, named: Mapping[str, int]) -> list[tuple[int, str]]:
    """Returns the possible jobs with the rest as the artifact; names may contain slashes."""
    fits = [name for name in named if reference.startswith(f"{name}/")]
    return [(named[n], reference[len(n) + 1 :]) for n in sorted(fits, key=len, reverse=True)]
