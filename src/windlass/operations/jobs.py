"""Routes about jobs."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec

from windlass.api.details.reproduce import Details
from windlass.api.lists.orders import parse_place, parse_sort
from windlass.api.lists.past_jobs import PastJobs
from windlass.api.parse import job_filter
from windlass.api.queries import PAGE_LIMIT
from windlass.api.render import show_event
from windlass.api.rights import counted_for, listed_for
from windlass.domain.access.rights import Action
from windlass.domain.rows.views import JobSort
from windlass.domain.values.errors import InvalidInput
from windlass.operations.dispatch.binding import Body, Query
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import COUNTED, Routes
from windlass.wire.jobs import (
    CanceledJob,
    CancelReply,
    CancelRequest,
    DeleteReply,
    DeleteRequest,
    Job,
    JobChain,
    JobCount,
    JobList,
    PriorityReply,
    PriorityRequest,
    Reproduction,
    RetryReply,
    RetryRequest,
    SubmitReply,
    SubmitRequest,
    UnblockRequest,
    WaitReply,
    WaitRequest,
    Where,
)
from windlass.wire.numbers import Id
from windlass.wire.system import EventList
from windlass.wire.workers import Changed

PageSize = Annotated[int, msgspec.Meta(ge=1, le=PAGE_LIMIT)]
Seconds = Annotated[float, msgspec.Meta(ge=0, le=60)]

SOME_LIMIT: Final = 200  # jobs that a page shows at once
NAMED_JOBS: Final = 10  # jobs of one call that the audit log names

routes = Routes("/api/v1/jobs", "jobs")


@routes.post("", needs=Action.SUBMIT_JOBS, status=201, audit=COUNTED, bulk=True)
async def submit(call: Call, data: Body[SubmitRequest]) -> SubmitReply:
    """Submits jobs, all or none of them."""
    traced = call.services.submit_traced
    if traced is not None:
        return await traced(call, data)
    return await call.services.jobs.submit(data, call.who)


@routes.get("", needs=Action.READ_JOBS)
async def list_jobs(
    call: Call,
    where: Query[Where],
    key: str | None = None,
    sort: str = JobSort.NEWEST,
    after: str = "",
    limit: PageSize = 100,
    as_of: str | None = None,
    estimates: bool = False,
) -> JobList:
    """Returns a page of jobs, newest first unless `sort` says otherwise.

    `text` and `regex` (of RE2) are looked for in names, commands, functions and error messages.
    `as_of` shows jobs as they were at a time, without those that were deleted since. With
    `estimates` it also says when each is expected to start and end, and what such jobs took.
    """
    wanted = job_filter(call.who, where, key)
    order, place = parse_sort(sort), parse_place(after)
    if as_of is not None:
        found = await PastJobs(call.services.engine).jobs(wanted, place, limit, order, as_of)
    else:
        found = await call.services.queries.jobs(wanted, place, limit, order, estimates)
    return listed_for(call.who, found, limit)


@routes.get("/count", needs=Action.READ_JOBS)
async def count_jobs(call: Call, where: Query[Where], key: str | None = None) -> JobCount:
    """Returns how many jobs match: exactly if they are few, else at least or about how many."""
    wanted = job_filter(call.who, where, key)
    return counted_for(call.who, await call.services.queries.count_jobs(wanted))


@routes.get("/some", needs=Action.READ_JOBS)
async def some(call: Call, id: list[Id]) -> JobList:  # noqa: A002 - the name of the parameter
    """Returns these jobs, at most 200, as lists do, without those the caller may not see."""
    if len(id) > SOME_LIMIT:
        raise InvalidInput("id", f"at most {SOME_LIMIT} jobs", len(id))
    return JobList(await call.services.queries.some_jobs(id, call.who))


@routes.get("/{job:int}", needs=Action.READ_JOBS)
async def show(call: Call, job: Id, as_of: str | None = None) -> Job:
    """Returns one job with its attempts and transitions; with `as_of` as it was at a time."""
    if as_of is not None:
        return await PastJobs(call.services.engine).job(job, call.who, as_of)
    return await call.services.queries.job(job, call.who)


@routes.get("/{job:int}/wait", needs=Action.READ_JOBS)
async def wait(call: Call, job: Id, timeout: Seconds = 30) -> Job:
    """Returns the job when it has ended, or as it is when the time is up."""
    return await call.services.jobs.wait(job, timeout, call.who)


@routes.post("/wait", needs=Action.READ_JOBS)
async def wait_some(call: Call, data: Body[WaitRequest]) -> WaitReply:
    """Returns those of several jobs that have ended, once one or all of them have."""
    return await call.services.jobs.wait_some(data, call.who)


@routes.get("/{job:int}/events", needs=Action.READ_JOBS)
async def events(call: Call, job: Id) -> EventList:
    """Returns all events of one job."""
    found = await call.services.queries.events(job, call.who)
    names = call.services.names
    await names.learn(found)
    return EventList([show_event(event, names.known) for event in found])


@routes.post("/cancel", needs=Action.CHANGE_JOBS)
async def cancel_many(call: Call, data: Body[CancelRequest]) -> CancelReply:
    """Cancels jobs."""
    call.about = _described(data.ids)
    return await call.services.jobs.cancel(data, call.who)


@routes.post("/{job:int}/cancel", needs=Action.CHANGE_JOBS)
async def cancel(call: Call, job: Id, reason: str = "Canceled") -> CanceledJob:
    """Cancels one job."""
    return await call.services.jobs.cancel_one(job, reason, call.who)


@routes.post("/delete", needs=Action.DELETE_JOBS)
async def delete_many(call: Call, data: Body[DeleteRequest]) -> DeleteReply:
    """Deletes ended jobs with their logs and artifacts; says for each whether, and why not."""
    call.about = _described(data.ids)
    return await call.services.jobs.delete(data, call.who)


@routes.delete("/{job:int}", needs=Action.DELETE_JOBS)
async def delete(call: Call, job: Id) -> Changed:
    """Deletes an ended job with its log and artifacts; refused while something needs it."""
    return Changed(await call.services.jobs.delete_one(job, call.who))


@routes.post("/{job:int}/retry", needs=Action.CHANGE_JOBS)
async def retry(call: Call, job: Id) -> RetryReply:
    """Replaces an ended job with a new one."""
    return await call.services.jobs.retry(job, call.who)


@routes.post("/{job:int}/retry-with", needs=Action.CHANGE_JOBS)
async def retry_with(call: Call, job: Id, data: Body[RetryRequest]) -> RetryReply:
    """Replaces an ended job with a new one that has other arguments."""
    return await call.services.jobs.retry_with(job, data.args, call.who)


@routes.get("/{job:int}/chain", needs=Action.READ_JOBS)
async def chain(call: Call, job: Id) -> JobChain:
    """Returns the job with those that it supersedes and those that supersede it."""
    return await Details(call.services.engine).chain(job, call.who)


@routes.get("/{job:int}/reproduce", needs=Action.READ_JOBS)
async def reproduce(call: Call, job: Id) -> Reproduction:
    """Returns how to run a job again: commands, environment, files."""
    return await Details(call.services.engine).reproduction(job, call.who)


@routes.post("/{job:int}/unblock", needs=Action.UNBLOCK_JOBS)
async def unblock(call: Call, job: Id, data: Body[UnblockRequest]) -> Changed:
    """Accepts or rejects a job that waits for an operator."""
    return Changed(await call.services.jobs.unblock(job, data, call.who))


@routes.post("/{job:int}/priority", needs=Action.CHANGE_JOBS)
async def prioritize(call: Call, job: Id, data: Body[PriorityRequest]) -> PriorityReply:
    """Sets a job's priority adjustment; submitters may only lower that of their own jobs."""
    return await call.services.jobs.prioritize(job, data, call.who)


def _described(ids: Sequence[int]) -> str:
    """Returns which jobs a call is about, in words for the audit log."""
    named = ", ".join(map(str, ids[:NAMED_JOBS]))
    more = f" and {len(ids) - NAMED_JOBS} more" if len(ids) > NAMED_JOBS else ""
    return f"{'job' if len(ids) == 1 else 'jobs'} {named}{more}" if ids else ""
