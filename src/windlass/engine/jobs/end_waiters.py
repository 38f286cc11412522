"""Lets callers wait for ends: this engine's commits wake them, else they look again."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from windlass.domain.lifecycle.workflow_state import ENDED, WorkflowState
from windlass.ports.store import ReadTx, Store

POLL_SECONDS = 0.5  # other engines do not tell which jobs have ended
SLOW_POLL_SECONDS = 5.0  # they do, and word of it was lost

Waiting = dict[int, list[asyncio.Event]]


async def _job_ended(tx: ReadTx, job: int) -> bool | None:
    """Returns whether a job has ended, None if there is none."""
    facts = (await tx.jobs.read([job])).get(job)
    return None if facts is None else bool(facts.state)


async def _workflow_ended(tx: ReadTx, workflow: int) -> bool | None:
    """Returns whether a workflow has ended, None if there is none."""
    row = (await tx.workflows.read([workflow])).get(workflow)
    return None if row is None else WorkflowState(row.state) in ENDED


class Endings:
    """Lets callers wait for the ends of jobs and workflows."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._poll = SLOW_POLL_SECONDS if store.inline else POLL_SECONDS
        self._jobs: Waiting = {}
        self._workflows: Waiting = {}
        self._closed = False

    async def wait_job(self, job: int, timeout_ms: int) -> bool:
        """Waits until a job has ended; returns whether it has."""
        return await self._wait(self._jobs, job, _job_ended, timeout_ms)

    async def wait_workflow(self, workflow: int, timeout_ms: int) -> bool:
        """Waits until a workflow has ended; returns whether it has."""
        return await self._wait(self._workflows, workflow, _workflow_ended, timeout_ms)

    async def _wait(
        self,
        waiting: Waiting,
        number: int,
        has_ended: Callable[[ReadTx, int], Awaitable[bool | None]],
        timeout_ms: int,
    ) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            ended = asyncio.Event()
            waiting.setdefault(number, []).append(ended)
            try:
                over = await self._store.read(lambda tx: has_ended(tx, number))
                left = deadline - loop.time()
                if over is None or over or left <= 0 or self._closed:
                    return bool(over)
                most = min(left, self._poll) if self._store.shared else left
                timer = loop.call_later(most, ended.set)
                await ended.wait()
                timer.cancel()
            finally:
                _forget(waiting, number, ended)

    def tell(self, jobs: Iterable[int], workflows: Iterable[int] = ()) -> None:
        """Wakes those who wait for these jobs and workflows, which have ended."""
        for waiting, numbers in (self._jobs, jobs), (self._workflows, workflows):
            if waiting:
                for number in numbers:
                    for ended in waiting.get(number, ()):
                        ended.set()

    def look_again(self) -> None:
        """Wakes everybody: any of them may have missed an end."""
        self.tell(list(self._jobs), list(self._workflows))

    def close(self) -> None:
        """Ends all waits."""
        self._closed = True
        self.look_again()


def _forget(waiting: Waiting, number: int, ended: asyncio.Event) -> None:
    waiting[number].remove(ended)
    if not waiting[number]:
        del waiting[number]
