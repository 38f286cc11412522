# Written by `make blocking-client`: change the asynchronous client instead.
"""The client for blocking code: every call is one of the asynchronous client, in its thread."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, Unpack, overload

from windlass.client.blocking.base import BlockingClient, each
from windlass.client.blocking.handles import JobHandle, Workflow, WorkflowHandle
from windlass.client.blocking.loop_thread import LoopThread
from windlass.client.builder import AsyncWorkflowBlock, all_behind, behind, request_for
from windlass.client.client import AsyncClient, OnUnavailable
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.job.job import JobSpec
from windlass.domain.values.quantities import DurationLike
from windlass.messages.jobs import (
    Action,
    BulkReply,
    CancelReply,
    DeleteReply,
    Job,
    NewWorkflow,
    SubmitReply,
    Where,
)
from windlass.messages.steps import AnswerReply, Question, SendReply
from windlass.messages.system import EventInfo
from windlass.messages.workflows import Workflow as WorkflowInfo
from windlass.tasks.local_files import UploadedFile
from windlass.tasks.submitting import Submits

if TYPE_CHECKING:  # loaded when they are first used
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
        WorkflowFilters,
        WorkflowOptions,
    )

P = ParamSpec("P")
R = TypeVar("R")


class Client(BlockingClient):
    """One server, seen from blocking code, in any thread and also in a running event loop.

    Its calls run in the event loop of a thread of its own, those of several threads at once.
    Submissions begin in the calling thread, and usually end there. After a fork, it opens
    connections of its own. A given `client` lives in the loop of its `thread`.

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
        client: AsyncClient | None = None,
        thread: LoopThread | None = None,
    ) -> None:
        own = client or AsyncClient(
            server,
            token,
            data,
            reconnect=reconnect,
            timeout=timeout,
            on_unavailable=on_unavailable,
            spool=spool,
        )
        super().__init__(own, thread, opens=spool is not None)

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
        return self._like(self._async.with_options(timeout=timeout, on_unavailable=on_unavailable))

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
        made = self.run_from_here(self._async.submit(task, *args, **kwargs))
        return JobHandle(self, made)

    def map(self, task: Submits[..., R], /, *arguments: Iterable[Any]) -> list[JobHandle[R]]:
        """Submits a call for each set of arguments: `client.map(add, [1, 2], [3, 4])`."""
        made = self.run_from_here(self._async.map(task, *arguments))
        return [JobHandle(self, one) for one in made]

    def submit_many(
        self, jobs: Iterable[JobSpec], workflow: str | None = None
    ) -> list[JobHandle[Any]]:
        """Submits jobs, all or none of them; optionally as a new workflow."""
        made = self.run_from_here(self._async.submit_many(jobs, workflow))
        return [JobHandle(self, one) for one in made]

    def submit_in(self, connection: Any, task: Any, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Submits in the transaction of a connection; see `windlass.submit_in`.

        The handle can be asked once that has committed.
        """
        from windlass.transactions.submitting import submit_in

        job = submit_in(connection, request_for(task, args, kwargs))
        return self.job(job.id)

    def submit_workflow(self, workflow: NewWorkflow, jobs: Sequence[JobSpec]) -> SubmitReply:
        """Submits an expanded workflow as a whole."""
        return self.run(self._async.submit_workflow(workflow, jobs))

    def upload(
        self, path: str | Path, name: str | None = None, namespace: str | None = None
    ) -> UploadedFile:
        """Uploads a file for jobs: an argument for a `Path`, or an input of a command."""
        return self.run(self._async.upload(path, name, namespace))

    def job(self, job: int) -> JobHandle[Any]:
        """Returns a handle on an existing job."""
        made = self._async.job(job)
        return JobHandle(self, made)

    @overload
    def workflow(self, workflow: int, /) -> WorkflowHandle: ...

    @overload
    def workflow(self, workflow: str, /, **options: Unpack["WorkflowOptions"]) -> Workflow: ...

    def workflow(self, workflow: int | str, /, **options: Any) -> WorkflowHandle:
        """Returns a workflow by its id, or by name a new one for a `with` block.

        `options` are those of a workflow: `priority`, `key`, `key_for`, `fail_fast`,
        `labels`, `namespace`, `on_success`, `on_failure`, `on_end`.
        """
        made = self._async.workflow(workflow, **options)
        if isinstance(made, AsyncWorkflowBlock):
            return Workflow(self, made)
        return WorkflowHandle(self, made)

    def start_template(
        self,
        template: str,
        parameters: Mapping[str, Any] | None = None,
        *,
        priority: int | str | None = None,
        key: str | None = None,
        key_for: DurationLike | None = None,
        namespace: str | None = None,
    ) -> WorkflowHandle:
        """Starts a workflow from a template, `name` or `name@version`."""
        made = self.run(
            self._async.start_template(
                template,
                parameters,
                priority=priority,
                key=key,
                key_for=key_for,
                namespace=namespace,
            )
        )
        return WorkflowHandle(self, made)

    @property
    def workers(self) -> "Workers":
        """The workers: list, show, drain…"""
        from windlass.client.blocking.resources import Workers

        made = self._async.workers
        return Workers(self, made)

    @property
    def queues(self) -> "Queues":
        """The queues: list, pause, limit…"""
        from windlass.client.blocking.resources import Queues

        made = self._async.queues
        return Queues(self, made)

    @property
    def templates(self) -> "Templates":
        """The templates of workflows; `start_template` starts one."""
        from windlass.client.blocking.resources import Templates

        made = self._async.templates
        return Templates(self, made)

    @property
    def schedules(self) -> "Schedules":
        """The schedules: list, put, pause, run…"""
        from windlass.client.blocking.resources import Schedules

        made = self._async.schedules
        return Schedules(self, made)

    @property
    def tokens(self) -> "Tokens":
        """Tokens: list, create, rotate, revoke."""
        from windlass.client.blocking.resources import Tokens

        made = self._async.tokens
        return Tokens(self, made)

    @property
    def pools(self) -> "Pools":
        """Pools of workers: list, apply, plan… Servers start and stop these workers."""
        from windlass.client.blocking.resources import Pools

        made = self._async.pools
        return Pools(self, made)

    def events(
        self, *, follow: bool = False, last: int | None = None, **filters: Unpack["EventFilters"]
    ) -> Iterator[EventInfo]:
        """Yields the event log; with `follow`, also new events, endlessly.

        `filters` are `after` (a number), `since` (a time, or how long ago), `kind`, `state`, `job`
        and `worker`; `last` is how many of the newest matching events to yield.
        """
        stream = self._async.events(follow=follow, last=last, **filters)
        yield from each(self, stream)

    def jobs(
        self, limit: int = 100, *, estimates: bool = False, **filters: Unpack["JobFilters"]
    ) -> list[Job]:
        """Returns the newest jobs that pass the filters (`state`, `queue`, `label`…).

        With `estimates` each says when it is expected to start and end, and what such jobs took.
        """
        return self.run(self._async.jobs(limit, estimates=estimates, **filters))

    def workflows(
        self, limit: int = 100, **filters: Unpack["WorkflowFilters"]
    ) -> list[WorkflowInfo]:
        """Returns the newest workflows that pass the filters (`state`, `name`, `label`, `key`…)."""
        return self.run(self._async.workflows(limit, **filters))

    def explain(self, job: int | JobHandle[Any]) -> Explanation:
        """Returns why a job waits: for what, who could run it, what would help."""
        return self.run(self._async.explain(behind(job)))

    def explain_worker(self, worker: int | str) -> WorkerExplanation:
        """Returns why a worker, by its name or id, is idle."""
        return self.run(self._async.explain_worker(worker))

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
        return self.run(self._async.send(signal, payload, key=key, namespace=namespace))

    def questions(self) -> list[Question]:
        """Returns all questions that jobs wait to have answered (`windlass.ask`)."""
        return self.run(self._async.questions())

    def answer(
        self, job: int | JobHandle[Any], value: Any, *, key: str | None = None
    ) -> AnswerReply:
        """Answers a question of a job; `key` says which one, if it has asked several.

        The value is JSON, or an object of the type that the question asks for.
        """
        return self.run(self._async.answer(behind(job), value, key=key))

    def cancel(self, jobs: Iterable[int | JobHandle[Any]], reason: str = "Canceled") -> CancelReply:
        """Cancels jobs, given by id or handle."""
        return self.run(self._async.cancel(all_behind(jobs), reason))

    def delete(self, jobs: Iterable[int | JobHandle[Any]]) -> DeleteReply:
        """Deletes ended jobs with their logs and artifacts; says for each whether, or why not."""
        return self.run(self._async.delete(all_behind(jobs)))

    def edit_many(self, action: Action, where: Where, **options: Any) -> BulkReply:
        """Cancels, retries or prioritizes all jobs that pass a filter, part by part.

        `options` are `reason`, `adjustment`, and `dry_run`, which only counts them.
        """
        return self.run(self._async.edit_many(action, where, **options))

    @property
    def place(self) -> str:
        """Where its jobs are, for people."""
        return self._async.place

    def instead(self) -> str:
        """Returns what another process uses in its place."""
        return self._async.instead()
