"""The processes that run the functions of one namespace, and of no other.

Plain functions have a pool of them, async ones share one process whose loop runs them all.
"""

import asyncio
from collections.abc import Callable, Collection
from itertools import chain
from typing import Final

from windlass.executors.python.job import STOPPED, PythonJob, died_result, done_result, lost
from windlass.executors.python.messages import Done, Expect, Log, Report, Stop
from windlass.executors.python.pool import Pool
from windlass.executors.python.process import Child, NotStarted, ProcessLauncher
from windlass.messages.files import StackThread

SHARED: Final = "its process had to be killed, because another job in it did not stop"

MAX_CREWS: Final = 4  # idle crews that are kept


class Loop:
    """Runs async functions, many at once."""

    def __init__(self, launcher: ProcessLauncher, grace_s: float) -> None:
        self._launcher = launcher
        self._grace_s = grace_s
        self._child: Child | None = None
        self._jobs: dict[int, PythonJob] = {}
        self._starting: asyncio.Task[None] | None = None
        self._burying: set[asyncio.Task[None]] = set()
        self._killed = False
        self._closed = False

    @property
    def busy(self) -> bool:
        return bool(self._jobs)

    def jobs(self) -> Collection[PythonJob]:
        """Returns the jobs that have not ended."""
        return self._jobs.values()

    def add(self, job: PythonJob) -> None:
        """Runs a call."""
        self._jobs[job.call.seq] = job
        if self._child is not None:
            self._child.send(job.call)
        else:
            self._begin()

    def expect(self) -> None:
        """Prepares for a call that may follow at once."""
        if self._child is not None:
            self._child.send(Expect())

    async def stack(self, job: PythonJob) -> list[StackThread] | None:
        """Returns the stack of a call; None if it does not run."""
        return None if self._child is None else await self._child.side.ask(job.call.seq)

    async def stop(self, job: PythonJob) -> None:
        """Cancels the call's task; if it continues anyway, ends its process."""
        job.stopped = True
        seq = job.call.seq
        if self._child is None:
            self._jobs.pop(seq, None)
            job.settle(STOPPED)
            return
        self._child.send(Stop(seq))
        await asyncio.wait((job.future,), timeout=self._grace_s)
        if seq in self._jobs and self._child is not None:
            self._killed = True
            await self._child.life.stop()

    async def close(self) -> None:
        """Ends the process."""
        self._closed = True
        if self._starting is not None:
            await asyncio.wait((self._starting,))
        if self._child is not None:
            await self._child.life.stop()
        if self._burying:
            await asyncio.wait(self._burying)

    # For its process

    def heard(self, child: Child, reports: list[Report]) -> None:
        jobs = self._jobs
        wrote: set[PythonJob] = set()
        for report in reports:
            if type(report) is Done:
                job = jobs.pop(report.seq, None)
                if job is not None:
                    job.settle(done_result(report))
                continue
            job = jobs.get(getattr(report, "seq", 0))
            if job is None:
                continue
            result = job.hear(report, child.send)
            if result is not None:
                del jobs[job.call.seq]
                job.settle(result)
            elif isinstance(report, Log):
                wrote.add(job)
        for job in wrote:
            if job.context.log_full(child.resume_reports):
                child.hold_reports()

    def wrote(self, child: Child, _seq: int, data: bytes) -> None:
        # Written directly to the descriptor: with several jobs, we cannot tell whose it is.
        if len(self._jobs) == 1:
            for job in self._jobs.values():
                job.context.log(data)
                if job.context.log_full(child.resume_output):
                    child.hold_output()

    def ended(self, child: Child) -> None:
        child.release()
        jobs, self._jobs = list(self._jobs.values()), {}
        killed, self._killed = self._killed, False
        self._child = None
        task = asyncio.get_running_loop().create_task(_bury(child, jobs, killed))
        self._burying.add(task)
        task.add_done_callback(self._burying.discard)

    # The process

    def _begin(self) -> None:
        if self._starting is None and not self._closed:
            self._starting = asyncio.get_running_loop().create_task(self._start())

    async def _start(self) -> None:
        try:
            child = await self._launcher.start("loop", self)
        except NotStarted as error:
            jobs, self._jobs = self._jobs, {}
            for job in jobs.values():
                job.settle(lost(error.message))
            return
        finally:
            self._starting = None
        self._child = child
        for job in self._jobs.values():
            child.send(job.call)


async def _bury(child: Child, jobs: list[PythonJob], killed: bool) -> None:
    end = await child.life.stop()
    died = lost(SHARED) if killed else died_result(end, alone=len(jobs) == 1)
    for job in jobs:
        job.settle(STOPPED if job.stopped else died)


class Crew:
    """Processes for plain functions and one for async ones, with a queue of their own."""

    def __init__(
        self,
        launcher: ProcessLauncher,
        slots: int,
        redirect: Callable[[PythonJob, bool], None],
        grace_s: float,
    ) -> None:
        self._launcher = launcher
        self.pool = Pool(launcher, slots, redirect)
        self.loop = Loop(launcher, grace_s)

    @property
    def busy(self) -> bool:
        return self.pool.busy or self.loop.busy

    def jobs(self) -> list[PythonJob]:
        """Returns the jobs that have not ended."""
        return [*self.pool.jobs(), *self.loop.jobs()]

    async def close(self) -> None:
        """Ends all its processes, and with them their calls."""
        try:
            await asyncio.gather(self.pool.close(), self.loop.close())
        finally:  # also when there is no time left for them
            self._launcher.close()


class Crews:
    """The crews of a worker's namespaces.

    One starts in advance, for the first namespace. Of the idle ones, only the most recently used
    are kept.
    """

    def __init__(self, make: Callable[[], Crew]) -> None:
        self._make = make
        self._spare: Crew | None = make()
        self._spare.pool.warm()
        self._crews: dict[str, Crew] = {}  # ordered by their last job
        self._closing: set[asyncio.Task[None]] = set()

    def __iter__(self) -> "chain[Crew]":
        return chain(self._crews.values(), () if self._spare is None else (self._spare,))

    @property
    def busy(self) -> bool:
        return any(crew.busy for crew in self._crews.values())

    def latest(self) -> Crew | None:
        """Returns the crew that had a job last, or the one started in advance."""
        return next(reversed(self._crews.values()), self._spare)

    def of(self, job: PythonJob) -> Crew | None:
        """Returns the crew of a job that was begun; None if that has ended since."""
        return self._crews.get(job.context.namespace)

    def take(self, namespace: str) -> Crew:
        """Returns the crew for a new job of this namespace."""
        crew = self._crews.pop(namespace, None)
        if crew is None:
            self._end_idle()
            crew, self._spare = self._spare or self._make(), None
        self._crews[namespace] = crew
        return crew

    async def close(self) -> None:
        """Ends all processes."""
        await asyncio.gather(*(crew.close() for crew in self), *self._closing)

    def _end_idle(self) -> None:
        """Makes room for one more crew."""
        idle = [name for name, crew in self._crews.items() if not crew.busy]
        for name in idle[: max(0, len(self._crews) - MAX_CREWS + 1)]:
            task = asyncio.get_running_loop().create_task(self._crews.pop(name).close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
