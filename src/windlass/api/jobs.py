"""Commands about jobs, with the rights of the caller."""

from typing import Any

import msgspec

from windlass.api.bulk import edit_many, preview
from windlass.api.errors import Forbidden
from windlass.api.parse import check_count, job_spec, workflow_spec
from windlass.api.queries import PAGE_LIMIT, Queries
from windlass.api.rights import Rights
from windlass.domain.access.rights import Identity, Role
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import InboxRow, JobFacts
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound
from windlass.domain.values.json_values import check_depth, too_deep
from windlass.engine.engine import Engine
from windlass.engine.inbox.inbox import InboxRequest
from windlass.engine.jobs.end_waiters import Ended
from windlass.engine.submit.submission import WorkflowSpec
from windlass.ports.long_lists import LongList, pages
from windlass.ports.loop_time import aside, give_way_if_long
from windlass.wire.bulk import BulkReply, BulkRequest, PreviewReply, PreviewRequest
from windlass.wire.jobs import (
    CanceledJob,
    CancelReply,
    CancelRequest,
    DeletedJob,
    DeleteReply,
    DeleteRequest,
    Job,
    PriorityReply,
    PriorityRequest,
    RetryReply,
    SubmitReply,
    SubmitRequest,
    UnblockRequest,
    WaitReply,
    WaitRequest,
)

WAIT_LIMIT = 10_000  # jobs of one request
COMPLETED = State.COMPLETED.code


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
        numbered = enumerate(request.jobs)
        specs = await aside(
            len(request.jobs),
            lambda: LongList(job_spec(job, who, f"jobs[{n}]") for n, job in numbered),
        )
        await self._queries.check_visible([job.parent for job in request.jobs if job.parent], who)
        await give_way_if_long()
        joined = [job.workflow for job in request.jobs if job.workflow]
        await self._queries.check_workflows(joined, who)
        await give_way_if_long()
        await self._rights.check_priorities(request.jobs, request.workflow, who)
        return specs, workflow_spec(request.workflow, who)

    async def read_inbox(self, row: InboxRow) -> InboxRequest:
        """Returns what a user submitted in a transaction of its own; raises as `submit` does.

        A row has the rights of a submitter in its namespaces.
        """
        try:
            decoded = msgspec.json.decode(row.body)
        except msgspec.DecodeError as error:
            raise InvalidInput("submission", "JSON", str(error)) from None
        except RecursionError:
            raise too_deep("submission") from None
        check_depth(decoded, "submission", row.body)
        request = convert(decoded, SubmitRequest, "submission")
        who = Identity(0, row.submitted_by, Role.SUBMITTER, row.namespaces)
        return InboxRequest(*await self.prepare(request, who))

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

    async def wait_some(self, request: WaitRequest, who: Identity) -> WaitReply:
        """Returns those of several jobs that have ended, once enough of them have."""
        try:
            return await self._wait_some(request, who)
        except NotFound:
            await self._queries.catch_up()
            return await self._wait_some(request, who)

    async def _wait_some(self, request: WaitRequest, who: Identity) -> WaitReply:
        ids = list(dict.fromkeys(request.ids))
        if not 1 <= len(ids) <= WAIT_LIMIT:
            raise InvalidInput("ids", f"1 to {WAIT_LIMIT} jobs", len(ids))
        await self._queries.check_visible(ids, who)
        most = len(ids)

        def enough(ended: Ended) -> bool:
            if request.until == "any":
                return bool(ended)
            failed = request.until == "failure" and any(map(_has_failed, ended.values()))
            return failed or len(ended) == most

        ended = await self._engine.jobs.wait_some_ended(ids, int(request.timeout * 1000), enough)
        missing = next((job for job, facts in ended.items() if facts is None), None)
        if missing is not None:
            raise NotFound("job", missing)
        first = [job for job in ids if job in ended]
        if request.until == "failure":  # those that did not complete must be among the first
            first.sort(key=lambda job: not _has_failed(ended[job]))
        shown = await self._queries.some_jobs(first[:PAGE_LIMIT], who)
        return WaitReply(shown, max(0, len(first) - PAGE_LIMIT))

    async def cancel(self, request: CancelRequest, who: Identity) -> CancelReply:
        """Cancels jobs, all of which the caller must be allowed to change."""
        check_count("ids", request.ids, self._engine.config)
        await self._queries.catch_up()
        for ids in pages(request.ids):
            await self._queries.check_visible(ids, who)
            await self._rights.check_own(ids, who)
        done = await self._engine.jobs.cancel(request.ids, request.reason, who.name)
        return await aside(
            len(done), lambda: CancelReply(LongList(CanceledJob(*one) for one in done))
        )

    async def cancel_one(self, job: int, reason: str, who: Identity) -> CanceledJob:
        """Cancels one job, which must exist."""
        await self._queries.catch_up()
        await self._queries.check_visible([job], who)
        await self._rights.check_own([job], who)
        (done,) = await self._engine.jobs.cancel([job], reason, who.name)
        if done.state is None:
            raise NotFound("job", job)
        return CanceledJob(done.job, done.state, done.applied)

    async def delete(self, request: DeleteRequest, who: Identity) -> DeleteReply:
        """Deletes ended jobs; says for each whether, and why not."""
        check_count("ids", request.ids, self._engine.config)
        for ids in pages(request.ids):
            await self._queries.check_visible(ids, who)
        done = await self._engine.jobs.delete(request.ids, who.name)
        return await aside(
            len(done), lambda: DeleteReply(LongList(DeletedJob(*one) for one in done))
        )

    async def delete_one(self, job: int, who: Identity) -> bool:
        """Deletes one ended job, which must exist."""
        (done,) = (await self.delete(DeleteRequest(ids=[job]), who)).jobs
        if done.refusal is not None:
            raise Conflict("not_deleted", f"job {job} cannot be deleted: {done.refusal}")
        if not done.applied:
            raise NotFound("job", job)
        return True

    async def retry(self, job: int, who: Identity) -> RetryReply:
        """Replaces an ended job with a new one."""
        await self._queries.check_visible([job], who)
        await self._rights.check_own([job], who)
        done = await self._engine.jobs.retry(job, who.name)
        return RetryReply(done.job, done.applied)

    async def retry_with(self, job: int, args: Any, who: Identity) -> RetryReply:
        """Replaces an ended job with a new one that has other arguments."""
        await self._queries.check_visible([job], who)
        await self._rights.check_own([job], who)
        done = await self._engine.jobs.retry_with(job, args, who.name)
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

    async def preview(self, request: PreviewRequest, who: Identity) -> PreviewReply:
        """Counts the jobs that an action on a filter would be about."""
        return await preview(self._engine, request, who)


def _has_failed(facts: JobFacts | None) -> bool:
    return facts is not None and facts.final_state != COMPLETED
