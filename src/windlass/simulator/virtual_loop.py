"""An event loop with virtual time: instead of waiting, it advances the time.

It has no selector, no signals and no threads. Callbacks run first in, first out; those planned for
the same time run in an order that depends only on the program. A simulated process can be stopped:
its callbacks wait until it continues.
"""

import asyncio
from collections.abc import Callable
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar

# The process that a task belongs to, so that a crash can end all of its tasks.
OWNER: ContextVar[object] = ContextVar("owner", default=None)


T = TypeVar("T")

MAX_TURNS = 100_000  # callbacks at one time; more is a livelock


class IdleLoopError(Exception):
    """Everything waits, and no planned callback can end that: a deadlock."""


class BusyLoopError(Exception):
    """The program runs, but time does not pass: a livelock."""


class SimulatedProcess:
    """An owner of callbacks. It can be stopped (SIGSTOP), continued, and killed."""

    def __init__(self) -> None:
        self.paused = False
        self.dead = False
        self._backlog: list[_Step] = []

    def resume(self) -> None:
        """Continues, and runs the callbacks that became due meanwhile."""
        self.paused = False
        backlog, self._backlog = self._backlog, []
        for step in backlog:
            step.schedule_again()

    def hold(self, step: "_Step") -> None:
        """Keeps a callback until the process continues."""
        self._backlog.append(step)


class _Step:
    """A callback of a process: it waits while the process is stopped, and a timer dies with it."""

    __slots__ = ("_args", "_callback", "_context", "_loop", "_owner", "_timer", "handle")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, owner: SimulatedProcess, timer: bool,
        callback: Callable[..., object], args: tuple[Any, ...], context: Context,
    ) -> None:  # fmt: skip
        self._loop = loop
        self._owner = owner
        self._timer = timer
        self._callback = callback
        self._args = args
        self._context = context
        self.handle: asyncio.Handle | None = None

    def run(self) -> None:
        if self._owner.paused:
            self._owner.hold(self)
        elif not (self._timer and self._owner.dead):
            self._callback(*self._args)

    def schedule_again(self) -> None:
        if self.handle is None or not self.handle.cancelled():
            self._loop.call_soon(self._callback, *self._args, context=self._context)


class _Timeline:
    """Replaces the selector."""

    def __init__(self) -> None:
        self.now = 0.0
        self._turns = 0  # since time last passed

    def select(self, timeout: float | None) -> list[object]:
        """Advances the time by `timeout` seconds at once."""
        if timeout is None:
            raise IdleLoopError("expected something to be planned, the simulation is stuck")
        if timeout > 0:
            self.now += timeout
            self._turns = 0
        self._turns += 1
        if self._turns > MAX_TURNS:
            raise BusyLoopError(f"expected time to pass, got {MAX_TURNS} turns in one moment")
        return []


class VirtualLoop(asyncio.BaseEventLoop):
    """The loop; `watch` sees every task that ends."""

    def __init__(self, watch: Callable[["asyncio.Task[Any]"], None]) -> None:
        super().__init__()
        self._selector = _Timeline()
        # The real clock's nanosecond is lost in a float after some weeks of virtual time:
        # what is due then would never come before the end of its moment.
        self._clock_resolution = 1e-6
        self._watch = watch
        self._open: dict[asyncio.Task[Any], object] = {}  # task → its owner
        self.set_task_factory(self._make_task)

    def time(self) -> float:
        """Seconds since the simulation began."""
        return self._selector.now

    def call_soon(  # type: ignore[override]
        self, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        """Calls it now, or when its process continues."""
        context = copy_context() if context is None else context
        owner = context.get(OWNER)
        if not isinstance(owner, SimulatedProcess):
            return super().call_soon(callback, *args, context=context)
        step = _Step(self, owner, False, callback, args, context)
        step.handle = super().call_soon(step.run, context=context)
        return step.handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:  # fmt: skip
        """Calls it at that time, or when its process continues; never if the process was killed."""
        context = copy_context() if context is None else context
        owner = context.get(OWNER)
        if not isinstance(owner, SimulatedProcess):
            return super().call_at(when, callback, *args, context=context)
        step = _Step(self, owner, True, callback, args, context)
        handle = super().call_at(when, step.run, context=context)
        step.handle = handle
        return handle

    def run_in_executor(  # type: ignore[override]
        self,
        executor: object,  # noqa: ARG002
        func: Callable[..., T],
        *args: Any,
    ) -> asyncio.Future[T]:
        """Calls it at once, since the end of a thread would not depend on the seed."""
        called: asyncio.Future[T] = self.create_future()
        try:
            called.set_result(func(*args))
        except Exception as error:
            called.set_exception(error)
        return called

    def open_tasks(self) -> list["asyncio.Task[Any]"]:
        """Returns unfinished tasks, oldest first."""
        return list(self._open)

    def tasks_of(self, owner: object) -> list["asyncio.Task[Any]"]:
        """Returns one owner's unfinished tasks, oldest first."""
        return [task for task, whose in self._open.items() if whose is owner]

    def _make_task(
        self, loop: asyncio.AbstractEventLoop, coroutine: Any, **options: Any
    ) -> "asyncio.Task[Any]":
        task: asyncio.Task[Any] = asyncio.Task(coroutine, loop=loop, **options)
        self._open[task] = OWNER.get()
        task.add_done_callback(self._end_task)
        return task

    def _end_task(self, task: "asyncio.Task[Any]") -> None:
        self._open.pop(task, None)
        self._watch(task)

    def _do_nothing(self, *_: object) -> None:
        """Does nothing: no outside event needs to wake the loop."""

    _process_events = _do_nothing
    _write_to_self = _do_nothing
