"""The processes that run the functions of one namespace, and of no other."""

import asyncio
from collections.abc import Callable
from itertools import chain
from typing import Final

from windlass.executors.python.job import Job
from windlass.executors.python.loop import Loop
from windlass.executors.python.pool import Pool
from windlass.executors.python.process import ProcessLauncher

MAX_CREWS: Final = 4  # idle crews that are kept


class Crew:
    """Processes for plain functions and one for async ones, with a queue of their own."""

    def __init__(
        self,
        launcher: ProcessLauncher,
        slots: int,
        redirect: Callable[[Job, bool], None],
        grace_s: float,
    ) -> None:
        self._launcher = launcher
        self.pool = Pool(launcher, slots, redirect)
        self.loop = Loop(launcher, grace_s)

    @property
    def busy(self) -> bool:
        return self.pool.busy or self.loop.busy

    def jobs(self) -> list[Job]:
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

    def of(self, job: Job) -> Crew | None:
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
