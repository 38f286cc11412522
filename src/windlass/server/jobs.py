"""Routes about jobs."""

from typing import Annotated, Any

from litestar import Controller, Request, get, post
from litestar.params import FromQuery, JSONBody, Parameter, QueryParameter

from windlass.domain.access.roles import Role
from windlass.domain.values.errors import NotFound
from windlass.server.errors import Forbidden
from windlass.server.guard import identity_of
from windlass.server.parse import job_filter, job_spec, workflow_spec
from windlass.server.render import show_event
from windlass.server.services import PAGE_LIMIT, UseDesk, UseServices
from windlass.wire.jobs import (
    CanceledJob,
    CancelReply,
    CancelRequest,
    Job,
    JobList,
    PriorityReply,
    PriorityRequest,
    RetryReply,
    SubmitReply,
    SubmitRequest,
    UnblockRequest,
)
from windlass.wire.system import EventList
from windlass.wire.workers import Changed

Ask = Request[Any, Any, Any]
Id = Annotated[int, Parameter(ge=1, le=2**62)]


class JobRoutes(Controller):
    """Submit, look at, cancel, retry, unblock and prioritise jobs."""

    path = "/api/v1/jobs"
    tags = ("jobs",)

    @post("/", opt={"role": Role.SUBMITTER})
    async def submit(
        self, request: Ask, data: JSONBody[SubmitRequest], desk: UseDesk, services: UseServices
    ) -> SubmitReply:
        """Submit jobs, all or none of them."""
        who = identity_of(request)
        specs = [job_spec(job, who, f"jobs[{n}]") for n, job in enumerate(data.jobs)]
        await desk.check_visible([job.parent for job in data.jobs if job.parent], who)
        await desk.check_workflows([job.workflow for job in data.jobs if job.workflow], who)
        done = await services.engine.submit(
            specs, workflow_spec(data.workflow, who), data.key, data.reopen
        )
        return SubmitReply(list(done.ids), list(done.applied), done.workflow or None)

    @get("/", opt={"role": Role.VIEWER})
    async def list_jobs(
        self,
        request: Ask,
        desk: UseDesk,
        states: Annotated[list[str] | None, QueryParameter(name="state")] = None,
        queue: FromQuery[str | None] = None,
        namespace: FromQuery[str | None] = None,
        task: FromQuery[str | None] = None,
        name: FromQuery[str | None] = None,
        label: FromQuery[list[str] | None] = None,
        workflow: Annotated[int | None, Parameter(ge=1, le=2**62)] = None,
        submitted_by: FromQuery[str | None] = None,
        key: FromQuery[str | None] = None,
        dead: FromQuery[bool] = False,
        after: Annotated[int, Parameter(ge=0, le=2**62)] = 0,
        limit: Annotated[int, Parameter(ge=1, le=PAGE_LIMIT)] = 100,
    ) -> JobList:
        """A page of jobs, newest first."""
        wanted = job_filter(
            identity_of(request), state=states, queue=queue, namespace=namespace, task=task,
            name=name, label=label, workflow=workflow, submitted_by=submitted_by, key=key,
            dead=dead,
        )  # fmt: skip
        return await desk.jobs(wanted, after, limit)

    @get("/{job:int}", opt={"role": Role.VIEWER})
    async def show(self, request: Ask, job: Id, desk: UseDesk) -> Job:
        """One job with attempts and transitions."""
        return await desk.job(job, identity_of(request))

    @get("/{job:int}/wait", opt={"role": Role.VIEWER})
    async def wait(
        self,
        request: Ask,
        job: Id,
        desk: UseDesk,
        services: UseServices,
        timeout: Annotated[float, Parameter(ge=0, le=60)] = 30,
    ) -> Job:
        """The job once it has ended, or as it is when the time is up."""
        await desk.check_visible([job], identity_of(request))
        await services.engine.wait_ended(job, int(timeout * 1000))
        return await desk.job(job, identity_of(request))

    @get("/{job:int}/events", opt={"role": Role.VIEWER})
    async def events(self, request: Ask, job: Id, desk: UseDesk) -> EventList:
        """Everything the event log says of one job."""
        found = await desk.events(job, identity_of(request))
        return EventList([show_event(event) for event in found])

    @post("/cancel", opt={"role": Role.SUBMITTER}, status_code=200)
    async def cancel_many(
        self, request: Ask, data: JSONBody[CancelRequest], desk: UseDesk, services: UseServices
    ) -> CancelReply:
        """Cancel jobs."""
        who = identity_of(request)
        await desk.check_visible(data.ids, who)
        done = await services.engine.cancel(data.ids, data.reason, who.name)
        return CancelReply([CanceledJob(c.job, c.state, c.applied) for c in done])

    @post("/{job:int}/cancel", opt={"role": Role.SUBMITTER}, status_code=200)
    async def cancel(
        self,
        request: Ask,
        job: Id,
        desk: UseDesk,
        services: UseServices,
        reason: FromQuery[str] = "Canceled",
    ) -> CanceledJob:
        """Cancel one job."""
        who = identity_of(request)
        await desk.check_visible([job], who)
        (done,) = await services.engine.cancel([job], reason, who.name)
        if done.state is None:
            raise NotFound("job", job)
        return CanceledJob(done.job, done.state, done.applied)

    @post("/{job:int}/retry", opt={"role": Role.SUBMITTER}, status_code=200)
    async def retry(
        self, request: Ask, job: Id, desk: UseDesk, services: UseServices
    ) -> RetryReply:
        """Supersede an ended job by a new one."""
        who = identity_of(request)
        await desk.check_visible([job], who)
        done = await services.engine.retry(job, who.name)
        return RetryReply(done.job, done.applied)

    @post("/{job:int}/unblock", opt={"role": Role.OPERATOR}, status_code=200)
    async def unblock(
        self,
        request: Ask,
        job: Id,
        data: JSONBody[UnblockRequest],
        desk: UseDesk,
        services: UseServices,
    ) -> Changed:
        """Accept or reject a job that waits for an operator."""
        who = identity_of(request)
        await desk.check_visible([job], who)
        done = await services.engine.unblock(job, data.accept, data.reason, who.name)
        return Changed(done.applied)

    @post("/{job:int}/priority", opt={"role": Role.SUBMITTER}, status_code=200)
    async def prioritize(
        self,
        request: Ask,
        job: Id,
        data: JSONBody[PriorityRequest],
        desk: UseDesk,
        services: UseServices,
    ) -> PriorityReply:
        """Set a job's adjustment; submitters may only lower it."""
        who = identity_of(request)
        shown = await desk.job(job, who)
        if not who.may(Role.OPERATOR) and (
            data.adjustment > shown.priority.adjustment or shown.submitted_by != who.name
        ):
            raise Forbidden("a submitter may only lower the priority of its own jobs")
        done = await services.engine.adjust_priority(job, data.adjustment, who.name)
        standing = await services.engine.standing(job)
        return PriorityReply(
            base=done.base,
            adjustment=done.adjustment,
            effective=done.effective,
            score=standing.score,
            inherited=standing.inherited,
            applied=done.applied,
        )
