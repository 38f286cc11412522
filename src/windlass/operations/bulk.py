"""The routes that change many jobs at once, and that say how many."""

from windlass.api.rights import previewed_for
from windlass.domain.access.rights import Action
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.wire.bulk import BulkReply, BulkRequest, PreviewReply, PreviewRequest

routes = Routes("/api/v1/jobs", "jobs")


@routes.post("/bulk", needs=Action.CHANGE_JOBS)
async def edit_many(call: Call, data: Body[BulkRequest]) -> BulkReply:
    """Cancels, retries or reprioritises the next page of jobs that a filter finds."""
    done = await call.services.jobs.edit_many(data, call.who)
    call.about = f"{data.action} {done.applied} of {done.matched} jobs"
    return done


@routes.post("/bulk/preview", needs=Action.CHANGE_JOBS)
async def preview(call: Call, data: Body[PreviewRequest]) -> PreviewReply:
    """Counts the jobs that an action on a filter would be about; changes nothing."""
    return previewed_for(call.who, await call.services.jobs.preview(data, call.who))
