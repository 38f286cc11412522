"""Calls that wait for a job or a workflow to end.

Commits of this engine wake them. Other engines may not announce ends, so on a shared store the
calls also check from time to time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

from windlass.domain.lifecycle.workflow_state import ENDED, WorkflowState
from windlass.domain.rows.records import JobFacts
from windlass.ports.loop_time import pass_time
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

POLL_SECONDS = 0.5  # poll interval if other engines do not announce ends
SLOW_POLL_SECONDS = 5.0  # poll interval if they do, in case an announcement was lost

GATHER_SECONDS = 0.02  # jobs often end together: a short pause lets one answer cover more of them
Ended = dict[int, JobFacts | None]
HasEnded = Callable[[ReadTx, int], Awaitable[bool | None]]  # None: there is no such job or workflow


class EndWaiters:
    """The calls of one engine that wait for an end."""

    def __init__(self, store: Store) -> None:
        self.jobs = Waiters(store, _has_job_ended)
        self.workflows = Waiters(store, _has_workflow_ended)

    def wake(self, jobs: Iterable[int], workflows: Iterable[int]) -> None:
        """Wakes the calls that wait for these, which have ended."""
        self.jobs.wake(jobs)
        self.workflows.wake(workflows)

    def wake_all(self) -> None:
        """Makes every call check again."""
        self.jobs.wake_all()
        self.workflows.wake_all()

    @property
    def is_closed(self) -> bool:
        """Returns whether all waits have ended."""
        return self.jobs.is_closed

    def close(self) -> None:
        """Ends all waits."""
        self.jobs.close()
        self.workflows.close()


class _Member:
    """One of several jobs that a call waits for; used in place of an event."""

    def __init__(self, number: int, touched: set[int], woken: asyncio.Event) -> None:
        self._number = number
        self._touched = touched
        self._woken = woken

    def set(self) -> None:
        """Notes that it may have ended."""
        self._touched.add(self._number)
        self._woken.set()


class Waiters:
    """The calls that wait for jobs, or for workflows."""

    def __init__(self, store: Store, has_ended: HasEnded) -> None:
        self._store = store
        self._has_ended = has_ended
        self._poll = SLOW_POLL_SECONDS if store.inline else POLL_SECONDS
        self._waiting: dict[int, list[asyncio.Event | _Member]] = {}
        self.is_closed = False

    async def wait(self, number: int, timeout_ms: int) -> bool:
        """Waits until it has ended or time is up; returns True if it has ended."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            ended = asyncio.Event()
            self._waiting.setdefault(number, []).append(ended)
            try:
                over = await self._store.read(lambda tx: self._has_ended(tx, number))
                left = deadline - loop.time()
                if self.is_closed:
                    await pass_time(0)  # frequent callers must let others run
                if over is None or over or left <= 0 or self.is_closed:
                    return bool(over)
                most = min(left, self._poll) if self._store.shared else left
                timer = loop.call_later(most, ended.set)
                await ended.wait()
                timer.cancel()
            finally:
                self._forget(number, ended)

    async def wait_many(
        self, numbers: Sequence[int], timeout_ms: int, enough: Callable[[Ended], bool]
    ) -> Ended:
        """Waits until enough of these jobs have ended or time is up; returns those that have.

        Jobs that do not exist count as ended.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        touched, woken = set(numbers), asyncio.Event()
        members = [(number, _Member(number, touched, woken)) for number in touched]
        for number, member in members:
            self._waiting.setdefault(number, []).append(member)
        ended: Ended = {}
        look_at_all = loop.time() + self._poll
        try:
            while True:
                looked_at = sorted(touched)
                touched.clear()
                woken.clear()
                ended |= await self._store.read(partial(_ended_jobs, jobs=looked_at))
                left = deadline - loop.time()
                if self.is_closed:
                    await pass_time(0)  # as above
                if len(ended) == len(members) or enough(ended) or left <= 0 or self.is_closed:
                    return ended
                most = min(left, self._poll) if self._store.shared else left
                timer = loop.call_later(most, woken.set)
                await woken.wait()
                timer.cancel()
                if loop.time() >= look_at_all or not touched:
                    look_at_all = loop.time() + self._poll
                    touched |= {number for number, _ in members} - ended.keys()
                elif len(members) > 1:
                    await pass_time(min(GATHER_SECONDS, max(0.0, deadline - loop.time())))
        finally:
            for number, member in members:
                self._forget(number, member)

    def wake(self, numbers: Iterable[int]) -> None:
        """Wakes the calls that wait for these."""
        if self._waiting:
            for number in numbers:
                for ended in self._waiting.get(number, ()):
                    ended.set()

    def wake_all(self) -> None:
        """Makes every call check again."""
        self.wake(list(self._waiting))

    def close(self) -> None:
        """Ends all waits."""
        self.is_closed = True
        self.wake_all()

    def _forget(self, number: int, ended: asyncio.Event | _Member) -> None:
        waiting = self._waiting[number]
        waiting.remove(ended)
        if not waiting:
            del self._waiting[number]


async def _has_job_ended(tx: ReadTx, job: int) -> bool | None:
    facts = (await tx.jobs.read([job])).get(job)
    return None if facts is None else not facts.is_open


async def _ended_jobs(tx: ReadTx, jobs: Sequence[int]) -> Ended:
    facts = await tx.jobs.read(jobs)
    return {job: fact for job in jobs if (fact := facts.get(job)) is None or not fact.is_open}


async def _has_workflow_ended(tx: ReadTx, workflow: int) -> bool | None:
    row = (await tx.workflows.read([workflow])).get(workflow)
    return None if row is None else WorkflowState(row.state) in ENDED
