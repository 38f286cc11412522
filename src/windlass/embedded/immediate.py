"""Jobs in the caller: `Client.embedded(":memory:", immediate=True)`, for tests and debugging.

The engine is the usual one, on the memory store. Functions run on the thread that calls the client,
while it submits or waits, so a debugger can stop them and they see patched modules. They cannot be
killed.
"""

import asyncio
import contextvars
import queue
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import uvloop

from windlass.client.blocking.loop_thread import LoopThread
from windlass.client.service import Service
from windlass.domain.matching.workers import may_claim
from windlass.domain.tasks.python import name_of_main, read_args
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_moment
from windlass.embedded.in_process import OWN, InProcess
from windlass.executors.python.functions import FoundFunction, Functions, ended, find_in, raised
from windlass.executors.python.job import PythonJob, done_result, failed_result
from windlass.executors.python.messages import Answer, Ask, Call, Done, Failed
from windlass.messages.jobs import Job, SubmitReply, SubmitRequest, WaitRequest
from windlass.ports.executor import JobContext, Result
from windlass.tasks.current import JOBS, Current, enter
from windlass.tasks.steps import refuse_caught

T = TypeVar("T")

LOOK_AGAIN_S: Final = 0.05
# How long a submission waits for a job that the worker does not take: if there is an obstacle, such
# as a paused queue, and if there is none. The worker starts with the first call.
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


HandOver = Callable[[Callable[[], Done | Failed]], Awaitable[Done | Failed]]


class CallerExecutor:
    """Runs functions through `hand_over`, which lets a thread of the program run them."""

    task = "python"

    def __init__(self, hand_over: HandOver) -> None:
        self._hand_over = hand_over
        self._functions = _FunctionsHere()
        self._seq = 0

    async def run(self, context: JobContext) -> Result:
        """Calls the function that the job names."""
        try:
            args = read_args(context.args, "args")
        except InvalidInput as error:
            return Result(
                outcome="failed", failure="configuration", message=error.message, misfit=True
            )
        return await self.call(context, args.function, args.args, args.kwargs, self.task)

    async def call(
        self,
        context: JobContext,
        function: str,
        args: list[Any],
        kwargs: dict[str, Any],
        task: str = "",
    ) -> Result:
        """Calls a function whose path does not come from the job."""
        del task
        self._seq += 1
        call = Call(
            self._seq, context.job, context.attempt, context.workflow, function, args, kwargs,
            dict(context.secrets), version=context.version,
        )  # fmt: skip
        job = PythonJob(call, context, 0)
        channel = _Channel(job, asyncio.get_running_loop())
        copied = contextvars.copy_context()
        report = await self._hand_over(lambda: copied.run(_run, call, channel, self._functions))
        if isinstance(report, Done):
            return done_result(report)
        job.stopped = context.stopping.is_set()
        return failed_result(job, report)

    async def close(self) -> None:
        """Does nothing: there is nothing to release."""


class _FunctionsHere(Functions):
    """Finds functions of the main module where they are, instead of importing it again."""

    def look_up(self, path: str) -> FoundFunction:
        module, _, name = path.partition(":")
        if module == name_of_main():
            return find_in(sys.modules["__main__"], path, name)
        return super().look_up(path)


class _Channel:
    """Implements `Channel` between the program's thread and the agent's loop."""

    def __init__(self, job: PythonJob, loop: asyncio.AbstractEventLoop) -> None:
        self._job = job
        self._loop = loop

    def progress(self, seq: int, value: object) -> None:
        del seq
        self._loop.call_soon_threadsafe(self._job.context.progress, value)

    def alive(self, seq: int) -> None:
        del seq
        self._loop.call_soon_threadsafe(self._job.context.alive)

    def log(self, seq: int, text: str) -> None:
        del seq
        self._loop.call_soon_threadsafe(self._job.context.log, text.encode())

    def canceled(self, seq: int) -> bool:
        del seq
        return self._job.context.stopping.is_set()

    def ask(self, seq: int, body: bytes, what: str = JOBS) -> Answer:
        asked = self._job.answer(Ask(seq, 0, body, what))
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()

    async def ask_async(self, seq: int, body: bytes, what: str = JOBS) -> Answer:
        asked = self._job.answer(Ask(seq, 0, body, what))
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked, self._loop))


def _run(call: Call, channel: _Channel, functions: Functions) -> Done | Failed:
    """Runs a call on this thread and returns how it ended."""
    try:
        found = functions.find(call.function, call.version)
        job = Current(call.job, call.attempt, call.workflow, call.seq, channel, call.secrets)
        enter(job, alone=False)
        # As in another process: changes to its arguments stay with the function.
        own = msgspec.structs.replace(call, args=_copied(call.args), kwargs=_copied(call.kwargs))
        args, kwargs = found.arguments(own)
        value: Any = found.function(*args, **kwargs)
        if found.is_async:
            value = run_async(value)
        refuse_caught(job)
    except KeyboardInterrupt:
        raise  # it is meant for the program
    except BaseException as error:
        return raised(call, error)
    return ended(call, found, value)


def _copied(value: Any) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def run_async(call: Coroutine[Any, Any, object]) -> object:
    """Runs a coroutine in a loop of its own, in another thread if this one runs a loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(call)
    outcome: list[tuple[bool, Any]] = []
    copied = contextvars.copy_context()

    def work() -> None:
        try:
            outcome.append((True, copied.run(asyncio.run, call)))
        except BaseException as error:  # It is raised again where it is waited for.
            outcome.append((False, error))

    thread = threading.Thread(target=work, name="windlass-function")
    thread.start()
    thread.join()
    ((returned, value),) = outcome
    if returned:
        return value
    raise value
