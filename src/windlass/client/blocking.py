"""Handles for programs without an event loop: jobs, and workflows with their block."""

from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Protocol, Self, TypeVar

from windlass.client.builder import AsyncWorkflowBlock, References
from windlass.client.handles import AsyncJob
from windlass.client.workflows import AsyncWorkflow
from windlass.domain.explain.explanation import Explanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.domain.job.job import JobSpec
from windlass.wire import workflows as wire
from windlass.wire.jobs import Job

T = TypeVar("T")


class Runs(Protocol):
    """The client that a handle belongs to."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine of the asynchronous client to its end."""
        ...


class JobHandle:
    """A submitted job."""

    def __init__(self, client: Runs, job: AsyncJob) -> None:
        self._client = client
        self._job = job

    @property
    def id(self) -> int:
        """The job's number."""
        return self._job.id

    @property
    def asynchronous(self) -> AsyncJob:
        """The handle behind this one."""
        return self._job

    def info(self) -> Job:
        """The job as it stands."""
        return self._client.run(self._job.info())

    def explain(self) -> Explanation:
        """Why the job waits: for what, who could run it, what would help."""
        return self._client.run(self._job.explain())

    def time_spent(self) -> TimeSpent:
        """Where the job's time went, by cause."""
        return self._client.run(self._job.time_spent())

    def wait(self, timeout: float | None = None) -> Job:
        """Wait until the job has ended; raises `TimeoutError` when the time is up."""
        return self._client.run(self._job.wait(timeout))

    def result(self, timeout: float | None = None) -> Any:
        """The job's result; raises `JobFailed` if it did not complete."""
        return self._client.run(self._job.result(timeout))

    def cancel(self, reason: str = "Canceled") -> bool:
        """Cancel the job; whether that changed anything."""
        return self._client.run(self._job.cancel(reason))

    def retry(self) -> "JobHandle":
        """Supersede the ended job by a new one."""
        return JobHandle(self._client, self._client.run(self._job.retry()))

    def logs(self, follow: bool = False) -> Iterator[bytes]:
        """The job's log, piece by piece; with `follow` until it ends."""
        stream = self._job.logs(follow)
        while True:
            chunk = self._client.run(_next(stream))
            if chunk is None:
                return
            yield chunk

    def download(self, artifact: str, path: Path) -> None:
        """Keep an artifact of the job in a file; nothing is left there if that fails."""
        self._client.run(self._job.download(artifact, path))

    def __repr__(self) -> str:
        return repr(self._job)


class WorkflowHandle:
    """A submitted workflow."""

    def __init__(self, client: Runs, workflow: AsyncWorkflow) -> None:
        self._client = client
        self._workflow = workflow

    @property
    def id(self) -> int:
        """The workflow's number."""
        return self._workflow.id

    def info(self, wait: float = 0) -> wire.Workflow:
        """The workflow as it stands; with `wait`, once it has ended or after so many seconds."""
        return self._client.run(self._workflow.show(wait))

    def jobs(self) -> list[Job]:
        """All its jobs, newest first, also those that were superseded."""
        return self._client.run(self._workflow.jobs())

    def wait(self, timeout: float | None = None) -> wire.Workflow:
        """Wait until the workflow has ended; raises `TimeoutError` when the time is up."""
        return self._client.run(self._workflow.wait(timeout))

    def complete(self, timeout: float | None = None) -> wire.Workflow:
        """The same; raises `WorkflowFailed` if it did not complete."""
        return self._client.run(self._workflow.complete(timeout))

    def cancel(self, reason: str = "Canceled") -> bool:
        """Cancel the workflow; whether that changed anything."""
        return self._client.run(self._workflow.cancel(reason))

    def add(
        self, jobs: Sequence[JobSpec], *, key: str | None = None, reopen: bool = False
    ) -> list[int]:
        """Add jobs while it runs, or with `reopen` also after its end; their ids.

        With a `key` that jobs were added with before, it answers with those.
        """
        return self._client.run(self._workflow.add(jobs, key=key, reopen=reopen)).ids

    def retry(self, failed: bool = True) -> "WorkflowHandle":
        """Try its failed jobs again, or all of it as a new workflow; the one that runs."""
        return WorkflowHandle(self._client, self._client.run(self._workflow.retry(failed)))

    def __repr__(self) -> str:
        return repr(self._workflow)


class Workflow(WorkflowHandle):
    """A workflow that is put together in a `with` block and submitted when that ends.

    Nothing is submitted if the block raises. Made by `client.workflow(name)`.
    """

    def __init__(self, client: Runs, block: AsyncWorkflowBlock) -> None:
        super().__init__(client, block)
        self._block = block

    def submit(
        self,
        task: Any,
        *args: Any,
        after: References = (),
        after_any: References = (),
        allow_failure: bool = False,
        unblock: Literal["auto", "manual"] = "auto",
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> JobHandle:
        """Add a job, as `client.submit` takes it.

        `after` and `after_any` are jobs of this workflow or earlier ones. `options` has any
        other field of a job: `{"name": "build", "retries": 2}`.
        """
        planned = self._block.submit(
            task, *args, after=after, after_any=after_any, allow_failure=allow_failure,
            unblock=unblock, options=options, **kwargs,
        )  # fmt: skip
        return JobHandle(self._client, planned)

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


async def _next(stream: AsyncIterator[bytes]) -> bytes | None:
    async for chunk in stream:
        return chunk
    return None
