"""Jobs in the caller: `Client.embedded(":memory:", immediate=True)`.

The engine is the usual one, on the memory store. Functions run on the thread that calls the
client, while it submits or waits.
"""

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeVar

import uvloop

from windlass.client.blocking.loop_thread import LoopThread
from windlass.client.service import Service
from windlass.domain.matching.workers import may_claim
from windlass.domain.values.quantities import parse_moment
from windlass.embedded.in_process import OWN, InProcess
from windlass.executors.python.messages import Done, Failed
from windlass.messages.jobs import Job, SubmitReply, SubmitRequest, WaitRequest

T = TypeVar("T")

LOOK_AGAIN_S: Final = 0.05
# How long a submission waits for a job that is not taken: since something is in its way, such as
# a paused queue, or although nothing is. The worker starts with the first call.
HINDERED_S: Final = 0.5
UNTAKEN_S: Final = 30.0
AT_WORK: Final = frozenset({"assigned", "running", "canceling", "timed_out"})

Work = Callable[[], Done | Failed]


class _Item(NamedTuple):
    work: Work
    future: "asyncio.Future[Done | Failed]"


class CallerThread(LoopThread):
    """Its loop hands the calls of functions to threads that wait for it."""

    def __init__(self) -> None:
        super().__init__(uvloop.new_event_loop, forks=False)
        self._sharing = threading.Lock()
        self._waiting: list[queue.SimpleQueue[_Item | None]] = []
        self._left: deque[_Item] = deque()

    async def hand_over(self, work: Work) -> Done | Failed:
        """Lets a thread that waits run this; called in the loop."""
        item = _Item(work, asyncio.get_running_loop().create_future())
        self._give(item)
        return await item.future

    def run(self, coro: Coroutine[Any, Any, T], /) -> T:
        """Returns or raises what `coro` does, and runs functions until then."""
        own: queue.SimpleQueue[_Item | None] = queue.SimpleQueue()
        outcome: list[T] = []

        async def watched() -> None:
            try:
                outcome.append(await coro)
            finally:
                own.put(None)

        with self._sharing:
            while self._left:
                own.put(self._left.popleft())
            self._waiting.append(own)
        try:
            ended = self.start(watched())
            while (item := own.get()) is not None:
                self._do(item)
        finally:
            with self._sharing:
                self._waiting.remove(own)
            while not own.empty():
                if (item := own.get()) is not None:
                    self._give(item)
        ended.result()
        return outcome[0]

    async def run_async(self, coro: Coroutine[Any, Any, T], /) -> T:
        """Does the same on another thread, for code in an event loop."""
        return await asyncio.to_thread(self.run, coro)

    def _give(self, item: _Item) -> None:
        with self._sharing:
            if self._waiting:
                self._waiting[-1].put(item)
            else:
                self._left.append(item)

    def _do(self, item: _Item) -> None:
        loop = item.future.get_loop()
        try:
            report = item.work()
        except BaseException as error:  # an interrupt, which is meant for the program
            loop.call_soon_threadsafe(_fail, item.future, error)
            raise
        loop.call_soon_threadsafe(_settle, item.future, report)


class ImmediateService(Service):
    """Submits jobs and lets them run at once, if possible."""

    transport: InProcess

    async def submit(self, request: SubmitRequest) -> SubmitReply:
        reply = await super().submit(request)
        await self._let_run(reply.ids)
        return reply

    async def _let_run(self, ids: list[int]) -> None:
        """Waits until the jobs have ended, or wait for more than their turn."""
        services, loop = await self.transport.services(), asyncio.get_running_loop()
        taken_at = loop.time()
        while True:
            jobs = await services.queries.some_jobs(ids, OWN)
            now = await services.engine.now()
            active = [job for job in jobs if job.state in AT_WORK or _is_ready(job, now)]
            if any(job.state in AT_WORK for job in active):
                taken_at = loop.time()
            if not active:
                return
            waited = loop.time() - taken_at
            if waited > UNTAKEN_S or (waited > HINDERED_S and await self._all_hindered(active)):
                return
            open_ids = [job.id for job in active]
            await self.wait_some(WaitRequest(ids=open_ids, timeout=LOOK_AGAIN_S))

    async def _all_hindered(self, jobs: list[Job]) -> bool:
        """Returns whether each of the jobs waits for something that the worker cannot change."""
        engine = (await self.transport.services()).engine
        workers = await engine.store.read(lambda tx: tx.workers.all())
        if not any(may_claim(worker.status) for worker in workers):
            return False  # It is still starting.
        for job in jobs:
            if not (await engine.explain.job(job.id)).waiting_for:
                return False
        return True


def _is_ready(job: Job, now: int) -> bool:
    if job.state != "queued":
        return False
    at = job.not_before
    return at is None or parse_moment(at, "not_before") <= now


def _settle(future: "asyncio.Future[Done | Failed]", report: Done | Failed) -> None:
    if not future.done():
        future.set_result(report)


def _fail(future: "asyncio.Future[Done | Failed]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(RuntimeError(f"interrupted: {error!r}"))
