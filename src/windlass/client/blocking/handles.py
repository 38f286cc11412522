"""Handles for programs without an event loop: jobs, and workflows with their block."""

from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NoReturn,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    cast,
    overload,
)

from windlass.client.blocking.in_thread import next_of
from windlass.client.builder import AsyncWorkflowBlock
from windlass.client.handles import AsyncJob
from windlass.client.workflows import AsyncWorkflow
from windlass.domain.explain.explanation import Explanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.domain.job.job import JobSpec
from windlass.domain.values.quantities import DurationLike
from windlass.tasks.handles import Kept, no_such
from windlass.tasks.submitting import Submits
from windlass.wire import workflows as wire
from windlass.wire.jobs import Job

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
T = TypeVar("T")


class Runs(Protocol):
    """The client that a handle belongs to."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs a coroutine of the asynchronous client to its end."""
        ...


class JobHandle(Kept, Generic[R_co]):
    """A submitted job. Handles of one job are equal, also those of two clients of one server."""

    def __init__(self, client: Runs, job: AsyncJob[R_co]) -> None:
        self._client = client
        self._job = job

    @property
    def id(self) -> int:
        """The job's number."""
        return self._job.id

    @property
    def client(self) -> Runs:
        """The client that the handle belongs to."""
        return self._client

    @property
    def asynchronous(self) -> AsyncJob[R_co]:
        """The handle behind this one."""
        return self._job

    @property
    def output(self) -> R_co:
        """This handle, typed as its result: `add.submit(first.output, 2)` suits type checkers.

        Among the arguments of another job, a handle stands for the result of its job.
        """
        return cast("R_co", self)

    def __windlass_reference__(self) -> int | str:
        """Returns what stands for its result among the arguments of other jobs."""
        return self._job.__windlass_reference__()

    def info(self) -> Job:
        """Returns the job in its current state."""
        return self._client.run(self._job.info())

    def explain(self) -> Explanation:
        """Returns why the job waits: for what, who could run it, what would help."""
        return self._client.run(self._job.explain())

    def time_spent(self) -> TimeSpent:
        """Returns where the job's time went, by cause."""
        return self._client.run(self._job.time_spent())

    def wait(self, timeout: DurationLike | None = None) -> Job:
        """Waits until the job has ended; raises `ResultTimeout` when the time is up."""
        return self._client.run(self._job.wait(timeout))

    def result(self, timeout: DurationLike | None = None) -> R_co:
        """Returns the job's result; raises `JobFailed` if it did not complete."""
        return self._client.run(self._job.result(timeout))

    def cancel(self, reason: str = "Canceled") -> bool:
        """Cancels the job and returns whether that changed anything."""
        return self._client.run(self._job.cancel(reason))

    def retry(self) -> "JobHandle[R_co]":
        """Retries the ended job as a new job that supersedes it."""
        return JobHandle(self._client, self._client.run(self._job.retry()))

    def delete(self) -> bool:
        """Deletes the ended job with its log and artifacts; False if it did not exist any more.

        Raises `Conflict` if it has not ended, or something still needs it.
        """
        return self._client.run(self._job.delete())

    def logs(
        self,
        follow: bool = False,
        *,
        attempt: int | None = None,
        tail: int | None = None,
        since: str | None = None,
        timestamps: bool = False,
    ) -> Iterator[bytes]:
        """Yields the job's log in pieces; with `follow` until the job ends.

        `attempt` is the newest unless given. `tail` starts with the last lines, `since` with what
        came since a time or so long ago ("10m"). `timestamps` puts before each line when the
        server received it.
        """
        stream = self._job.logs(
            follow, attempt=attempt, tail=tail, since=since, timestamps=timestamps
        )
        while True:
            chunk = self._client.run(next_of(stream))
            if chunk is None:
                return
            yield chunk

    def download(self, artifact: str, path: Path) -> None:
        """Saves an artifact of the job to a file; if that fails, leaves no file behind."""
        self._client.run(self._job.download(artifact, path))

    def __eq__(self, other: object) -> bool:
        return self._job == other.asynchronous if isinstance(other, JobHandle) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._job)

    if not TYPE_CHECKING:  # Type checkers know the attributes that there are.

        def __getattr__(self, name: str) -> NoReturn:
            no_such(self, name)

    def __repr__(self) -> str:
        return repr(self._job)


class WorkflowHandle(Kept):
    """A submitted workflow. Handles of one workflow are equal, as those of a job are."""

    def __init__(self, client: Runs, workflow: AsyncWorkflow) -> None:
        self._client = client
        self._workflow = workflow

    @property
    def id(self) -> int:
        """The workflow's number."""
        return self._workflow.id

    def info(self, wait: float = 0) -> wire.Workflow:
        """Returns the workflow as it is now; with `wait`, once it has ended or time is up."""
        return self._client.run(self._workflow.show(wait))

    def jobs(self) -> list[Job]:
        """Returns all its jobs, newest first, also those that were superseded."""
        return self._client.run(self._workflow.jobs())

    def wait(self, timeout: DurationLike | None = None) -> wire.Workflow:
        """Waits until the workflow has ended; raises `ResultTimeout` when the time is up."""
        return self._client.run(self._workflow.wait(timeout))

    def complete(self, timeout: DurationLike | None = None) -> wire.Workflow:
        """Waits as `wait` does; raises `WorkflowFailed` if the workflow did not complete."""
        return self._client.run(self._workflow.complete(timeout))

    def cancel(self, reason: str = "Canceled") -> bool:
        """Cancels the workflow and returns whether that changed anything."""
        return self._client.run(self._workflow.cancel(reason))

    def add(
        self, jobs: Sequence[JobSpec], *, key: str | None = None, reopen: bool = False
    ) -> list[int]:
        """Adds jobs while it runs, or with `reopen` after its end too, and returns their ids.

        With a `key` that jobs were added with before, it answers with those.
        """
        return self._client.run(self._workflow.add(jobs, key=key, reopen=reopen)).ids

    def retry(self, failed: bool = True) -> "WorkflowHandle":
        """Retries its failed jobs, or all of it as a new workflow; returns that workflow."""
        return WorkflowHandle(self._client, self._client.run(self._workflow.retry(failed)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, WorkflowHandle):
            return NotImplemented
        return self._workflow == other._workflow

    def __hash__(self) -> int:
        return hash(self._workflow)

    def __repr__(self) -> str:
        return repr(self._workflow)


class Workflow(WorkflowHandle):
    """A workflow that is put together in a `with` block and submitted when that ends.

    Nothing is submitted if the block raises. Made by `client.workflow(name)`.
    """

    def __init__(self, client: Runs, block: AsyncWorkflowBlock) -> None:
        super().__init__(client, block)
        self._block = block

    @overload
    def submit(self, task: Submits[P, R], /, *args: P.args, **kwargs: P.kwargs) -> JobHandle[R]: ...
    @overload
    def submit(self, task: str, /, **kwargs: Any) -> JobHandle[Any]: ...
    @overload
    def submit(self, task: JobSpec, /) -> JobHandle[Any]: ...

    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> JobHandle[Any]:
        """Adds a job, as `client.submit` takes it.

        Its options are those of the task: `wf.submit(build.options(after=fetch, name="b"), 1)`.
        `after` and `after_any` take jobs of this workflow, by handle or name, and earlier ones.
        """
        return JobHandle(self._client, self._block.submit(task, *args, **kwargs))

    def __enter__(self) -> Self:
        self._client.run(self._block.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.run(self._block.__aexit__(kind, error, trace))
