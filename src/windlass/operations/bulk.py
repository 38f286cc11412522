"""Changes of all jobs that pass a filter, a part at a time."""

from collections.abc import Sequence

import msgspec

from windlass.domain.access.rights import Action, Identity, may
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobCount, JobFilter
from windlass.domain.values.errors import InvalidInput
from windlass.engine.commands.jobs import Bulk, changeable, states_for
from windlass.messages.jobs import BulkReply, BulkRequest, PreviewReply, PreviewRequest, Where
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.parse import job_filter
from windlass.operations.rights import Rights, counted_for
from windlass.store.sql.views import Views

routes = Routes("/api/v1/jobs", "jobs")


@routes.post("/bulk", needs=Action.CHANGE_JOBS)
async def edit_many(call: Call, data: Body[BulkRequest]) -> BulkReply:
    """Cancels, retries or reprioritises the next page of jobs that a filter finds."""
    wanted = _filter(data.where, call.who)
    if data.action == "prioritize" and data.adjustment is None:
        raise InvalidInput("adjustment", "a number, to prioritize", None)
    services = call.services
    part = await _edit(services.engine.bulk, data, wanted, services.rights, call.who)
    call.about = f"{data.action} {part.applied} of {part.matched} jobs"
    return part


@routes.post("/bulk/preview", needs=Action.CHANGE_JOBS)
async def preview(call: Call, data: Body[PreviewRequest]) -> PreviewReply:
    """Counts the jobs that an action on a filter would be about; changes nothing."""
    who, store = call.who, call.services.engine.store
    wanted = changeable(data.action, _filter(data.where, who))
    only_own = not may(who, Action.CHANGE_ALL_JOBS)
    if wanted is None or (only_own and wanted.submitted_by not in (None, who.name)):
        none = PreviewReply(count=0, exact=True, looked=0, only_own=only_own, where=data.where)
        return counted_for(who, none)
    if only_own:
        wanted = wanted._replace(submitted_by=who.name)
    newest, found = await store.read(lambda tx: _count(tx.views, wanted))
    states = [str(STATE_BY_CODE[code]) for code in wanted.states]
    where = msgspec.structs.replace(data.where, state=states, submitted_by=wanted.submitted_by)
    shown = PreviewReply(
        count=found.found,
        exact=found.is_whole,
        looked=found.looked,
        estimate=found.estimate,
        only_own=only_own,
        where=where,
        after=newest + 1,
    )
    return counted_for(who, shown)


async def _count(views: Views, wanted: JobFilter) -> tuple[int, JobCount]:
    """Returns the newest job of all, and how many match."""
    page = await views.jobs(JobFilter(), 0, 1)
    return max((view.facts.id for view in page.jobs), default=0), await views.count_jobs(wanted)


async def _edit(
    bulk: Bulk, request: BulkRequest, wanted: JobFilter, rights: Rights, who: Identity
) -> BulkReply:
    async def refuse(jobs: Sequence[JobRecord]) -> dict[int, str]:
        return await rights.refusals([view.facts.id for view in jobs], who)

    if request.dry_run:
        return await bulk.count(states_for(request.action, wanted), request.after)
    if request.action == "cancel":
        return await bulk.cancel(
            wanted, request.after, request.reason, who.name, refuse, request.at_most
        )
    if request.action == "retry":
        return await bulk.retry(wanted, request.after, who.name, refuse, request.at_most)
    adjustment = request.adjustment or 0

    async def refuse_to_raise(jobs: Sequence[JobRecord]) -> dict[int, str]:
        refused = await refuse(jobs)
        for facts in (view.facts for view in jobs):
            why = rights.refuse_adjustment(facts.base, facts.adjustment, adjustment, who)
            if why is not None:
                refused.setdefault(facts.id, why)
        return refused

    return await bulk.prioritize(
        wanted, request.after, adjustment, who.name, refuse_to_raise, request.at_most
    )


def _filter(where: Where, who: Identity) -> JobFilter:
    if where == Where():
        raise InvalidInput("where", "at least one filter, such as queue or label", "none")
    return job_filter(who, where)
