"""Resolves the references of submitted jobs: names to ids, keys to jobs, edges, and uploads."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from windlass.domain.job.dependency_graph import Named
from windlass.domain.job.job import encode_spec
from windlass.domain.job.validation import ValidatedJob
from windlass.domain.rows.files import UPLOADED, ArtifactRow
from windlass.domain.rows.records import JobFacts, KeyRow
from windlass.domain.tasks.references import RESULT, job_of, replaced, results_in, with_job
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.domain.values.ids import JobId, WorkflowId
from windlass.domain.values.names import did_you_mean
from windlass.engine.jobs.unique_keys import take_keys
from windlass.engine.transaction.unit_of_work import Work

MAX_OUTPUTS: Final = 100  # of a workflow


class GraphJob(msgspec.Struct, gc=False):
    """A submitted job while its id and edges are being resolved."""

    index: int
    job: ValidatedJob
    id: JobId
    after: Sequence[int]  # ids, ascending
    any_after: Sequence[int]
    known: int = 0  # the job that already has this key
    base: int = 0
    limit: int | None = None
    workflow: WorkflowId | None = None
    rank: int = 0
    lends: bool = False  # one of its dependencies inherits its rank


def _more_than_named(drafts: Sequence[GraphJob]) -> list[GraphJob]:
    """Returns jobs with more references than names; only these have keys, limits or parents."""
    return [draft for draft in drafts if not draft.job.template.only_named]


async def reserve(work: Work, drafts: Sequence[GraphJob], beside: frozenset[int]) -> None:
    """Claims the keys of these jobs, and finds those that are already used."""
    rows: dict[tuple[str, str], KeyRow] = {}
    tied = _more_than_named(drafts)
    for draft in tied:
        spec = draft.job.spec
        if spec.key is None:
            continue
        namespace = draft.job.shape.namespace
        row = KeyRow(namespace, spec.key, draft.id, draft.job.body_digest or "")
        first = rows.setdefault((namespace, spec.key), row)
        if first.digest != row.digest:
            raise Conflict(
                "key_conflict",
                f"jobs[{draft.index}].key {spec.key!r} belongs to another job of this "
                "submission, with other arguments or options",
            )
        draft.known = first.job if first is not row else 0
    if not rows:
        return
    standing = await take_keys(work, rows, beside)
    for draft in tied:
        spec = draft.job.spec
        if spec.key is None:
            continue
        found = standing[draft.job.shape.namespace, spec.key]
        _same_body(found, KeyRow("", "", 0, draft.job.body_digest or ""), draft)
        if found.job != draft.id:
            draft.known = found.job


def _same_body(found: KeyRow, row: KeyRow, draft: GraphJob) -> None:
    if found.digest != row.digest:
        raise Conflict(
            "key_conflict",
            f"jobs[{draft.index}].key {draft.job.spec.key!r} is used by job {found.job}, "
            "which was submitted with other arguments or options",
        )


async def resolve(
    work: Work,
    drafts: Sequence[GraphJob],
    fresh: Sequence[GraphJob],
    named: Named,
    origins: Mapping[int, int],
) -> dict[int, JobFacts]:
    """Adds references by id to those by name; locks and reads jobs outside this submission."""
    if named.numbered or len(fresh) < len(drafts) or any(named.after_any):
        ids: dict[int, int] = {draft.id: draft.known or draft.id for draft in drafts}
        for draft in fresh:
            _find_ids(draft, ids, drafts, origins)
    _settle_results(drafts, fresh, origins)
    outside: dict[int, JobFacts] = {}
    tied = _more_than_named(fresh)
    parents = {d.job.spec.parent for d in tied if d.job.spec.parent is not None}
    if named.numbered or parents or len(fresh) < len(drafts):
        own = {draft.id for draft in fresh}
        others = {j for d in fresh for j in (*d.after, *d.any_after) if j not in own} | parents
        outside = await work.tx.jobs.share(sorted(others)) if others else {}
        await work.catalog.know(work.tx, (fact.shape for fact in outside.values()))
        for draft in fresh:
            _check_references(draft, outside, origins, work.catalog.namespace_of)
        await _follow_successors(work, fresh, outside)
    await _hold_limits(work, tied)
    return outside


def _settle_results(
    drafts: Sequence[GraphJob], fresh: Sequence[GraphJob], origins: Mapping[int, int]
) -> None:
    """Replaces names by ids in the arguments of jobs that use results of others."""
    referring = [draft for draft in fresh if draft.job.refers]
    if not referring:
        return
    settled = _settler(drafts, origins)
    for draft in referring:
        spec = draft.job.spec
        args = replaced(spec.args, RESULT, settled)
        alone = msgspec.structs.replace(spec, args=args, after=(), after_any=(), workflow=None)
        draft.job = msgspec.structs.replace(draft.job, body=encode_spec(alone))


def settle_outputs(
    outputs: Mapping[str, Any], drafts: Sequence[GraphJob], origins: Mapping[int, int]
) -> dict[str, Any]:
    """Returns the outputs of a workflow with ids instead of names; they must be its own jobs'."""
    field = "workflow.outputs"
    if len(outputs) > MAX_OUTPUTS:
        raise InvalidInput(field, f"at most {MAX_OUTPUTS}", len(outputs))
    names = {draft.job.spec.name for draft in drafts}
    for name, value in outputs.items():
        for job in results_in(value, f"{field}.{name}"):
            if job not in names and job not in origins:
                hint = did_you_mean(str(job), [known for known in names if known])
                raise InvalidInput(f"{field}.{name}", "the name of one of its jobs", job, hint)
    settled: dict[str, Any] = replaced(dict(outputs), RESULT, _settler(drafts, origins))
    return settled


def _settler(
    drafts: Sequence[GraphJob], origins: Mapping[int, int]
) -> Callable[[Any], dict[str, Any]]:
    """Returns a function that puts a job's id into a reference to its result."""
    ids = {d.job.spec.name: d.known or d.id for d in drafts if d.job.spec.name is not None}

    def settled(reference: Any) -> dict[str, Any]:
        job = job_of(reference)
        if isinstance(job, str):
            return with_job(reference, ids[job])
        again = origins.get(job)
        found = job if again is None else drafts[again].known or drafts[again].id
        return with_job(reference, found)

    return settled


async def _follow_successors(
    work: Work, fresh: Sequence[GraphJob], outside: dict[int, JobFacts]
) -> None:
    """Replaces references to superseded jobs by their successors."""
    newest = {job: fact.superseded_by for job, fact in outside.items() if fact.superseded_by}
    ahead = set(newest.values()) - set(outside)
    if not newest:
        return
    while ahead:
        found = await work.tx.jobs.share(sorted(ahead))
        outside.update(found)
        newest |= {job: fact.superseded_by for job, fact in found.items() if fact.superseded_by}
        ahead = set(newest.values()) - set(outside)
    for draft in fresh:
        draft.after = sorted({_last(job, newest) for job in draft.after})
        others = {_last(job, newest) for job in draft.any_after}
        draft.any_after = sorted(others.difference(draft.after))


def _last(job: int, newest: Mapping[int, int]) -> int:
    while job in newest:
        job = newest[job]
    return job


def _find_ids(
    draft: GraphJob, ids: Mapping[int, int], drafts: Sequence[GraphJob], origins: Mapping[int, int]
) -> None:
    """Resolves all ids, including those of jobs that already exist."""

    def meant(reference: int) -> int:
        """Returns the new job for a reference to a repeated one."""
        return ids[drafts[origins[reference]].id] if reference in origins else reference

    spec = draft.job.spec
    after = {ids[job] for job in draft.after}
    others = {ids[job] for job in draft.any_after}
    after |= {meant(ref) for ref in spec.after if isinstance(ref, int)}
    others |= {meant(ref) for ref in spec.after_any if isinstance(ref, int)}
    draft.after = sorted(after)
    draft.any_after = sorted(others - after)


async def _hold_limits(work: Work, fresh: Sequence[GraphJob]) -> None:
    limits = {
        (d.job.shape.namespace, d.job.spec.concurrency.key): d.job.spec.concurrency.max
        for d in fresh
        if d.job.spec.concurrency is not None
    }
    if not limits:
        return
    ids = await work.tx.limits.intern([(*key, limits[key]) for key in sorted(limits)])
    await work.slots.hold(ids.values())  # before workflows are locked
    for draft in fresh:
        spec = draft.job.spec
        if spec.concurrency is not None:
            draft.limit = ids[draft.job.shape.namespace, spec.concurrency.key]


def _check_references(
    draft: GraphJob,
    outside: Mapping[int, JobFacts],
    origins: Mapping[int, int],
    namespace_of: Callable[[int], str],
) -> None:
    """Raises unless the jobs it names exist; jobs of other namespaces do not exist for it."""
    # A guessed id, its own or a neighbour's, does not count as an existing job.
    spec, own = draft.job.spec, draft.job.shape.namespace
    for field, references in (("after", spec.after), ("after_any", spec.after_any)):
        for job in references:
            if not isinstance(job, int) or job in origins:
                continue
            fact = outside.get(job)
            if fact is None or namespace_of(fact.shape) != own:
                where = f"jobs[{draft.index}].{field}"
                hint = f"it may name jobs of namespace {own} only"
                raise InvalidInput(where, "the id of an existing job", job, hint)
    parent = draft.job.spec.parent
    if parent is not None and parent not in outside:
        where = f"jobs[{draft.index}].parent"
        raise InvalidInput(where, "the id of an existing job", parent)


async def use_uploads(work: Work, fresh: Sequence[GraphJob]) -> list[ArtifactRow]:
    """Returns the rows of the uploads that these jobs need.

    Raises `InvalidInput` if the job's namespace does not have one: uploads of other namespaces do
    not exist for it.
    """
    rows: list[ArtifactRow] = []
    needy = [draft for draft in fresh if draft.job.uploads]
    for namespace in sorted({draft.job.shape.namespace for draft in needy}):
        mine = [draft for draft in needy if draft.job.shape.namespace == namespace]
        digests = sorted({digest for draft in mine for digest in draft.job.uploads})
        found = await work.tx.files.use_uploads(namespace, digests, work.now)
        for draft in mine:
            for digest in draft.job.uploads:
                upload = found.get(digest)
                if upload is None:
                    field = f"jobs[{draft.index}].args"
                    raise InvalidInput(field, f"files uploaded to namespace {namespace}", digest)
                row = ArtifactRow(
                    draft.id, UPLOADED, digest, digest, upload.size, upload.content_type
                )
                rows.append(row)
    return rows
