"""Unique keys of jobs and workflows: who holds one, for how long, and who gets it next.

A key belongs to the job or workflow that took it while that is open, and longer if `key_for` says
so. Claiming a key writes its row, so two concurrent claims have one winner. The keys that make
repeated submissions exact are separate (`engine/submit/submission.py`).
"""

from collections.abc import Mapping
from typing import TypeAlias

from windlass.domain.job.forms import bound_until
from windlass.domain.job.job import KEY_BINDS, JobSpec, decode_spec
from windlass.domain.job.validation import digest_of
from windlass.domain.lifecycle.workflow_state import (
    ENDED,
    KEY_KEPT,
    WorkflowState,
    decode_details,
)
from windlass.domain.rows.records import JobFacts, KeyRow, WorkflowRow
from windlass.domain.values.errors import Conflict, WindlassError
from windlass.engine.transaction.unit_of_work import Work

Name: TypeAlias = tuple[str, str]  # namespace and key


class Duplicate(WindlassError):
    """Another workflow has the same key; the transaction is rolled back."""

    code = "duplicate"

    def __init__(self, workflow: int) -> None:
        super().__init__(workflow)
        self.workflow = workflow


async def take_keys(
    work: Work, rows: Mapping[Name, KeyRow], beside: frozenset[int] = frozenset()
) -> dict[Name, KeyRow]:
    """Gives these keys to their jobs unless others have them; returns who has them now.

    Jobs that were submitted `beside` these keep their keys even if they have ended meanwhile.
    """
    standing = await work.tx.jobs.claim_keys([rows[name] for name in sorted(rows)])
    while free := await _free(work, rows, standing, beside):
        wanted = [rows[name] for name in free]
        standing |= await work.tx.jobs.retake_keys(wanted, [standing[name].job for name in free])
    return standing


async def _free(
    work: Work,
    rows: Mapping[Name, KeyRow],
    standing: Mapping[Name, KeyRow],
    beside: frozenset[int] = frozenset(),
) -> list[Name]:
    """Returns the keys whose jobs do not need them any more, in order."""
    kept = {name: row.job for name, row in standing.items() if row.job not in beside}
    others = {name: job for name, job in kept.items() if job != rows[name].job}
    if not others:
        return []
    facts = await work.tx.jobs.read(sorted(set(others.values())))
    bound = {job for job, fact in facts.items() if fact.is_open}
    bound |= await bound_jobs(work, facts)
    return sorted(name for name, job in others.items() if job not in bound)


async def bound_jobs(work: Work, facts: Mapping[int, JobFacts]) -> set[int]:
    """Returns which of the jobs still hold a key that has not expired."""
    marked = sorted(job for job, fact in facts.items() if fact.flags & KEY_BINDS)
    specs = await work.tx.jobs.specs(marked) if marked else {}
    return {
        job
        for job, body in specs.items()
        if bound_until(decode_spec(body).key_for, facts[job].created_at) > work.now
    }


async def pass_key(work: Work, old: JobFacts, spec: JobSpec, new: int) -> None:
    """Gives the key of a superseded job to its successor; raises `Conflict` if another has it."""
    if spec.key is None:
        return
    name = work.catalog.namespace_of(old.shape), spec.key
    row = KeyRow(*name, new, digest_of(spec))
    standing = (await work.tx.jobs.claim_keys([row]))[name]
    if standing.job == old.id:
        row = row._replace(digest=standing.digest)
        standing = (await work.tx.jobs.retake_keys([row], [old.id]))[name]
    if standing.job != new:
        standing = (await take_keys(work, {name: row}))[name]
    if standing.job != new:
        raise key_taken(old.id, spec.key, standing.job)


async def key_holder(work: Work, old: JobFacts, spec: JobSpec) -> Conflict | None:
    """Returns a conflict if another job has the key of this one, which is to be superseded."""
    if spec.key is None:
        return None
    name = work.catalog.namespace_of(old.shape), spec.key
    row = KeyRow(*name, old.id, digest_of(spec))
    standing = await work.tx.jobs.claim_keys([row])
    if standing[name].job == old.id or await _free(work, {name: row}, standing):
        return None
    return key_taken(old.id, spec.key, standing[name].job)


def key_taken(job: int, key: str, holder: int) -> Conflict:
    """Returns the error for a job that cannot be retried because its key is in use."""
    return Conflict("key_taken", f"job {holder} now has the key {key!r} of job {job}")


async def take_workflow_key(
    work: Work, namespace: str, key: str, workflow: int, instead_of: int | None = None
) -> None:
    """Gives a key to a workflow; raises `Duplicate` if another has it.

    `instead_of` is the workflow that this one repeats: it passes on its key once it has ended.
    """
    tx = work.tx.workflows
    named = await tx.claim_key(namespace, key, workflow)
    while named != workflow:
        row = (await tx.lock([named])).get(named)
        if row is not None and await _keeps_key(work, row, named == instead_of):
            raise Duplicate(named)
        named = await tx.claim_key(namespace, key, workflow, named)


async def _keeps_key(work: Work, row: WorkflowRow, hands_over: bool) -> bool:
    if WorkflowState(row.state) not in ENDED:
        return True
    return not hands_over and row.id in await bound_workflows(work, {row.id: row})


async def bound_workflows(work: Work, rows: Mapping[int, WorkflowRow]) -> set[int]:
    """Returns which of the workflows still hold a key that has not expired."""
    marked = sorted(number for number, row in rows.items() if row.flags & KEY_KEPT)
    about = await work.tx.workflows.about(marked) if marked else {}
    return {
        number
        for number, row in about.items()
        if bound_until(decode_details(row.body).key_for, rows[number].created_at) > work.now
    }


async def keep_workflow_key(work: Work, row: WorkflowRow) -> None:
    """Returns its key to an ended workflow that reopens; raises `Conflict` if another has it."""
    about = (await work.tx.workflows.about([row.id])).get(row.id)
    if about is None or about.key is None:
        return
    try:
        await take_workflow_key(work, row.namespace, about.key, row.id)
    except Duplicate as found:
        message = f"workflow {found.workflow} now has the key {about.key!r} of workflow {row.id}"
        raise Conflict("key_taken", message) from None
