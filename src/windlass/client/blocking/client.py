"""The client for blocking code: every call is one of the asynchronous client, in its thread."""

from collections.abc import Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload
from weakref import finalize

from windlass.client.blocking.handles import JobHandle, Workflow, WorkflowHandle
from windlass.client.blocking.in_thread import next_of, service_in_thread
from windlass.client.blocking.loop_thread import LoopThread
from windlass.client.builder import id_of, ids_of, request_for
from windlass.client.client import AsyncClient, OnUnavailable
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.job.job import JobSpec
from windlass.domain.values.quantities import DurationLike
from windlass.tasks.handles import Kept
from windlass.tasks.local_files import UploadedFile
from windlass.tasks.submitting import Submits
from windlass.wire.bulk import Action, BulkReply
from windlass.wire.jobs import CancelReply, DeleteReply, Job, Where
from windlass.wire.steps import AnswerReply, Question, SendReply
from windlass.wire.system import EventInfo
from windlass.wire.workflows import Workflow as WorkflowInfo

if TYPE_CHECKING:  # loaded when they are first used, which most programs never do
    from windlass.client.blocking.resources import (
        Pools,
        Queues,
        Schedules,
        Templates,
        Tokens,
        Workers,
    )
    from windlass.client.option_types import (
        EventFilters,
        JobFilters,
        StartOptions,
        WorkflowFilters,
        WorkflowOptions,
    )

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


class Client(Kept):
    """One server, seen from blocking code, in any thread and also inside a running event loop.

    Its calls run in the event loop of a thread of its own, those of several threads at once.
    After a fork, it opens connections of its own. It may be made before there is a server: the
    first call must find one. A given `client` lives in the loop of its `thread`.

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
        client: AsyncClient | None = None,
        thread: LoopThread | None = None,
    ) -> None:
        self._client = client or AsyncClient(
            server, token, data, reconnect=reconnect, timeout=timeout,
            on_unavailable=on_unavailable, spool=spool,
        )  # fmt: skip
        self._thread = thread or LoopThread(closing=self._client.close)
        self._origin: Client | None = None
        # A client that nobody uses any more closes its connections and ends its thread.
        finalize(self, self._thread.end).atexit = False
        if spool is not None:
            self._thread.start(self._client.open())  # It delivers what waits there.

    def with_options(
        self, *, timeout: DurationLike | None = None, on_unavailable: OnUnavailable | None = None
    ) -> Self:
        """Returns this client with other options for what it hands over; see `AsyncClient`.

        `client.with_options(timeout=2).submit(add, 1)` takes 2 s at most.
        """
        made = type(self).__new__(type(self))
        own = self._client.with_options(timeout=timeout, on_unavailable=on_unavailable)
        # Its thread ends with the client that started it.
        vars(made).update(_client=own, _thread=self._thread, _origin=self)
        return made

    @overload
    def submit(self, task: Submits[P, R], /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]: ...
    @overload
    def submit(self, task: str, /, **kwargs: Any) -> JobHandle[Any]: ...
    @overload
    def submit(self, task: JobSpec, /) -> JobHandle[Any]: ...

    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Submits a call of a task, given as such or by name, or a `JobSpec`.

        Options are those of the task: `client.submit(add.options(retries=3), 1, 2)`.
        """
        return JobHandle(self, self.run(self._client.submit(task, *args, **kwargs)))

    def map(self, task: Submits[..., R], /, *arguments: Iterable[Any]) -> list[JobHandle[R]]:
        """Submits a call for each set of arguments: `client.map(add, [1, 2], [3, 4])`."""
        made = self.run(self._client.map(task, *arguments))
        return [JobHandle(self, job) for job in made]

    def submit_many(
        self, jobs: Iterable[JobSpec], workflow: str | None = None
    ) -> list[JobHandle[Any]]:
        """Submits jobs, all or none of them; optionally as a new workflow."""
        made = self.run(self._client.submit_many(jobs, workflow))
        return [JobHandle(self, job) for job in made]

    def upload(
        self, path: str | Path, name: str | None = None, namespace: str | None = None
    ) -> UploadedFile:
        """Uploads a file for jobs: an argument for a `Path`, or an input of a command."""
        return self.run(self._client.upload(path, name, namespace))

    def submit_in(self, connection: Any, task: Any, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Submits in the transaction of a connection; see `windlass.submit_in`.

        The handle can be asked once that has committed.
        """
        from windlass.transactions.submitting import submit_in

        return self.job(submit_in(connection, request_for(task, args, kwargs)).id)

    def job(self, job: int) -> JobHandle[Any]:
        """Returns a handle on an existing job."""
        return JobHandle(self, self._client.job(job))

    @overload
    def workflow(self, workflow: int, /) -> WorkflowHandle: ...
    @overload
    def workflow(self, workflow: str, /, **options: Unpack["WorkflowOptions"]) -> Workflow: ...

    def workflow(self, workflow: int | str, /, **options: Any) -> WorkflowHandle:
        """Returns a workflow by its id, or by name a new one for a `with` block.

        `options` are those of a workflow: `priority`, `key`, `key_for`, `fail_fast`,
        `labels`, `namespace`, `on_success`, `on_failure`, `on_end`.
        """
        if isinstance(workflow, int):
            return WorkflowHandle(self, self._client.workflow(workflow))
        return Workflow(self, self._client.workflow(workflow, **options))

    def start_template(
        self,
        template: str,
        parameters: Mapping[str, Any] | None = None,
        **options: Unpack["StartOptions"],
    ) -> WorkflowHandle:
        """Starts a workflow from a template, `name` or `name@version`.

        `options` are `priority`, `key`, `key_for` and `namespace`.
        """
        made = self.run(self._client.start_template(template, parameters, **options))
        return WorkflowHandle(self, made)

    @property
    def workers(self) -> "Workers":
        """The workers: list, show, drain…"""
        from windlass.client.blocking.resources import Workers

        return Workers(self, self._client.workers)

    @property
    def queues(self) -> "Queues":
        """The queues: list, pause, limit…"""
        from windlass.client.blocking.resources import Queues

        return Queues(self, self._client.queues)

    @property
    def templates(self) -> "Templates":
        """The templates of workflows; `start_template` starts one."""
        from windlass.client.blocking.resources import Templates

        return Templates(self, self._client.templates)

    @property
    def schedules(self) -> "Schedules":
        """The schedules: list, put, pause, run…"""
        from windlass.client.blocking.resources import Schedules

        return Schedules(self, self._client.schedules)

    @property
    def tokens(self) -> "Tokens":
        """Tokens, which only servers have: list, create, rotate, revoke."""
        from windlass.client.blocking.resources import Tokens

        return Tokens(self, self._client.tokens)

    @property
    def pools(self) -> "Pools":
        """Pools of workers, which only servers have."""
        from windlass.client.blocking.resources import Pools

        return Pools(self, self._client.pools)

    def events(
        self, *, follow: bool = False, last: int | None = None, **filters: Unpack["EventFilters"]
    ) -> Iterator[EventInfo]:
        """Yields the event log, and with `follow` new events for ever; see `AsyncClient`."""
        events = self._client.events(follow=follow, last=last, **filters)
        while (event := self.run(next_of(events))) is not None:
            yield event

    def jobs(
        self, limit: int = 100, *, estimates: bool = False, **filters: Unpack["JobFilters"]
    ) -> list[Job]:
        """Returns the newest jobs that pass the filters (`state`, `queue`, `label`…).

        With `estimates` each says when it is expected to start and end, and what such jobs took.
        """
        return self.run(self._client.jobs(limit, estimates=estimates, **filters))

    def workflows(
        self, limit: int = 100, **filters: Unpack["WorkflowFilters"]
    ) -> list[WorkflowInfo]:
        """Returns the newest workflows that pass the filters (`state`, `name`, `label`, `key`…)."""
        return self.run(self._client.workflows(limit, **filters))

    def explain(self, job: int | JobHandle[Any]) -> Explanation:
        """Returns why a job waits: for what, who could run it, what would help."""
        return self.run(self._client.explain(id_of(job)))

    def explain_worker(self, worker: int | str) -> WorkerExplanation:
        """Returns why a worker, by its name or id, is idle."""
        return self.run(self._client.explain_worker(worker))

    def send(
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
        return self.run(self._client.send(signal, payload, key=key, namespace=namespace))

    def questions(self) -> list[Question]:
        """Returns all questions that jobs wait to have answered (`windlass.ask`)."""
        return self.run(self._client.questions())

    def answer(
        self, job: int | JobHandle[Any], value: Any, *, key: str | None = None
    ) -> AnswerReply:
        """Answers a question of a job; `key` says which one, if it has asked several.

        The value is JSON, or an object of the type that the question asks for.
        """
        return self.run(self._client.answer(id_of(job), value, key=key))

    def cancel(self, jobs: Iterable[int | JobHandle[Any]], reason: str = "Canceled") -> CancelReply:
        """Cancels jobs, given by id or handle."""
        return self.run(self._client.cancel(ids_of(jobs), reason))

    def delete(self, jobs: Iterable[int | JobHandle[Any]]) -> DeleteReply:
        """Deletes ended jobs with their logs and artifacts; says for each whether, or why not."""
        return self.run(self._client.delete(ids_of(jobs)))

    def edit_many(self, action: Action, where: Where, **options: Any) -> BulkReply:
        """Cancels, retries or prioritizes all jobs that pass a filter; see `AsyncClient`."""
        return self.run(self._client.edit_many(action, where, **options))

    def __repr__(self) -> str:
        return f"<windlass.{type(self).__name__}: {self._client.place}>"

    def instead(self) -> str:
        """Returns what another process uses in its place."""
        return self._client.instead()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of the asynchronous client to its end."""
        return self._thread.run(work)

    def as_async(self) -> AsyncClient:
        """Returns the same client for async code, in any event loop."""
        service = service_in_thread(self._thread, lambda: self._client.service)
        return AsyncClient(service=service)

    @property
    def asynchronous(self) -> AsyncClient:
        """The client behind this one, which lives in the loop of its thread; see `as_async`."""
        return self._client

    def close(self) -> None:
        """Closes the connections and ends the thread."""
        if self._thread.begin_close():
            self.run(self._client.close())
        self._thread.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
