"""Commands about jobs, with the rights of the caller."""

from windlass.api.bulk import edit_many
from windlass.api.errors import Forbidden
from windlass.api.parse import check_count, job_spec, workflow_spec
from windlass.api.queries import Queries
from windlass.api.rights import Rights
from windlass.domain.access.roles import Identity
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import NotFound
from windlass.engine.engine import Engine
from windlass.engine.submit.submission import WorkflowSpec
from windlass.wire.bulk import BulkReply, BulkRequest
from windlass.wire.jobs import (
    CanceledJob,
    CancelReply,
    CancelRequest,
    Job,
    PriorityReply,
    PriorityRequest,
    RetryReply,
    SubmitReply,
    SubmitRequest,
    UnblockRequest,
)


class Jobs:
    """Carries out requests about jobs; raises `NotFound` for jobs the caller may not see."""

    def __init__(self, engine: Engine, queries: Queries) -> None:
        self._engine = engine
        self._queries = queries
        self._rights = Rights(engine)

    async def submit(self, request: SubmitRequest, who: Identity) -> SubmitReply:
        """Submits all jobs of a request, or none."""
        specs, workflow = await self.prepare(request, who)
        done = await self._engine.submit(specs, workflow, request.key, request.reopen)
        return SubmitReply(list(done.ids), list(done.applied), done.workflow)

    async def prepare(
        self, request: SubmitRequest, who: Identity
    ) -> tuple[list[JobSpec], WorkflowSpec | None]:
        """Returns what a request submits; raises if the caller may not submit it."""
        check_count("jobs", request.jobs, self._engine.config)
        specs = [job_spec(job, who, f"jobs[{n}]") for n, job in enumerate(request.jobs)]
        await self._queries.check_visible([job.parent for job in request.jobs if job.parent], who)
        joined = [job.workflow for job in request.jobs if job.workflow]
        await self._queries.check_workflows(joined, who)
        await self._rights.check_priorities(request.jobs, request.workflow, who)
        return specs, workflow_spec(request.workflow, who)

    async def wait(self, job: int, seconds: float, who: Identity) -> Job:
        """Returns the job when it has ended, or as it is when the time is up."""
        try:
            return await self._wait(job, seconds, who)
        except NotFound:
            return await self._wait(await self._queries.stands_for(job), seconds, who)

    async def _wait(self, job: int, seconds: float, who: Identity) -> Job:
        await self._queries.check_visible([job], who)
        await self._engine.jobs.wait_ended(job, int(seconds * 1000))
        return await self._queries.job(job, who)

    async def cancel(self, request: CancelRequest, who: Identity) -> CancelReply:
        """Cancels jobs, all of which the caller must be allowed to change."""
        check_count("ids", request.ids, self._engine.config)
        await self._queries.check_visible(request.ids, who)
        await self._rights.check_own(request.ids, who)
        done = await self._engine.jobs.cancel(request.ids, request.reason, who.name)
        return CancelReply([CanceledJob(c.job, c.state, c.applied) for c in done])

    async def cancel_one(self, job: int, reason: str, who: Identity) -> CanceledJob:
        """Cancels one job, which must exist."""
        await self._queries.check_visible([job], who)
        await self._rights.check_own([job], who)
        (done,) = await self._engine.jobs.cancel([job], reason, who.name)
        if done.state is None:
            raise NotFound("job", job)
        return CanceledJob(done.job, done.state, done.applied)

    async def retry(self, job: int, who: Identity) -> RetryReply:
        """Replaces an ended job with a new one."""
        await self._queries.check_visible([job], who)
        await self._rights.check_own([job], who)
        done = await self._engine.jobs.retry(job, who.name)
        return RetryReply(done.job, done.applied)

    async def unblock(self, job: int, request: UnblockRequest, who: Identity) -> bool:
        """Accepts or rejects a job that waits for an operator; returns whether it did wait."""
        await self._queries.check_visible([job], who)
        done = await self._engine.jobs.unblock(job, request.accept, request.reason, who.name)
        return done.applied

    async def prioritize(self, job: int, request: PriorityRequest, who: Identity) -> PriorityReply:
        """Sets a job's priority adjustment; submitters may only lower it."""
        shown = await self._queries.job(job, who)
        await self._rights.check_own([job], who)
        now = shown.priority
        why = self._rights.refuse_adjustment(now.base, now.adjustment, request.adjustment, who)
        if why is not None:
            raise Forbidden(why)
        done = await self._engine.jobs.adjust_priority(job, request.adjustment, who.name)
        position = await self._engine.jobs.position(job)
        return PriorityReply(
            base=done.base,
            adjustment=done.adjustment,
            effective=done.effective,
            score=position.score,
            inherited=position.inherited,
            applied=done.applied,
        )

    async def edit_many(self, request: BulkRequest, who: Identity) -> BulkReply:
        """Cancels, retries or reprioritises the next page of jobs that a filter finds."""
        return await edit_many(self._engine, self._rights, request, who)
