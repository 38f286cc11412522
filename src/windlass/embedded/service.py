"""A client's wishes, answered by the engine in the same process.

The same steps as the server's routes take, with the rights of whoever may open the store:
there is no token, and every namespace is seen.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from windlass.client.service import find_worker
from windlass.domain.access.roles import Identity, Role
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.embedded.node import Node
from windlass.embedded.planning import EmbeddedPlanning
from windlass.engine.files.follow_log import follow_growing
from windlass.server.bulk import edit_many
from windlass.server.parse import job_filter, job_spec, workflow_spec
from windlass.server.planning_desk import PlanningDesk
from windlass.server.services import Desk
from windlass.server.workflow_desk import WorkflowDesk
from windlass.wire.bulk import BulkReply, BulkRequest
from windlass.wire.jobs import (
    CanceledJob,
    CancelReply,
    CancelRequest,
    Job,
    JobList,
    RetryReply,
    SubmitReply,
    SubmitRequest,
)
from windlass.wire.workflows import CanceledWorkflow, RetriedWorkflow, Workflow
from windlass.wiring import Works

FILTERS = {
    "state": None, "queue": None, "namespace": None, "task": None, "name": None, "label": None,
    "workflow": None, "submitted_by": None, "key": None, "dead": False,
}  # fmt: skip
LISTS = ("state", "label")


class EngineService:
    """Implements `Service`; the engine is started by the first call."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._who = Identity(0, "embedded", Role.ADMIN)
        self._shown: Desk | None = None
        self.planning = EmbeddedPlanning(self._plan)

    async def open(self) -> None:
        await self._works()

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        works = await self._works()
        who = self._who
        specs = [job_spec(job, who, f"jobs[{n}]") for n, job in enumerate(request.jobs)]
        done = await works.engine.submit(
            specs, workflow_spec(request.workflow, who), request.key, request.reopen
        )
        return SubmitReply(list(done.ids), list(done.applied), done.workflow or None)

    async def job(self, job: int) -> Job:
        return await (await self._desk()).job(job, self._who)

    async def wait(self, job: int, seconds: float) -> Job:
        works = await self._works()
        await works.engine.wait_ended(job, int(seconds * 1000))
        return await self.job(job)

    async def jobs(self, query: Mapping[str, Any]) -> JobList:
        wanted = {**FILTERS, **query}
        cursor, limit = int(wanted.pop("after", None) or 0), int(wanted.pop("limit", 100))
        unknown = sorted(set(wanted) - set(FILTERS))
        if unknown:
            raise InvalidInput("filter", f"one of {', '.join(FILTERS)}", unknown[0])
        for name in LISTS:
            if isinstance(wanted[name], str):
                wanted[name] = [wanted[name]]
        return await (await self._desk()).jobs(job_filter(self._who, **wanted), cursor, limit)

    async def cancel(self, request: CancelRequest) -> CancelReply:
        works = await self._works()
        done = await works.engine.cancel(request.ids, request.reason, self._who.name)
        return CancelReply([CanceledJob(c.job, c.state, c.applied) for c in done])

    async def cancel_one(self, job: int, reason: str) -> CanceledJob:
        works = await self._works()
        (done,) = await works.engine.cancel([job], reason, self._who.name)
        if done.state is None:
            raise NotFound("job", job)
        return CanceledJob(done.job, done.state, done.applied)

    async def retry(self, job: int) -> RetryReply:
        works = await self._works()
        done = await works.engine.retry(job, self._who.name)
        return RetryReply(done.job, done.applied)

    async def bulk(self, request: BulkRequest) -> BulkReply:
        return await edit_many((await self._works()).engine, request, self._who)

    async def explain(self, job: int) -> Explanation:
        return await (await self._works()).engine.explain(job)

    async def explain_worker(self, worker: str) -> WorkerExplanation:
        engine = (await self._works()).engine
        rows = await engine.store.read(lambda tx: tx.workers.all())
        number = find_worker(worker, [(row.id, row.name) for row in rows])
        return await engine.explain_worker(number)

    async def time_spent(self, job: int) -> TimeSpent:
        return await (await self._works()).engine.time_spent(job)

    async def workflow(self, workflow: int) -> Workflow:
        works = await self._works()
        return await WorkflowDesk(works.engine).workflow(workflow, self._who)

    async def wait_workflow(self, workflow: int, seconds: float) -> Workflow:
        works = await self._works()
        await works.engine.wait_workflow_ended(workflow, int(seconds * 1000))
        return await self.workflow(workflow)

    async def cancel_workflow(self, workflow: int, reason: str) -> CanceledWorkflow:
        works = await self._works()
        done = await works.engine.cancel_workflow(workflow, reason, self._who.name)
        return CanceledWorkflow(done.workflow, done.state, done.applied)

    async def retry_workflow(self, workflow: int, failed: bool) -> RetriedWorkflow:
        works = await self._works()
        done = await works.engine.retry_workflow(workflow, failed, self._who.name)
        return RetriedWorkflow(done.workflow, done.applied)

    async def log(self, job: int, follow: bool) -> AsyncIterator[bytes]:
        works = await self._works()
        if follow:
            chunks = follow_growing(works.engine, works.files, job)
        else:
            chunks = (await works.files.read_log(job)).chunks
        async for chunk in chunks:
            yield chunk

    async def artifact(self, job: int, name: str) -> AsyncIterator[bytes]:
        _, chunks = await (await self._works()).files.open_artifact(job, name)
        async for chunk in chunks:
            yield chunk

    async def close(self) -> None:
        await self._node.close()

    async def _works(self) -> Works:
        works = self._node.works
        return await self._node.open() if works is None else works

    async def _plan(self) -> PlanningDesk:
        works = await self._works()
        return PlanningDesk(works.templates, works.schedules, works.reactions, self._who)

    async def _desk(self) -> Desk:
        if self._shown is None:
            self._shown = Desk((await self._works()).engine)
        return self._shown
