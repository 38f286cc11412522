"""Changes many jobs at once: cancels, retries or reprioritises what a filter finds."""

from windlass.api.parse import job_filter
from windlass.domain.access.roles import Identity, Role
from windlass.domain.job.job import decode_spec
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobFilter
from windlass.domain.values.errors import InvalidInput
from windlass.engine.commands.bulk import Allow, Bulk, BulkPage, states_for
from windlass.engine.engine import Engine
from windlass.wire.bulk import BulkReply, BulkRequest, RefusedJob, Where

OWN = "a submitter may only lower the priority of its own jobs"


async def edit_many(engine: Engine, request: BulkRequest, who: Identity) -> BulkReply:
    """Edits the next page of matching jobs, or counts it, with the rights of `who`."""
    wanted = _filter(request.where, who)
    if request.action == "prioritize" and request.adjustment is None:
        raise InvalidInput("adjustment", "a number, to prioritize", None)
    part = await _edit(engine.bulk, request, wanted, who)
    return BulkReply(
        matched=part.matched,
        applied=part.applied,
        refusals=part.refusals,
        refused=[RefusedJob(refused.job, refused.reason) for refused in part.refused],
        next=part.next or None,
    )


async def _edit(bulk: Bulk, request: BulkRequest, wanted: JobFilter, who: Identity) -> BulkPage:
    if request.dry_run:
        return await bulk.count(states_for(request.action, wanted), request.after)
    if request.action == "cancel":
        return await bulk.cancel(wanted, request.after, request.reason, who.name)
    if request.action == "retry":
        return await bulk.retry(wanted, request.after, who.name)
    adjustment = request.adjustment or 0
    allow = _allow(who, adjustment)
    return await bulk.prioritize(wanted, request.after, adjustment, who.name, allow)


def _filter(where: Where, who: Identity) -> JobFilter:
    if where == Where():
        raise InvalidInput("where", "at least one filter, such as queue or label", "none")
    return job_filter(
        who,
        state=where.state,
        queue=where.queue,
        namespace=where.namespace,
        task=where.task,
        name=where.name,
        label=where.label,
        workflow=where.workflow,
        submitted_by=where.submitted_by,
        key=None,
        dead=where.dead,
    )


def _allow(who: Identity, adjustment: int) -> Allow:
    """Returns a check: operators may do everything, submitters may lower their own jobs."""

    def allow(view: JobRecord) -> str | None:
        if who.may(Role.OPERATOR):
            return None
        raises = adjustment > view.facts.adjustment
        own = decode_spec(view.spec).submitted_by == who.name
        return None if own and not raises else OWN

    return allow
