"""Changes many jobs at once: cancels, retries or reprioritises what a filter finds."""

from collections.abc import Sequence

import msgspec

from windlass.api.parse import job_filter
from windlass.api.rights import Rights
from windlass.domain.access.rights import Action, Identity, may
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import JobCount, JobFilter
from windlass.domain.values.errors import InvalidInput
from windlass.engine.commands.bulk import Bulk, BulkPage, changeable, states_for
from windlass.engine.engine import Engine
from windlass.store.job_views import Views
from windlass.wire.bulk import BulkReply, BulkRequest, PreviewReply, PreviewRequest, RefusedJob
from windlass.wire.jobs import Where


async def edit_many(
    engine: Engine, rights: Rights, request: BulkRequest, who: Identity
) -> BulkReply:
    """Edits the next page of matching jobs, or counts it, with the rights of `who`."""
    wanted = _filter(request.where, who)
    if request.action == "prioritize" and request.adjustment is None:
        raise InvalidInput("adjustment", "a number, to prioritize", None)
    part = await _edit(engine.bulk, request, wanted, rights, who)
    return BulkReply(
        matched=part.matched,
        applied=part.applied,
        refusals=part.refusals,
        refused=[RefusedJob(refused.job, refused.reason) for refused in part.refused],
        next=part.next or None,
    )


async def preview(engine: Engine, request: PreviewRequest, who: Identity) -> PreviewReply:
    """Counts what an action would change, among the jobs that `who` may change."""
    wanted = changeable(request.action, _filter(request.where, who))
    only_own = not may(who, Action.CHANGE_ALL_JOBS)
    if wanted is None or (only_own and wanted.submitted_by not in (None, who.name)):
        return PreviewReply(count=0, exact=True, looked=0, only_own=only_own, where=request.where)
    if only_own:
        wanted = wanted._replace(submitted_by=who.name)
    newest, found = await engine.store.read(lambda tx: _count(tx.views, wanted))
    states = [str(STATE_BY_CODE[code]) for code in wanted.states]
    where = msgspec.structs.replace(request.where, state=states, submitted_by=wanted.submitted_by)
    return PreviewReply(
        count=found.found,
        exact=found.is_whole,
        looked=found.looked,
        estimate=found.estimate,
        only_own=only_own,
        where=where,
        after=newest + 1,
    )


async def _count(views: Views, wanted: JobFilter) -> tuple[int, JobCount]:
    """Returns the newest job of all, and how many match."""
    page = await views.jobs(JobFilter(), 0, 1)
    return max((view.facts.id for view in page.jobs), default=0), await views.count_jobs(wanted)


async def _edit(
    bulk: Bulk, request: BulkRequest, wanted: JobFilter, rights: Rights, who: Identity
) -> BulkPage:
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
