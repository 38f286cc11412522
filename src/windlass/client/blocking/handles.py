# Written by `make blocking-client`: change the asynchronous client instead.
"""Handles for blocking code: jobs, and workflows with their block."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar, overload

from windlass.client.blocking.base import Handle, each
from windlass.client.builder import AsyncWorkflowBlock
from windlass.client.handles import AsyncJob
from windlass.client.workflows import AsyncWorkflow
from windlass.domain.explain.explanation import Explanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.domain.job.job import JobSpec
from windlass.domain.values.quantities import DurationLike
from windlass.messages.jobs import Job, SubmitReply
from windlass.messages.schedules import ReactionInfo
from windlass.messages.workflows import Workflow as WorkflowInfo
from windlass.tasks.handles import OfOneJob
from windlass.tasks.submitting import Submits

R_co = TypeVar("R_co", covariant=True)
P = ParamSpec("P")
R = TypeVar("R")


class JobHandle(Handle[AsyncJob[R_co]], OfOneJob[R_co]):
    """A submitted job. Handles of one job are equal, also those of two clients of one server."""

    @property
    def id(self) -> int:
        """The job's number."""
        return self._async.id

    def info(self) -> Job:
        """Returns the job in its current state."""
        return self._client.run(self._async.info())

    def explain(self) -> Explanation:
        """Returns why the job waits: for what, who could run it, what would help."""
        return self._client.run(self._async.explain())

    def time_spent(self) -> TimeSpent:
        """Returns where the job's time went, by cause."""
        return self._client.run(self._async.time_spent())

    def wait(self, timeout: DurationLike | None = None) -> Job:
        """Waits until the job has ended; raises `ResultTimeout` when the time is up."""
        return self._client.run(self._async.wait(timeout))

    def result(self, timeout: DurationLike | None = None) -> R_co:
        """Returns the job's result; raises `JobFailed` if it did not complete."""
        return self._client.run(self._async.result(timeout))

    def __windlass_reference__(self) -> int | str:
        """Returns what stands for its result among the arguments of other jobs."""
        return self._async.__windlass_reference__()

    def cancel(self, reason: str = "Canceled") -> bool:
        """Cancels the job and returns whether that changed anything."""
        return self._client.run(self._async.cancel(reason))

    def retry(self) -> "JobHandle[R_co]":
        """Retries the ended job as a new job that supersedes it."""
        made = self._client.run(self._async.retry())
        return JobHandle(self._client, made)

    def delete(self) -> bool:
        """Deletes the ended job with its log and artifacts; False if it did not exist any more.

        Raises `Conflict` if it has not ended, or something still needs it.
        """
        return self._client.run(self._async.delete())

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
        stream = self._async.logs(
            follow, attempt=attempt, tail=tail, since=since, timestamps=timestamps
        )
        yield from each(self._client, stream)

    def download(self, artifact: str, path: Path) -> None:
        """Saves an artifact of the job to a file; if that fails, leaves no file behind."""
        self._client.run(self._async.download(artifact, path))


class WorkflowHandle(Handle[AsyncWorkflow]):
    """A submitted workflow. Handles of one workflow are equal, as those of a job are."""

    @property
    def id(self) -> int:
        """The workflow's number."""
        return self._async.id

    def info(self, wait: float = 0) -> WorkflowInfo:
        """Returns the workflow as it is now; with `wait`, once it has ended or time is up."""
        return self._client.run(self._async.info(wait))

    def jobs(self) -> list[Job]:
        """Returns all its jobs, newest first, also those that were superseded."""
        return self._client.run(self._async.jobs())

    def add(
        self, jobs: Sequence[JobSpec], *, key: str | None = None, reopen: bool = False
    ) -> list[int]:
        """Adds jobs while it runs, or with `reopen` after its end too, and returns their ids.

        If jobs were added with this `key` before, it returns their ids.
        """
        return self._client.run(self._async.add(jobs, key=key, reopen=reopen))

    def add_with_reply(
        self, jobs: Sequence[JobSpec], *, key: str | None = None, reopen: bool = False
    ) -> SubmitReply:
        """Adds jobs as `add` does; the answer also says which ones are new."""
        return self._client.run(self._async.add_with_reply(jobs, key=key, reopen=reopen))

    def wait(self, timeout: DurationLike | None = None) -> WorkflowInfo:
        """Waits until the workflow has ended; raises `ResultTimeout` when the time is up."""
        return self._client.run(self._async.wait(timeout))

    def complete(self, timeout: DurationLike | None = None) -> WorkflowInfo:
        """Waits as `wait` does; raises `WorkflowFailed` if the workflow did not complete."""
        return self._client.run(self._async.complete(timeout))

    def cancel(self, reason: str = "Canceled") -> bool:
        """Cancels the workflow and returns whether that changed anything."""
        return self._client.run(self._async.cancel(reason))

    def retry(self, failed: bool = True) -> "WorkflowHandle":
        """Retries its failed jobs, or all of it as a new workflow; returns that workflow."""
        made = self._client.run(self._async.retry(failed))
        return WorkflowHandle(self._client, made)

    def reactions(self) -> list[ReactionInfo]:
        """Returns the reactions to its end, done and planned."""
        return self._client.run(self._async.reactions())


class Workflow(WorkflowHandle):
    """A workflow that is put together in a `with` block and submitted when that ends.

    Nothing is submitted if the block raises. Made by `client.workflow(name)`. It is equal to no
    other handle, as its jobs are.
    """

    _async: AsyncWorkflowBlock

    @property
    def id(self) -> int:
        """The workflow's number, 0 before the end of the block; raises `Conflict` while it waits
        in a spool."""
        return self._async.id

    def wait(self, timeout: DurationLike | None = None) -> WorkflowInfo:
        """Waits until the workflow was taken and has ended; raises `ResultTimeout`."""
        return self._client.run(self._async.wait(timeout))

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
        made = self._async.submit(task, *args, **kwargs)
        return JobHandle(self._client, made)

    def __enter__(self) -> Self:
        self._client.run(self._async.__aenter__())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.run(self._async.__aexit__(kind, error, trace))
