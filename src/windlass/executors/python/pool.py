"""Plain functions: a bounded number of processes that take calls from one queue."""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from windlass.executors.python.job import STOPPED, PythonJob, died_result, done_result, lost
from windlass.executors.python.messages import (
    PACKET_LIMIT,
    Done,
    Expect,
    Last,
    Redirect,
    Report,
    Spilled,
    decode_packet,
    encode,
    send_file,
)
from windlass.executors.python.process import Child, NotStarted, ProcessLauncher
from windlass.messages.files import StackThread
from windlass.ports.loop_time import pass_time

# Calls in the queue beyond the running ones. It is refilled when half of them are gone: waking a
# process for each single call costs more than most short calls do.
WINDOW: Final = 256
LOW: Final = 128
EXPECT: Final = encode(Expect())
STOP_TRIES: Final = 250
STOP_PAUSE_S: Final = 0.02


class Pool:
    """Runs plain functions, each alone in a process that can be killed."""

    def __init__(
        self, launcher: ProcessLauncher, most: int, redirect: Callable[[PythonJob, bool], None]
    ) -> None:
        self._launcher = launcher
        self._most = most
        self._few = min(most, os.cpu_count() or 1)
        self._redirect = redirect
        self._children: list[Child] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._burying: set[asyncio.Task[None]] = set()
        self._waiting: deque[PythonJob] = deque()
        self._sent: dict[int, PythonJob] = {}  # in the queue or running, in the order of the queue
        self._moved = False  # a process has reported since `grow` last looked
        self._closed = False
        self._pumping = False  # at the end of this turn of the loop

    @property
    def busy(self) -> bool:
        return bool(self._waiting or self._sent)

    def jobs(self) -> Iterator[PythonJob]:
        """Returns the jobs that have not ended."""
        yield from self._sent.values()
        yield from self._waiting

    @property
    def processes(self) -> int:
        return len(self._children) + len(self._starting)

    def add(self, job: PythonJob) -> None:
        """Runs this call as soon as a process is free."""
        self._waiting.append(job)
        if self._sent:
            self._pump_soon()
        else:
            self._pump()
        if not self._children:
            self.warm()

    def expect(self) -> None:
        """Wakes a process for a call that may follow at once."""
        if self._children and not self._sent:
            try:
                self._launcher.calls.send(EXPECT)
            except BlockingIOError:
                pass  # Nobody reads messages now, this one least of all.

    def warm(self) -> None:
        """Starts the first processes."""
        while self.processes < self._few and not self._closed:
            self._begin()

    def grow(self) -> None:
        """Starts more processes, if calls wait too long or nothing moves, up to the limit."""
        moved, self._moved = self._moved, False
        if self._starting or self._closed:
            return
        running = {child.current for child in self._children}
        stalled = (
            job for seq, job in self._sent.items() if seq not in running and (job.old or not moved)
        )
        room = min(self._most - len(self._children), self._few)
        for _ in islice(stalled, max(0, room)):
            self._begin()

    async def stack(self, job: PythonJob) -> list[StackThread] | None:
        """Returns the stack of a call; None if no process runs it."""
        seq = job.call.seq
        child = next((child for child in self._children if child.current == seq), None)
        return None if child is None else await child.side.ask(seq)

    async def stop(self, job: PythonJob) -> None:
        """Takes a call back if it has not begun; otherwise ends its process."""
        job.stopped = True
        seq = job.call.seq
        for _ in range(STOP_TRIES):
            if self._take_back(job):
                job.settle(STOPPED)
            if seq not in self._sent:
                return
            child = next((child for child in self._children if child.current == seq), None)
            if child is not None and child.mark_stopped(seq):
                await child.life.stop()
            # Otherwise it has left the queue but not started, or its report is on its way.
            await pass_time(STOP_PAUSE_S)
        del self._sent[seq]
        job.settle(lost("no process has it"))

    async def close(self) -> None:
        """Ends all processes."""
        self._closed = True
        if self._starting:
            await asyncio.wait(self._starting)
        await asyncio.gather(*(child.life.stop() for child in list(self._children)))
        while self._burying:
            await asyncio.wait(self._burying)

    # For its processes

    def heard(self, child: Child, reports: list[Report]) -> None:
        sent = self._sent
        self._moved = True
        for report in reports:
            if type(report) is Done:
                job = sent.pop(report.seq, None)
                if job is not None:
                    job.settle(done_result(report))
            else:
                self._hear(report, child)
        if self._waiting and len(sent) <= LOW + len(self._children):
            self._pump()

    def _hear(self, report: Report, child: Child) -> None:
        job = self._sent.get(getattr(report, "seq", 0))
        if job is None:
            return
        if isinstance(report, Redirect):
            del self._sent[report.seq]
            self._redirect(job, report.alone)
        elif isinstance(report, Last):
            job.last = job.hear(report.end, child.send)
        elif (result := job.hear(report, child.send)) is not None:
            del self._sent[job.call.seq]
            job.settle(result)

    def wrote(self, child: Child, seq: int, data: bytes) -> None:
        job = self._sent.get(seq)
        if job is not None:
            job.context.log(data)
            if job.context.log_full(child.resume_output):
                child.hold_output()

    def ended(self, child: Child) -> None:
        task = asyncio.get_running_loop().create_task(self._bury(child))
        self._burying.add(task)
        task.add_done_callback(self._burying.discard)

    async def _bury(self, child: Child) -> None:
        end = await child.life.stop()
        seq = child.current
        child.release()
        self._children.remove(child)
        job = self._sent.pop(seq, None)
        if job is not None:
            died = STOPPED if job.stopped else died_result(end, alone=True)
            job.settle(job.last or died)
        if self.busy or (job is not None and job.last is not None):
            self.warm()

    # The queue

    def _pump_soon(self) -> None:
        """Sends calls added in one turn of the loop together, except for the first."""
        if not self._pumping:
            self._pumping = True
            asyncio.get_running_loop().call_soon(self._pump)

    def _pump(self) -> None:
        self._pumping = False
        window = WINDOW + len(self._children)
        waiting, sent, send = self._waiting, self._sent, self._launcher.calls.send
        while waiting and len(sent) < window:
            job = waiting.popleft()
            try:
                data = encode(job.call)
                if len(data) <= PACKET_LIMIT:
                    send(data)
                else:
                    send_file(self._launcher.calls, encode(Spilled(job.call.seq)), data)
            except BlockingIOError:
                waiting.appendleft(job)
                return
            sent[job.call.seq] = job

    def _take_back(self, job: PythonJob) -> bool:
        """Takes a call back; returns whether it had not begun."""
        if job in self._waiting:
            self._waiting.remove(job)
            return True
        found = self._recall()
        self._waiting.extendleft(other for other in reversed(found) if other is not job)
        if self._waiting:
            self._pump()
        return job in found

    def _recall(self) -> list[PythonJob]:
        """Removes every call from the queue that no process has taken."""
        found: list[PythonJob] = []
        while True:
            try:
                packet = self._launcher.taken.recv(PACKET_LIMIT, socket.MSG_DONTWAIT)
            except BlockingIOError:
                return found
            order = decode_packet(packet)
            job = None if isinstance(order, Expect) else self._sent.pop(order.seq, None)
            if job is not None:
                found.append(job)

    # Processes

    def _begin(self) -> None:
        task = asyncio.get_running_loop().create_task(self._start())
        self._starting.add(task)
        task.add_done_callback(self._starting.discard)

    async def _start(self) -> None:
        try:
            child = await self._launcher.start("queue", self)
        except NotStarted as error:
            if not self._children:
                self._give_up(error.message)
            return
        self._children.append(child)

    def _give_up(self, why: str) -> None:
        """Fails these calls, because no process can be started."""
        for job in (*self._recall(), *self._sent.values(), *self._waiting):
            job.settle(lost(why))
        self._sent.clear()
        self._waiting.clear()
