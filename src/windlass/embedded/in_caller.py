"""Python functions in the program that submitted them, on a thread that waits for its jobs.

For tests and debugging: the function runs where a debugger can stop it and sees patched modules. It
cannot be killed. Everything else about the job is as usual.
"""

import asyncio
import contextvars
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import msgspec

from windlass.domain.tasks.python import name_of_main, read_args
from windlass.domain.values.errors import InvalidInput
from windlass.executors.python.functions import FoundFunction, Functions, ended, find_in, raised
from windlass.executors.python.job import Job, done_result, failed_result
from windlass.executors.python.messages import Answer, Ask, Call, Done, Failed
from windlass.ports.executor import JobContext, Result
from windlass.tasks.current import JOBS, Current, enter
from windlass.tasks.steps import refuse_caught

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
        job = Job(call, context, 0)
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

    def __init__(self, job: Job, loop: asyncio.AbstractEventLoop) -> None:
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
        asked = answer_to(self._job, Ask(seq, 0, body, what))
        return asyncio.run_coroutine_threadsafe(asked, self._loop).result()

    async def ask_async(self, seq: int, body: bytes, what: str = JOBS) -> Answer:
        asked = answer_to(self._job, Ask(seq, 0, body, what))
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asked, self._loop))


async def answer_to(job: Job, ask: Ask) -> Answer:
    """Returns what the server answers to a question of a function that runs in this process."""
    heard = _Heard()
    await job.answer(ask, heard)
    assert heard.answer is not None
    return heard.answer


class _Heard:
    """Takes the answer to one question."""

    answer: Answer | None = None

    def send(self, order: object, /) -> None:
        assert isinstance(order, Answer)
        self.answer = order


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
