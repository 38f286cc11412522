"""Handles on submitted jobs."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeVar, cast

from windlass.client.errors import Delivery, JobFailed, ResultTimeout
from windlass.client.results import read_result
from windlass.client.service import LogChoice, Service
from windlass.domain.explain.explanation import Explanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.domain.rows.gaps import given_again
from windlass.domain.values.errors import Conflict, WaitTimeout, WindlassError
from windlass.domain.values.quantities import DurationLike, format_moment, wait_seconds
from windlass.messages.jobs import CanceledJob, DeleteReply, DeleteRequest, Job, RetryReply
from windlass.tasks.handles import OfOneJob

R_co = TypeVar("R_co", covariant=True)

WAIT_SECONDS = 30.0
EXPLAIN_SECONDS = 5.0
MAX_STEPS = 50  # between a job that was aborted and the one that failed
MAX_ASKED = 10  # jobs that one of these needed and that did not complete
FAILED = frozenset({"failed", "canceled", "aborted", "rejected"})
ENDS = frozenset({"completed", "failed", "canceled", "aborted", "rejected", "skipped"})


class AsyncJob(OfOneJob[R_co]):
    """A submitted job. Handles of one job are equal, also those of two clients of one server."""

    def __init__(self, service: Service, job: int, given_at: int = 0) -> None:
        self._service = service
        self._number = job
        self._given_at = given_at  # when it got its id (ms); 0: unknown
        self._completed: Job | None = None  # once that is known

    @property
    def service(self) -> Service:
        """What answers about this job."""
        return self._service

    @property
    def id(self) -> int:
        """The job's number."""
        return self._number

    @property
    def given_at(self) -> int:
        """When it got its id (ms), by the server's time; 0: unknown."""
        return self._given_at

    @property
    def _fence(self) -> int | None:
        """What lets a server refuse a call if the id stands for another job by now."""
        return self._given_at or None

    async def info(self) -> Job:
        """Returns the job in its current state."""
        return self.checked(await self._service.job(self.id))

    async def explain(self) -> Explanation:
        """Returns why the job waits: for what, who could run it, what would help."""
        return await self._service.explain(self.id, self._given_at)

    async def time_spent(self) -> TimeSpent:
        """Returns where the job's time went, by cause."""
        path = f"/api/v1/jobs/{self.id}/time"
        return await self._service.ask("GET", path, TimeSpent, given_at=self._fence)

    async def wait(self, timeout: DurationLike | None = None) -> Job:
        """Waits until the job has ended; raises `ResultTimeout` when the time is up."""
        seconds = wait_seconds(timeout)
        try:
            async with asyncio.timeout(seconds):
                while True:
                    found = await self._service.wait(self.id, WAIT_SECONDS, self._given_at)
                    job = self.checked(found)
                    if job.state in ENDS:
                        return job
        except WaitTimeout:
            raise  # in virtual time, where no other is up
        except TimeoutError:
            why = await why_waiting(self._service, self.id)
            message = f"job {self.id} has not ended after {seconds:g} s{why}"
            raise ResultTimeout(message, [self.id]) from None

    async def result(self, timeout: DurationLike | None = None) -> R_co:
        """Returns the job's result; raises `JobFailed` if it did not complete."""
        job = self._completed or await self.wait(timeout)
        if job.state != "completed":
            raise await self.failure_of(job)
        return await self.value_of(job)

    async def value_of(self, job: Job) -> R_co:
        """Returns the result of the job, which has completed."""
        return cast("R_co", await read_result(self._service, job))

    async def failure_of(self, job: Job) -> JobFailed:
        """Returns the error for the job, which has ended without a result."""
        return JobFailed(job, await _origin(self._service, job))

    def checked(self, job: Job) -> Job:
        """Returns the job; raises `Lost` if its id was given again, as after a lost backup."""
        if self._given_at and job.created_at > format_moment(self._given_at):
            raise given_again("job", job.id, self._given_at)
        return job

    def note_end(self, job: Job) -> None:
        """Keeps the job as a list shows it, so that `result` need not ask the server."""
        if job.state == "completed":
            self._completed = job

    def __windlass_reference__(self) -> int | str:
        """Returns what stands for its result among the arguments of other jobs."""
        return self.id

    async def cancel(self, reason: str = "Canceled") -> bool:
        """Cancels the job and returns whether that changed anything."""
        path = f"/api/v1/jobs/{self.id}/cancel"
        query = {"reason": reason, "given_at": self._fence}
        return (await self._service.repeat("POST", path, CanceledJob, **query)).applied

    async def retry(self) -> "AsyncJob[R_co]":
        """Retries the ended job as a new job that supersedes it."""
        path = f"/api/v1/jobs/{self.id}/retry"
        done = await self._service.repeat("POST", path, RetryReply, given_at=self._fence)
        return AsyncJob(self._service, done.id, done.at)

    async def delete(self) -> bool:
        """Deletes the ended job with its log and artifacts; False if it did not exist any more.

        Raises `Conflict` if it has not ended, or something still needs it.
        """
        request = DeleteRequest(ids=[self.id], given_at=[self._given_at])
        reply = await self._service.repeat("POST", "/api/v1/jobs/delete", DeleteReply, request)
        (done,) = reply.jobs
        if done.refusal is not None:
            raise Conflict("not_deleted", f"job {self.id} cannot be deleted: {done.refusal}")
        return done.applied

    def logs(
        self,
        follow: bool = False,
        *,
        attempt: int | None = None,
        tail: int | None = None,
        since: str | None = None,
        timestamps: bool = False,
    ) -> AsyncIterator[bytes]:
        """Yields the job's log in pieces; with `follow` until the job ends.

        `attempt` is the newest unless given. `tail` starts with the last lines, `since` with what
        came since a time or so long ago ("10m"). `timestamps` puts before each line when the
        server received it.
        """
        choice = LogChoice(attempt, tail, since, timestamps)
        return self._service.log(self.id, follow, choice, self._given_at)

    async def download(self, artifact: str, path: Path) -> None:
        """Saves an artifact of the job to a file; if that fails, leaves no file behind."""
        partial = path.with_name(f".{path.name}.partial")
        try:
            with partial.open("wb") as file:
                async for chunk in self._service.artifact(self.id, artifact, self._given_at):
                    file.write(chunk)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AsyncJob):
            return NotImplemented
        return self.id == other.id and self._service.installation == other.service.installation

    def __hash__(self) -> int:
        return hash((self._service.installation, self.id))

    def __repr__(self) -> str:
        return f"<job {self.id}>"


class SpooledJob(AsyncJob[R_co]):
    """A job of a submission that no server has taken yet; it has an id once one has.

    It is equal to no other handle, as its hash must not change.
    """

    def __init__(self, service: Service, delivery: Delivery | None, place: int = 0) -> None:
        super().__init__(service, 0)
        self._delivery = delivery
        self._place = place

    @property
    def id(self) -> int:
        """The job's number; raises `Conflict` until it has been delivered."""
        if not self._number and self._delivery is not None:
            reply = self._delivery.reply()
            self._number, self._given_at = reply.ids[self._place], reply.at
        return self._number

    def spooled_as(self, delivery: Delivery, place: int) -> None:
        """Takes its id from the answer to come."""
        self._delivery, self._place = delivery, place

    async def wait(self, timeout: DurationLike | None = None) -> Job:
        """Waits until the job was delivered and has ended; raises `ResultTimeout`."""
        return await super().wait(await self.until_delivered(timeout))

    async def until_delivered(self, timeout: DurationLike | None) -> DurationLike | None:
        """Waits until a server has taken the job; returns how much of the time is left."""
        return await delivered(self._delivery, timeout)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<job {self._number or 'not delivered yet'}>"


async def delivered(delivery: Delivery | None, timeout: DurationLike | None) -> DurationLike | None:
    """Waits for a delivery, if there is one, and returns how much of the time is left."""
    if delivery is None:
        return timeout
    seconds = wait_seconds(timeout)
    clock = asyncio.get_running_loop()
    began = clock.time()
    try:
        async with asyncio.timeout(seconds):
            await delivery.wait()
    except TimeoutError:
        message = f"no server has taken this submission after {seconds:g} s: it waits in the spool"
        raise ResultTimeout(message) from None
    return None if seconds is None else max(0.0, began + seconds - clock.time())


async def _origin(service: Service, job: Job) -> Job | None:
    """Returns the job whose failure aborted this one, if it was aborted and that is known."""
    found = job
    try:
        for _ in range(MAX_STEPS):
            if found.state != "aborted":
                return None if found is job else found
            known = found.dependencies or (await service.job(found.id)).dependencies
            missed = [one.job for one in known if one.state in FAILED and not one.any_end]
            needed = [await service.job(one) for one in missed[:MAX_ASKED]]
            blamed = [one for one in needed if not one.allow_failure]
            if not blamed:
                return None
            found = blamed[0]
    except WindlassError:
        return None  # Report at least the failure itself.
    return None


async def why_waiting(service: Service, job: int) -> str:
    """Returns why a job has not ended, as the end of a message; nothing if nobody knows."""
    try:
        async with asyncio.timeout(EXPLAIN_SECONDS):
            return f": {(await service.explain(job)).summary}"
    except (TimeoutError, WindlassError):
        return ""
