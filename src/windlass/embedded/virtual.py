"""Windlass for tests of programs that use it: in this process, with a clock that tests advance.

Nothing runs by itself. `drain` runs what is ready, in the calling thread; `advance` lets time pass
and runs what is due; waiting for a job runs what is ready first.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import Any, Final, Self, TypeVar

import msgspec

from windlass.assembly.backend import Backend, make_backend
from windlass.client.blocking.loop_thread import LoopThread
from windlass.client.handles import ENDS
from windlass.client.service import Service
from windlass.clock import RealClock
from windlass.domain.config import Config
from windlass.domain.job.forms import DURATION, milliseconds
from windlass.domain.rows.records import InboxRow
from windlass.domain.values.errors import Conflict, WaitTimeout
from windlass.embedded.in_process import InProcess
from windlass.embedded.virtual_worker import Place, VirtualWorker
from windlass.engine.loops.capability import CapabilityLoop
from windlass.engine.loops.planning import CronLoop, ReactionsLoop
from windlass.engine.loops.scheduling import CleanupLoop, HealthLoop, SchedulingLoop
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.jobs import Job, WaitReply, WaitRequest
from windlass.messages.workflows import Workflow
from windlass.operations.services import Services
from windlass.store.sql.transaction import ReadTx
from windlass.store.sqlite.memory import MemoryStore
from windlass.transactions.catching import Catcher
from windlass.worker.agent.direct import DirectGateway

T = TypeVar("T")
STEPS: Final = 20  # minimum number of checks for due work in one advance
SUBMITTER: Final = "test"  # of what tests submit in transactions
MIN_STEP_MS: Final = 1_000
BUSY_STEP_MS: Final = 5_000  # while a job runs: the health loop takes a longer gap for its own
_ORDERS: ContextVar["SimpleQueue[Callable[[], None] | None] | None"] = ContextVar(
    "windlass_orders", default=None
)


class NotYet(Conflict, WaitTimeout):
    """A job was waited for that does not end before time passes."""


class VirtualClock:
    """A clock that tests move."""

    def __init__(self, now_ms: int) -> None:
        self._now = now_ms

    def now_ms(self) -> int:
        return self._now

    def move_to(self, now_ms: int) -> None:
        """Lets time pass."""
        self._now = max(self._now, now_ms)

    async def sleep_ms(self, duration_ms: int) -> None:
        """Does not wait: nothing passes here but what tests let pass."""


class VirtualThread(LoopThread):
    """Runs the engine's loop; the thread that waits for a call runs jobs meanwhile."""

    def run(self, coro: Coroutine[Any, Any, T], /) -> T:
        """Returns or raises what `coro` does."""
        orders: SimpleQueue[Callable[[], None] | None] = SimpleQueue()

        async def with_orders() -> T:
            _ORDERS.set(orders)
            return await coro

        call = asyncio.run_coroutine_threadsafe(with_orders(), self._loop_for(coro))
        call.add_done_callback(lambda _: orders.put(None))
        while (order := orders.get()) is not None:
            order()
        return call.result()

    async def run_async(self, coro: Coroutine[Any, Any, T], /) -> T:
        """Does the same for async tests: their own loop stands still while jobs run."""
        return self.run(coro)


class VirtualNode:
    """Holds an engine in memory; its loops run only on demand."""

    def __init__(self, clock: VirtualClock) -> None:
        self.backend: Backend | None = None
        self._clock = clock

    async def open(self) -> Backend:
        """Starts the engine."""
        if self.backend is None:
            backend = make_backend(MemoryStore(self._clock), "memory:", Config())
            await backend.engine.start()
            self.backend = backend
        return self.backend

    async def close(self) -> None:
        """Stops it."""
        backend, self.backend = self.backend, None
        if backend is not None:
            await backend.close()


class VirtualCalls(InProcess):
    """Calls an engine that has all submissions of tests' transactions."""

    catcher: Catcher

    async def services(self) -> Services:
        """Returns what operations work with; moves what was caught first."""
        services = await super().services()
        if (backend := self._node.backend) is not None:
            await self.receive(backend)
        return services

    async def receive(self, backend: Backend) -> None:
        """Puts what was caught into the inbox, as committed transactions do, and moves it."""
        caught = self.catcher.collect()
        if not caught:
            return

        async def put(work: Work) -> None:
            await work.tx.inbox.put(
                [
                    InboxRow(0, work.now, tuple(one.ids), SUBMITTER, (), one.request.body.encode())
                    for one in caught
                ]
            )

        await backend.engine.run(put)
        await backend.inbox.move()


class VirtualService(Service):
    """Runs what is ready before reporting that something has not ended."""

    drain: Callable[[], int]

    async def wait(self, job: int, seconds: float, given_at: int = 0) -> Job:
        """Returns the job once it has ended; raises `NotYet` if that needs time to pass."""
        del seconds  # They are of a time that does not pass here.
        await self._drain()
        found = await super().wait(job, 0, given_at)
        if found.state not in ENDS:
            told = await self.explain(job)
            raise NotYet("not_yet", f"job {job} does not end before time passes: {told.summary}")
        return found

    async def wait_some(self, request: WaitRequest) -> WaitReply:
        """Returns those that have ended; raises `NotYet` if none has before time passes."""
        await self._drain()
        found = await super().wait_some(msgspec.structs.replace(request, timeout=0))
        if not found.jobs:
            await self.wait(min(request.ids), 0)
        return found

    async def wait_workflow(self, workflow: int, seconds: float, given_at: int = 0) -> Workflow:
        """Returns the workflow once it has ended; raises `NotYet` if that needs time to pass."""
        del seconds
        await self._drain()
        found = await super().wait_workflow(workflow, 0, given_at)
        if found.finished_at is None:
            raise NotYet("not_yet", f"workflow {workflow} does not end before time passes")
        return found

    async def _drain(self) -> None:
        orders = _ORDERS.get()
        if orders is None:
            return  # Nobody waits in a thread of theirs: only `drain` runs jobs.
        loop = asyncio.get_running_loop()
        drained = loop.create_future()

        def order() -> None:
            failed: BaseException | None = None
            try:
                self.drain()
            except BaseException as error:
                failed = error
            loop.call_soon_threadsafe(_settle, drained, failed)

        orders.put(order)
        await drained


def _settle(future: "asyncio.Future[None]", failed: BaseException | None) -> None:
    if future.done():
        return
    if failed is None:
        future.set_result(None)
    else:
        future.set_exception(failed)


class VirtualFleet:
    """An engine, its worker and its time; made by `open`."""

    def __init__(self) -> None:
        self.clock = VirtualClock(RealClock().now_ms())
        self.thread = VirtualThread(forks=False)
        self._node = VirtualNode(self.clock)
        # It has everything the calls need from a node.
        self._calls = VirtualCalls(self._node)  # type: ignore[arg-type]
        self._calls.catcher = self.catcher = Catcher(self._take)
        self.service = VirtualService(self._calls)
        self.service.drain = self.drain
        self._worker: VirtualWorker
        self._loops: tuple[Any, ...] = ()
        self._backend: Backend

    def open(self) -> Self:
        """Starts it."""
        self._backend = backend = self.thread.run(self._node.open())
        engine = backend.engine
        self._loops = (
            SchedulingLoop(engine), HealthLoop(engine), CleanupLoop(engine), CapabilityLoop(engine),
            CronLoop(engine, backend.schedules.runs), ReactionsLoop(engine, backend.reactions),
        )  # fmt: skip
        place = Place(
            DirectGateway(engine, backend.files), self.clock, engine.config.result_limit,
            engine.config.log_limit,
        )  # fmt: skip
        self._worker = VirtualWorker(engine, place, self.thread.run)
        self.thread.run(self._worker.enrol())
        return self

    @property
    def secrets(self) -> dict[str, str]:
        """The secrets of its worker, by name."""
        return self._worker.secrets

    @property
    def metadata(self) -> dict[str, Any]:
        """What its worker offers, besides the facts about this machine."""
        return self._worker.metadata

    @property
    def now(self) -> datetime:
        """The time; only `advance` changes it."""
        return datetime.fromtimestamp(self.clock.now_ms() / 1000, UTC)

    def drain(self) -> int:
        """Runs all ready jobs and the jobs that follow them; returns how many."""
        ran = 0
        self.thread.run(self._look())
        while self._worker.work():
            ran += 1
            self.thread.run(self._look())
        return ran

    def advance(self, duration: float | str | timedelta) -> int:
        """Lets time pass, with all that is planned in it; returns how many jobs ran."""
        length = milliseconds(DURATION.canonical(duration, "duration")) or 0
        end = self.clock.now_ms() + length
        longest = max(MIN_STEP_MS, length // STEPS)
        if self._worker.busy:
            longest = min(longest, BUSY_STEP_MS)
        ran = self.drain()
        while (now := self.clock.now_ms()) < end:
            planned = self.thread.run(self._next_planned())
            following = planned if planned > now else end
            self.clock.move_to(min(end, now + longest, following))
            ran += self.drain()
        return ran

    def _take(self, count: int) -> Sequence[int]:
        """Returns ids for jobs of a test's transaction."""

        async def allocate(work: Work) -> Sequence[int]:
            return await work.tx.jobs.allocate(count)

        return self.thread.run(self._backend.engine.run(allocate))

    async def _look(self) -> None:
        """Runs each loop once, as servers do every few seconds."""
        await self._calls.receive(self._backend)
        await self._worker.beat()
        for loop in self._loops:
            await loop.run_once(self.clock.now_ms())
        await self._backend.engine.settled()

    async def _next_planned(self) -> int:
        """Returns when the next delayed job or schedule is due; 0 if none is."""

        async def read(tx: ReadTx) -> list[int | None]:
            return [await tx.places.next_due(), await tx.schedules.next_due()]

        return min((at for at in await self._backend.engine.store.read(read) if at), default=0)

    def close(self) -> None:
        """Stops everything."""
        self.thread.run(self._node.close())
        self.thread.close()
