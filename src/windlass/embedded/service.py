"""Answers a client from the engine in the same process.

It uses the same `windlass.api` as the server's routes, as an admin: there is no token, and
whoever can open the store sees every namespace.
"""

from collections.abc import AsyncIterator, Awaitable, Hashable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from windlass.api.events import moment_since
from windlass.api.jobs import Jobs
from windlass.api.lists.orders import parse_place, parse_sort
from windlass.api.parse import job_filter, workflow_filter
from windlass.api.queries import Queries
from windlass.api.rights import Rights
from windlass.api.schedules.planning import EnginePlanning
from windlass.api.steps.signals import Signals
from windlass.api.workflows import Workflows
from windlass.client.service import (
    WHOLE_LOG,
    LogChoice,
    find_worker,
    fresh_key,
)
from windlass.client.values.uploads import described, read
from windlass.domain.access.rights import Identity, Role
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.domain.job.job import DEFAULT_NAMESPACE
from windlass.domain.values.errors import NotFound
from windlass.embedded.fleet import EmbeddedFleet, OpenEngine
from windlass.embedded.node import Node
from windlass.embedded.planning import EmbeddedPlanning
from windlass.engine.engine import Engine
from windlass.engine.files.files import Upload
from windlass.engine.files.follow_log import follow_growing, settle
from windlass.engine.fleet.losses import explain_missing
from windlass.tracing.current import sending
from windlass.wire.bulk import BulkReply, BulkRequest
from windlass.wire.files import Uploaded
from windlass.wire.jobs import (
    CanceledJob,
    CancelReply,
    CancelRequest,
    DeleteReply,
    DeleteRequest,
    Job,
    JobList,
    RetryReply,
    SubmitReply,
    SubmitRequest,
    WaitReply,
    WaitRequest,
    Where,
)
from windlass.wire.steps import AnswerReply, AnswerRequest, Question, SendReply, SendRequest
from windlass.wire.workflows import (
    WORKFLOW_FILTERS,
    WORKFLOW_LISTS,
    CanceledWorkflow,
    RetriedWorkflow,
    Workflow,
    WorkflowList,
)
from windlass.wiring.backend import Backend

T = TypeVar("T")

LISTS = ("state", "label", "failure")
QUESTIONS = 100  # that are read at once


class Api(NamedTuple):
    """The parts of `windlass.api` over an open engine."""

    backend: Backend
    queries: Queries
    jobs: Jobs
    workflows: Workflows
    signals: Signals

    @property
    def engine(self) -> Engine:
        return self.backend.engine


class EngineService:
    """Implements `Service`; the first call starts the engine."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._who = Identity(0, "embedded", Role.ADMIN)
        self._opened: Api | None = None
        self.planning = EmbeddedPlanning(self._plan)
        self.fleet = EmbeddedFleet(self._fleet)

    @property
    def installation(self) -> Hashable:
        """Itself: another embedded client has another engine."""
        return self

    def submitting(self, seconds: float | None, spools: bool | None) -> "EngineService":
        """Returns itself: there is no server that could be away."""
        del seconds, spools
        return self

    async def open(self) -> None:
        await self._api()

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        with sending(request.jobs) as jobs:
            if jobs is not request.jobs:
                request = msgspec.structs.replace(request, jobs=jobs)
            return await (await self._api()).jobs.submit(request, self._who)

    async def job(self, job: int) -> Job:
        return await self._found((await self._api()).queries.job(job, self._who))

    async def wait(self, job: int, seconds: float) -> Job:
        return await self._found((await self._api()).jobs.wait(job, seconds, self._who))

    async def wait_some(self, request: WaitRequest) -> WaitReply:
        return await self._found((await self._api()).jobs.wait_some(request, self._who))

    async def jobs(self, query: Mapping[str, Any]) -> JobList:
        wanted = {name: value for name, value in query.items() if value is not None}
        after, limit = parse_place(wanted.pop("after", None)), int(wanted.pop("limit", 100))
        sort, estimates = parse_sort(wanted.pop("sort", None)), bool(wanted.pop("estimates", False))
        key = wanted.pop("key", None)
        for name in LISTS:
            if isinstance(wanted.get(name), str):
                wanted[name] = [wanted[name]]
        asked = job_filter(self._who, Where(**wanted), key)
        return await (await self._api()).queries.jobs(asked, after, limit, sort, estimates)

    async def cancel(self, request: CancelRequest) -> CancelReply:
        return await (await self._api()).jobs.cancel(request, self._who)

    async def cancel_one(self, job: int, reason: str) -> CanceledJob:
        return await self._found((await self._api()).jobs.cancel_one(job, reason, self._who))

    async def delete(self, request: DeleteRequest) -> DeleteReply:
        return await (await self._api()).jobs.delete(request, self._who)

    async def retry(self, job: int) -> RetryReply:
        return await (await self._api()).jobs.retry(job, self._who)

    async def bulk(self, request: BulkRequest) -> BulkReply:
        return await (await self._api()).jobs.edit_many(request, self._who)

    async def explain(self, job: int) -> Explanation:
        return await self._found((await self._api()).engine.explain.job(job))

    async def explain_worker(self, worker: str) -> WorkerExplanation:
        engine = (await self._api()).engine
        rows = await engine.store.read(lambda tx: tx.workers.all())
        number = find_worker(worker, [(row.id, row.name) for row in rows])
        return await engine.explain.worker(number)

    async def time_spent(self, job: int) -> TimeSpent:
        return await self._found((await self._api()).engine.explain.time_spent(job))

    async def workflows(self, query: Mapping[str, Any]) -> WorkflowList:
        wanted = {name: query.get(name) for name in WORKFLOW_FILTERS}
        for name in WORKFLOW_LISTS:
            if isinstance(wanted[name], str):
                wanted[name] = [wanted[name]]
        asked = workflow_filter(self._who, **wanted)
        after, limit = int(query.get("after") or 0), int(query.get("limit", 100))
        return await (await self._api()).workflows.workflows(asked, after, limit)

    async def workflow(self, workflow: int) -> Workflow:
        return await self._found((await self._api()).workflows.workflow(workflow, self._who))

    async def wait_workflow(self, workflow: int, seconds: float) -> Workflow:
        return await self._found((await self._api()).workflows.wait(workflow, seconds, self._who))

    async def cancel_workflow(self, workflow: int, reason: str) -> CanceledWorkflow:
        return await (await self._api()).workflows.cancel(workflow, reason, self._who)

    async def retry_workflow(self, workflow: int, failed: bool) -> RetriedWorkflow:
        return await (await self._api()).workflows.retry(workflow, failed, self._who)

    async def send(self, request: SendRequest) -> SendReply:
        return await (await self._api()).signals.send(request, self._who)

    async def questions(self) -> list[Question]:
        found: list[Question] = []
        after: str | None = "0"
        while after is not None:
            page = await (await self._api()).signals.questions(self._who, int(after), QUESTIONS)
            found += page.questions
            after = page.next
        return found

    async def answer(self, job: int, request: AnswerRequest) -> AnswerReply:
        return await (await self._api()).signals.answer(job, request, self._who)

    async def log(
        self, job: int, follow: bool, choice: LogChoice = WHOLE_LOG
    ) -> AsyncIterator[bytes]:
        backend = (await self._api()).backend
        files, attempt, offset = backend.files, choice.attempt, 0
        if not follow:
            await settle(backend.engine, files, job, attempt)
        if choice.tail is not None or choice.since is not None:
            since = choice.since
            at = None if since is None else moment_since(since, await backend.engine.now())
            offset = await files.log_start(job, attempt, choice.tail, at)
        if follow:
            chunks = follow_growing(backend.engine, files, job, attempt, offset, choice.timestamps)
        else:
            reading = await files.read_log(job, attempt, offset)
            timed = choice.timestamps
            chunks = (await files.with_times(reading, offset) if timed else reading).chunks
        async for chunk in chunks:
            yield chunk

    async def artifact(self, job: int, name: str) -> AsyncIterator[bytes]:
        _, chunks = await (await self._api()).backend.files.open_artifact(job, name)
        async for chunk in chunks:
            yield chunk

    async def upload(self, path: Path, namespace: str | None) -> Uploaded:
        facts = await described(path)
        sent = Upload(namespace or DEFAULT_NAMESPACE, facts.sha256, facts.size, facts.content_type)
        files = (await self._api()).backend.files
        row = await files.store_upload(sent, read(path), self._who.name)
        return Uploaded(row.namespace, row.sha256, row.size)

    async def some_jobs(self, ids: list[int]) -> list[Job]:
        """Returns these jobs as lists show them."""
        return await (await self._api()).queries.some_jobs(ids, self._who)

    async def now(self) -> int:
        """Returns the store's time."""
        return await (await self._api()).engine.now()

    async def close(self) -> None:
        await self._node.close()

    async def _found(self, answer: Awaitable[T]) -> T:
        """Returns an answer about something, or raises `Lost` if the store has lost it."""
        try:
            return await answer
        except NotFound as error:
            raise await explain_missing((await self._api()).engine.store, error) from None

    async def _api(self) -> Api:
        backend = self._node.backend
        if backend is None:
            backend = await self._node.open()
        opened = self._opened
        if opened is None or opened.backend is not backend:
            queries = Queries(backend.engine, backend.inbox)
            jobs, workflows = Jobs(backend.engine, queries), Workflows(backend.engine)
            signals = Signals(backend.engine, queries, fresh_key)
            opened = self._opened = Api(backend, queries, jobs, workflows, signals)
        return opened

    async def _fleet(self) -> OpenEngine:
        api = await self._api()
        return OpenEngine(api.engine, api.queries, self._who)

    async def _plan(self) -> EnginePlanning:
        backend = (await self._api()).backend
        rights = Rights(backend.engine)
        return EnginePlanning(
            backend.templates, backend.schedules, backend.reactions, rights, self._who
        )
