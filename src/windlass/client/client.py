"""The client for async code: submit jobs, wait for them, read their logs.

`make blocking-client` writes `windlass.client.blocking.client` from it, for blocking code.
"""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec, Self, TypeVar, Unpack, overload

import msgspec

from windlass.client.builder import (
    AsyncWorkflowBlock,
    all_behind,
    check_filters,
    checked_jobs,
    dump_model,
    given_at_of,
    id_of,
    new_workflow,
    request_for,
    seconds_of,
    split_reference,
    submission,
    timeout_seconds,
    times_of,
)
from windlass.client.errors import Spooled
from windlass.client.handles import AsyncJob, SpooledJob
from windlass.client.reconnect import RECONNECT_SECONDS, SUBMIT_SECONDS, Reconnect
from windlass.client.service import Service, SubmitOptions
from windlass.client.settings import find_server, trust_for
from windlass.client.transport import Transport
from windlass.client.uploads import upload, with_uploads
from windlass.client.workflows import AsyncWorkflow, listed
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, InvalidInput, Unreachable
from windlass.domain.values.quantities import DurationLike
from windlass.messages.jobs import (
    JOB_FILTERS,
    Action,
    BulkReply,
    BulkRequest,
    CancelReply,
    CancelRequest,
    DeleteReply,
    DeleteRequest,
    Job,
    JobList,
    NewWorkflow,
    RefusedJob,
    SubmitReply,
    Where,
)
from windlass.messages.schedules import StartRequest
from windlass.messages.steps import (
    AnswerReply,
    AnswerRequest,
    Question,
    QuestionList,
    SendReply,
    SendRequest,
)
from windlass.messages.system import EventInfo
from windlass.messages.workflows import WORKFLOW_FILTERS, Workflow, WorkflowList
from windlass.tasks.handles import Kept
from windlass.tasks.local_files import UploadedFile
from windlass.tasks.submitting import Submits, about_one, jobs_of

if TYPE_CHECKING:  # loaded when they are first used, which most programs never do
    from windlass.client.option_types import (
        EventFilters,
        JobFilters,
        WorkflowFilters,
        WorkflowOptions,
    )
    from windlass.client.resources import (
        AsyncPools,
        AsyncQueues,
        AsyncSchedules,
        AsyncTemplates,
        AsyncTokens,
        AsyncWorkers,
    )
    from windlass.client.spool import Spool

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

OnUnavailable = Literal["raise", "spool"]

MAX_REFUSED: Final = 20  # jobs that the answer to a change of many names


class AsyncClient(Kept):
    """One server, seen from a program with an event loop.

    Several event loops may use it. With a `service`, it asks that instead of a server.

    Without arguments it finds the server by WINDLASS_SERVER and WINDLASS_TOKEN, else the
    one that `windlass up` started here; over https it trusts the authorities in the file that
    WINDLASS_TLS_CA names, else those of the system. It may be made before there is a server: the
    first call must find one.

    If the server goes away, calls that are safe to repeat are repeated for `reconnect` seconds, 60
    unless given. What a program hands over (submissions, starts of templates, signals) takes at
    most `timeout` in all, else `reconnect` seconds if that is given, else 5 s; each hundred jobs of
    one submission add 1 s. With `on_unavailable="spool"`, jobs and workflows that no server takes
    in this time wait in the folder `spool`, and are delivered later. See `with_options`.
    """

    def __init__(
        self,
        server: str | None = None,
        token: str | None = None,
        data: Path | None = None,
        *,
        reconnect: float | None = None,
        timeout: DurationLike | None = None,
        on_unavailable: OnUnavailable = "raise",
        spool: str | Path | None = None,
        service: Service | None = None,
    ) -> None:
        again = Reconnect(RECONNECT_SECONDS if reconnect is None else reconnect)
        spools = _spools(on_unavailable)
        if spools and spool is None:
            raise InvalidInput("spool", 'a folder beside on_unavailable="spool"', None)
        seconds = reconnect or SUBMIT_SECONDS if timeout is None else timeout_seconds(timeout)
        options = SubmitOptions(seconds, _spool(spool), spools)
        self._connect: Callable[[], Service] = partial(
            _connect, server, token, data, again, options
        )
        self._connected = service
        self._is_real = service is None
        if service is None:
            # A server that is started later is found by the first call.
            with suppress(Unreachable):
                self._connected = self._connect()

    @property
    def service(self) -> Service:
        """What answers this client; raises `Unreachable` while no server is known."""
        if self._is_real:
            from windlass.ports.this_process import refuse_in_tests

            refuse_in_tests("a client")
        return self._found()

    def _found(self) -> Service:
        if self._connected is None:
            self._connected = self._connect()
        return self._connected

    @property
    def transport(self) -> Transport:
        """For calls this class has no method for."""
        if not isinstance(self.service.transport, Transport):
            raise Conflict("no_server", "this client works without a server")
        return self.service.transport

    def with_options(
        self, *, timeout: DurationLike | None = None, on_unavailable: OnUnavailable | None = None
    ) -> Self:
        """Returns this client with other submission options; None keeps an option.

        `timeout` is how long a submission, a start or a signal may take in all:
        `client.with_options(timeout=2).submit(add, 1)`. `on_unavailable` says whether jobs and
        workflows that no server takes in that time raise `Unreachable`, or wait in the client's
        `spool`. The connections are the same ones, so it costs nothing to make one for each
        call. An embedded client has no server that could be away, and changes nothing.
        """
        seconds = None if timeout is None else timeout_seconds(timeout)
        spools = None if on_unavailable is None else _spools(on_unavailable)
        made = type(self).__new__(type(self))
        vars(made).update(
            _connected=None,
            _is_real=self._is_real,
            _connect=lambda: self.service.submitting(seconds, spools),
        )
        return made

    @overload
    async def submit(
        self, task: Submits[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> AsyncJob[R]: ...
    @overload
    async def submit(self, task: str, /, **kwargs: Any) -> AsyncJob[Any]: ...
    @overload
    async def submit(self, task: JobSpec, /) -> AsyncJob[Any]: ...

    async def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> AsyncJob[Any]:
        """Submits a call of a task, given as such or by name, or a `JobSpec`.

        Options are those of the task: `client.submit(add.options(retries=3), 1, 2)`.
        """
        request = request_for(task, args, kwargs)
        with about_one(request):
            (job,) = await self.submit_many([request])
        return job

    async def map(self, task: Submits[..., R], /, *arguments: Iterable[Any]) -> list[AsyncJob[R]]:
        """Submits a call for each set of arguments: `client.map(add, [1, 2], [3, 4])`."""
        jobs = jobs_of(task, arguments)
        return await self.submit_many(jobs) if jobs else []

    async def submit_many(
        self, jobs: Iterable[JobSpec], workflow: str | None = None
    ) -> list[AsyncJob[Any]]:
        """Submits jobs, all or none of them; optionally as a new workflow."""
        new = None if workflow is None else NewWorkflow(name=workflow)
        service = self.service
        ready = await with_uploads(service, checked_jobs(jobs))
        try:
            reply = await service.submit(submission(ready, new))
        except Spooled as kept:
            return [SpooledJob(service, kept.delivery, one) for one in range(len(ready))]
        return [AsyncJob(service, job, reply.at) for job in reply.ids]

    async def submit_in(
        self, connection: Any, task: Any, /, *args: Any, **kwargs: Any
    ) -> AsyncJob[Any]:
        """Submits in the transaction of an async connection; see `windlass.submit_in_async`.

        The handle can be asked once that has committed.
        """
        from windlass.transactions.submitting import submit_in_async

        job = await submit_in_async(connection, request_for(task, args, kwargs))
        return self.job(job.id)

    async def submit_workflow(self, workflow: NewWorkflow, jobs: Sequence[JobSpec]) -> SubmitReply:
        """Submits an expanded workflow as a whole."""
        ready = await with_uploads(self.service, jobs)
        return await self.service.submit(submission(ready, workflow))

    async def upload(
        self, path: str | Path, name: str | None = None, namespace: str | None = None
    ) -> UploadedFile:
        """Uploads a file for jobs: an argument for a `Path`, or an input of a command."""
        return await upload(self.service, Path(path), name, namespace)

    def job(self, job: int) -> AsyncJob[Any]:
        """Returns a handle on an existing job."""
        if type(job) is not int:
            raise InvalidInput("job", "the id of a job, a number", job)
        return AsyncJob(self.service, job)

    @overload
    def workflow(self, workflow: int, /) -> AsyncWorkflow: ...
    @overload
    def workflow(
        self, workflow: str, /, **options: Unpack["WorkflowOptions"]
    ) -> AsyncWorkflowBlock: ...

    def workflow(self, workflow: int | str, /, **options: Any) -> AsyncWorkflow:
        """Returns a workflow by its id, or by name a new one for an `async with` block.

        `options` are those of a workflow: `priority`, `key`, `key_for`, `fail_fast`,
        `labels`, `namespace`, `on_success`, `on_failure`, `on_end`.
        """
        if isinstance(workflow, int):
            return AsyncWorkflow(self.service, workflow)
        return AsyncWorkflowBlock(self.service, new_workflow(workflow, options))

    async def start_template(
        self,
        template: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        priority: int | str | None = None,
        key: str | None = None,
        key_for: DurationLike | None = None,
        namespace: str | None = None,
    ) -> AsyncWorkflow:
        """Starts a workflow from a template, `name` or `name@version`."""
        name, version = split_reference(template)
        request = StartRequest(
            parameters=dict(parameters or {}),
            priority=priority,
            key=key,
            key_for=seconds_of(key_for),
            version=version,
        )
        reply = await self.service.start_template(name, request, namespace)
        return AsyncWorkflow(self.service, reply.workflow, reply.at)

    @property
    def workers(self) -> "AsyncWorkers":
        """The workers: list, show, drain…"""
        from windlass.client.resources import AsyncWorkers

        return AsyncWorkers(self.service)

    @property
    def queues(self) -> "AsyncQueues":
        """The queues: list, pause, limit…"""
        from windlass.client.resources import AsyncQueues

        return AsyncQueues(self.service)

    @property
    def templates(self) -> "AsyncTemplates":
        """The templates of workflows; `start_template` starts one."""
        from windlass.client.resources import AsyncTemplates

        return AsyncTemplates(self.service)

    @property
    def schedules(self) -> "AsyncSchedules":
        """The schedules: list, put, pause, run…"""
        from windlass.client.resources import AsyncSchedules

        return AsyncSchedules(self.service)

    @property
    def tokens(self) -> "AsyncTokens":
        """Tokens: list, create, rotate, revoke."""
        from windlass.client.resources import AsyncTokens

        return AsyncTokens(self.service)

    @property
    def pools(self) -> "AsyncPools":
        """Pools of workers: list, apply, plan… Servers start and stop these workers."""
        from windlass.client.resources import AsyncPools

        return AsyncPools(self.service)

    def events(
        self, *, follow: bool = False, last: int | None = None, **filters: Unpack["EventFilters"]
    ) -> AsyncIterator[EventInfo]:
        """Yields the event log; with `follow`, also new events, endlessly.

        `filters` are `after` (a number), `since` (a time, or how long ago), `kind`, `state`, `job`
        and `worker`; `last` is how many of the newest matching events to yield.
        """
        query: dict[str, Any] = {"follow": follow, "last": last, **filters}
        if isinstance(since := query.get("since"), timedelta):
            query["since"] = f"{round(since.total_seconds() * 1000)}ms"
        return self.service.events(query)

    async def jobs(
        self, limit: int = 100, *, estimates: bool = False, **filters: Unpack["JobFilters"]
    ) -> list[Job]:
        """Returns the newest jobs that pass the filters (`state`, `queue`, `label`…).

        With `estimates` each says when it is expected to start and end, and what such jobs took.
        """
        check_filters(filters, JOB_FILTERS)
        query = {**filters, "estimates": "true"} if estimates else filters
        ask = partial(self.service.ask, "GET", "/api/v1/jobs", JobList)
        return await listed(ask, lambda page: page.jobs, query, limit)

    async def workflows(
        self, limit: int = 100, **filters: Unpack["WorkflowFilters"]
    ) -> list[Workflow]:
        """Returns the newest workflows that pass the filters (`state`, `name`, `label`, `key`…)."""
        check_filters(filters, WORKFLOW_FILTERS)
        ask = partial(self.service.ask, "GET", "/api/v1/workflows", WorkflowList)
        return await listed(ask, lambda page: page.workflows, filters, limit)

    async def explain(self, job: int | AsyncJob[Any]) -> Explanation:
        """Returns why a job waits: for what, who could run it, what would help."""
        return await self.service.explain(id_of(job), given_at_of(job))

    async def explain_worker(self, worker: int | str) -> WorkerExplanation:
        """Returns why a worker, by its name or id, is idle."""
        return await self.workers.explain(worker)

    async def send(
        self,
        signal: str,
        payload: Any = None,
        *,
        key: str | None = None,
        namespace: str | None = None,
    ) -> SendReply:
        """Sends a signal to all jobs of the namespace that wait for it, now or later.

        Sent again with the same `key`, it is not a second signal.
        """
        from windlass.tasks.values.containers import plain_json  # few programs send signals

        plain = plain_json("payload", payload)
        request = SendRequest(name=signal, payload=plain, key=key, namespace=namespace)
        return await self.service.send(request)

    async def questions(self) -> list[Question]:
        """Returns all questions that jobs wait to have answered (`windlass.ask`)."""
        found: list[Question] = []
        after: str | None = None
        while True:
            page = await self.service.ask("GET", "/api/v1/questions", QuestionList, after=after)
            found += page.questions
            after = page.next
            if after is None:
                return found

    async def answer(
        self, job: int | AsyncJob[Any], value: Any, *, key: str | None = None
    ) -> AnswerReply:
        """Answers a question of a job; `key` says which one, if it has asked several.

        The value is JSON, or an object of the type that the question asks for.
        """
        try:
            answer = msgspec.to_builtins(value, enc_hook=dump_model)
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidInput("answer", "a value of the type asked for", str(error)) from None
        path = f"/api/v1/jobs/{id_of(job)}/answer"
        request = AnswerRequest(value=answer, key=key)
        given_at = given_at_of(job) or None
        return await self.service.ask("POST", path, AnswerReply, request, given_at=given_at)

    async def cancel(
        self, jobs: Iterable[int | AsyncJob[Any]], reason: str = "Canceled"
    ) -> CancelReply:
        """Cancels jobs, given by id or handle."""
        given = all_behind(jobs)
        ids = [id_of(job) for job in given]
        request = CancelRequest(ids=ids, reason=reason, given_at=times_of(given))
        return await self.service.repeat("POST", "/api/v1/jobs/cancel", CancelReply, request)

    async def delete(self, jobs: Iterable[int | AsyncJob[Any]]) -> DeleteReply:
        """Deletes ended jobs with their logs and artifacts; says for each whether, or why not."""
        given = all_behind(jobs)
        request = DeleteRequest(ids=[id_of(job) for job in given], given_at=times_of(given))
        return await self.service.repeat("POST", "/api/v1/jobs/delete", DeleteReply, request)

    async def edit_many(self, action: Action, where: Where, **options: Any) -> BulkReply:
        """Cancels, retries or prioritizes all jobs that pass a filter, part by part.

        `options` are `reason`, `adjustment`, and `dry_run`, which only counts them.
        """
        matched = applied = refusals = after = 0
        refused: list[RefusedJob] = []
        while True:
            request = BulkRequest(action=action, where=where, after=after, **options)
            part = await self.service.ask("POST", "/api/v1/jobs/bulk", BulkReply, request)
            matched, applied = matched + part.matched, applied + part.applied
            refusals += part.refusals
            refused = (refused + part.refused)[:MAX_REFUSED]
            if part.next is None:
                return BulkReply(
                    matched=matched, applied=applied, refusals=refusals, refused=refused
                )
            after = part.next

    @property
    def place(self) -> str:
        """Where its jobs are, for people."""
        if self._connected is None:
            return "no server yet"
        return ", ".join(sorted(self._connected.transport.addresses))

    def __repr__(self) -> str:
        return f"<windlass.{type(self).__name__}: {self.place}>"

    def instead(self) -> str:
        """Returns what another process uses in its place."""
        return "make one in each process, of the same server or file"

    async def open(self) -> None:
        """Opens the connections; the first call does so too."""
        await self._found().open()

    async def close(self) -> None:
        """Closes the connections."""
        if self._connected is not None:
            await self._connected.close()

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _spools(on_unavailable: OnUnavailable) -> bool:
    if on_unavailable not in ("raise", "spool"):
        raise InvalidInput("on_unavailable", '"raise" or "spool"', on_unavailable)
    return on_unavailable == "spool"


def _spool(folder: str | Path | None) -> "Spool | None":
    if folder is None:
        return None
    from windlass.client.spool import Spool

    return Spool(Path(folder))


def _connect(
    server: str | None,
    token: str | None,
    data: Path | None,
    reconnect: Reconnect,
    options: SubmitOptions,
) -> Service:
    found = find_server(server, token, data)
    trust = trust_for(found.server)
    transport = Transport(found.server, found.token, trust=trust, renew=found.renew)
    return Service(transport, reconnect, options)
