"""Windlass over HTTP, driven as a user would: a server and workers as processes.

Jobs are submitted while their queue is paused; the clock runs from resuming it to the end
of the last job. So a job counts once its end is recorded, as with the peers.
"""

from collections.abc import Sequence

from benchmarks.fleet.processes import Server, until
from benchmarks.measure import Lap, Watch
from windlass.client.blocking.client import Client
from windlass.domain.job.job import JobSpec
from windlass.messages.jobs import Job, SubmitReply, SubmitRequest
from windlass.messages.workers import Changed, QueueList

QUEUE = "default"
CHUNK = 1_000
END_SECONDS = 300
OPEN = ["queued", "assigned", "running"]


def drain(server: Server, jobs: Sequence[JobSpec]) -> tuple[Lap, Lap]:
    """Submit `jobs` to the paused queue, then let them run; a lap for each of the two."""
    with server.client() as client:
        _set_queue(client, "pause")
        watch = Watch()
        ids = [job for first in range(0, len(jobs), CHUNK)
               for job in submit(client, jobs[first : first + CHUNK])]  # fmt: skip
        submitted = watch.lap(len(ids))
        expect_waiting(depth(client), len(ids))
        watch = Watch()
        _set_queue(client, "resume")
        client.job(ids[-1]).wait(END_SECONDS)
        until_ended(client)
        drained = watch.lap(len(ids))
        expect_completed(client, ids)
        return submitted, drained


def submit(client: Client, jobs: Sequence[JobSpec]) -> list[int]:
    """The ids of these jobs, submitted in one call."""
    request = SubmitRequest(jobs=list(jobs))
    call = client.asynchronous.transport.call
    return client.run(call("POST", "/api/v1/jobs", SubmitReply, request)).ids


def depth(client: Client) -> int:
    """How many jobs are queued."""
    call = client.asynchronous.transport.call
    queues = client.run(call("GET", "/api/v1/queues", QueueList)).queues
    return sum(queue.depth for queue in queues)


def expect_waiting(queued: int, submitted: int) -> None:
    """No job ran before the clock started, or the figure would be too good."""
    if queued != submitted:
        raise RuntimeError(f"{submitted - queued} of {submitted} jobs did not wait for the clock")


def until_ended(client: Client) -> None:
    """Wait for those jobs that end after the last one."""
    until("the other jobs to end", lambda: not client.jobs(1, state=OPEN), END_SECONDS)


def expect_completed(client: Client, ids: Sequence[int]) -> list[Job]:
    """These jobs as they stand; each completed, in its first attempt."""
    wanted = set(ids)
    found = [job for job in client.jobs(len(ids), state="completed") if job.id in wanted]
    at_once = sum(job.attempt == 1 for job in found)
    if at_once != len(wanted):
        missing = len(wanted) - at_once
        raise RuntimeError(f"{missing} of {len(ids)} jobs did not complete in their first attempt")
    return found


def _set_queue(client: Client, action: str) -> None:
    call = client.asynchronous.transport.call
    client.run(call("POST", f"/api/v1/queues/{QUEUE}/{action}", Changed))
