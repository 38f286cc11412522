"""Measures how long tasks hold the event loop: everybody else waits for that long.

Every step of every task is timed, from where it goes on to where it waits again, in processor time:
on a busy machine, the clock on the wall also counts the others. But to read the processor time
takes twelve times as long as to look at the wall, so it is read only for steps that are long there,
and as a beginning at most once in `MIN_HOLD_S`. Callbacks that are no tasks only move bytes and
wake tasks, and are not timed.
"""

import asyncio
from collections.abc import Coroutine, Iterator
from typing import Any, Final

import structlog
from prometheus_client.metrics_core import Metric as Family

from windlass.clock import thread_seconds, wall_seconds
from windlass.ports.loop_time import DOING, STEP
from windlass.server.metrics.catalogue import OTHER
from windlass.server.metrics.series import Count, gauge

MAX_HOLD_S: Final = 0.1  # of one step; longer ones are counted and logged
MIN_HOLD_S: Final = 0.001  # shorter steps are not noted; longer ones are known to this much
QUIET_SECONDS: Final = 30.0  # between two lines of the log about the same work

log = structlog.get_logger("windlass.server")


class Holds:
    """The longest steps of this server, by what it worked on: `METHOD path` or `loop name`."""

    def __init__(self) -> None:
        self.longest: dict[str, float] = {OTHER: 0.0}
        self._count = Count("windlass_event_loop_holds_total", (OTHER,))
        self._quiet_until: dict[str, float] = {}
        self.began = 0.0  # when the step that runs now began, by the clock on the wall
        self._read_at = 0.0  # when the processor time was read last, and what it was
        self._read = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Times all tasks that are started on this loop from now on."""

        def start(
            loop: asyncio.AbstractEventLoop, work: Any, /, **options: Any
        ) -> "asyncio.Task[Any]":
            return asyncio.Task(_Timed(work, self), loop=loop, **options)

        loop.set_task_factory(start)
        self._loop = loop
        STEP.taken = self._taken

    def begin(self) -> None:
        """Notes that a step begins."""
        self.began = now = wall_seconds()
        if now - self._read_at > MIN_HOLD_S:
            self._read_at, self._read = now, thread_seconds()

    def end(self) -> None:
        """Notes how long the step that just ended took, if it was long."""
        if wall_seconds() - self.began >= MIN_HOLD_S:
            seconds = thread_seconds() - self._read
            if seconds >= MIN_HOLD_S:
                self._note(seconds)

    def _note(self, seconds: float) -> None:
        work = DOING.get()
        if seconds > self.longest.get(work, 0.0):
            self.longest[work] = seconds
            self._count.add((work,), 0)
        if seconds <= MAX_HOLD_S:
            return
        self._count.add((work,))
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until.get(work, 0.0):
            self._quiet_until[work] = now + QUIET_SECONDS
            log.warning(
                "held the event loop", work=work, seconds=round(seconds, 3), limit=MAX_HOLD_S
            )

    def _taken(self) -> float:
        """Returns 0 in short steps, and on other loops: nothing in a simulator may depend on real
        time.
        """
        if wall_seconds() - self.began < MIN_HOLD_S:
            return 0.0
        if asyncio.get_running_loop() is not self._loop:
            return 0.0
        return thread_seconds() - self._read

    def families(self) -> Iterator[Family]:
        """Returns everything that was measured."""
        yield self._count.family()
        yield gauge(
            "windlass_event_loop_longest_hold_seconds",
            {(work,): seconds for work, seconds in self.longest.items()},
        )


class _Timed(Coroutine[Any, Any, Any]):
    """A coroutine whose steps are timed."""

    __slots__ = ("_holds", "_send", "_work")

    def __init__(self, work: Coroutine[Any, Any, Any], holds: Holds) -> None:
        self._work = work
        self._send = work.send
        self._holds = holds

    def send(self, value: Any) -> Any:
        """Runs one step."""
        self._holds.begin()
        try:
            return self._send(value)
        finally:
            self._holds.end()

    def throw(self, *error: Any) -> Any:
        """Runs one step that begins with an error."""
        return self._work.throw(*error)

    def close(self) -> None:
        """Ends it."""
        self._work.close()

    def __await__(self) -> Any:
        return self._work.__await__()

    def __getattr__(self, name: str) -> Any:
        """Shows those who look where a task is the real coroutine."""
        return getattr(self._work, name)
