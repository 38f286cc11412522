"""Waiting syncs: k jobs that become ready wake at most k workers that can run them.

A waiter is registered before its claim is tried, so a job that arrives in between is not missed. A
wake-up that its waiter did not need is passed on.
"""

import asyncio
from collections.abc import Iterable

from windlass.engine.transaction.catalog import Profile


class Waiter:
    """One open sync of one worker."""

    __slots__ = ("_late", "_woken", "ended", "profile", "refused", "shape", "want", "worker")

    def __init__(self, worker: int, profile: Profile, want: int) -> None:
        self.worker = worker
        self.profile = profile
        self.want = want
        self.shape: int | None = None  # the shape it was last woken for
        self.ended = False  # a newer sync of this worker replaced it
        self.refused: set[int] = set()  # shapes it had no room for when it looked
        self._woken: asyncio.Event = asyncio.Event()
        self._late = False

    def wake(self, shape: int | None = None) -> None:
        """Makes the waiter look again."""
        self.shape = shape
        self._woken.set()

    @property
    def woken(self) -> bool:
        """Returns True if it was woken and has not slept since."""
        return self._woken.is_set()

    async def sleep(self, deadline: float) -> bool:
        """Sleeps until woken or until `deadline` on the loop's clock; returns whether it was
        woken.
        """
        self._late = False
        if not self._woken.is_set():
            timer = asyncio.get_running_loop().call_at(deadline, self._expire)
            try:
                await self._woken.wait()
            finally:
                timer.cancel()
        self._woken.clear()
        return not self._late

    def _expire(self) -> None:
        # An earlier wake-up is not lost, however late it is noticed.
        self._late = not self._woken.is_set()
        self._woken.set()


class WaitingSyncs:
    """The open syncs of this engine, oldest first."""

    def __init__(self) -> None:
        # shape → syncs woken before their jobs were committed
        self._woken_early: dict[int, int] = {}
        self._seeking: dict[str, dict[Waiter, None]] = {}  # by profile digest, in order
        self._by_worker: dict[int, Waiter] = {}

    def __len__(self) -> int:
        return len(self._by_worker)

    def any_woken(self) -> bool:
        """Returns whether a sync has been woken and has not looked yet."""
        return any(waiter.woken for waiter in self._by_worker.values())

    def open(self, waiter: Waiter) -> None:
        """Adds a sync; an older one of the same worker ends."""
        self.end(waiter.worker)
        self._by_worker[waiter.worker] = waiter
        if waiter.want > 0:
            self._seeking.setdefault(waiter.profile.digest, {})[waiter] = None

    def end(self, worker: int) -> None:
        """Ends the open sync of a worker, for example because it sent a newer one."""
        older = self._by_worker.get(worker)
        if older is not None:
            older.ended = True
            self.close(older)
            older.wake()

    def close(self, waiter: Waiter) -> None:
        """Closes an answered sync; an unused wake-up goes to another."""
        if self._by_worker.get(waiter.worker) is waiter:
            del self._by_worker[waiter.worker]
        alike = self._seeking.get(waiter.profile.digest)
        if alike is not None:
            alike.pop(waiter, None)
            if not alike:
                del self._seeking[waiter.profile.digest]
        if waiter.woken and waiter.shape is not None:
            self.wake_for(waiter.shape, 1)

    def wake_early(self, shape: int, jobs: int) -> None:
        """Wakes syncs for jobs that are about to be written, so that they share the commit."""
        woken = self.wake_for(shape, jobs)
        self._woken_early[shape] = self._woken_early.get(shape, 0) + woken

    def wake_for_committed(self, shape: int, jobs: int) -> None:
        """Wakes syncs for committed jobs, minus those that were woken early."""
        self.wake_for(shape, jobs - self._woken_early.pop(shape, 0))

    def forget_woken_early(self) -> None:
        """Forgets the early wake-ups: the jobs were not written."""
        self._woken_early.clear()

    def wake_for(self, shape: int, jobs: int) -> int:
        """Wakes at most `jobs` waiters that can run this shape and were not woken yet.

        Returns how many were woken.
        """
        woken = 0
        for alike in self._groups(shape):
            for waiter in alike:
                if woken >= jobs:
                    return woken
                if not waiter.woken and shape not in waiter.refused:
                    waiter.wake(shape)
                    woken += 1
        return woken

    def _groups(self, shape: int) -> list[dict[Waiter, None]]:
        """Returns groups of equal waiters that can run a shape, preferred ones first."""
        if not self._seeking:
            return []
        found: list[tuple[Profile, dict[Waiter, None]]] = []
        for alike in self._seeking.values():
            if alike:
                profile = next(iter(alike)).profile
                if profile.runs(shape):
                    found.append((profile, alike))
        if len(found) > 1:
            found.sort(key=lambda group: group[0].liking(shape))
        return [alike for _, alike in found]

    def refuse(self, worker: int, shape: int) -> None:
        """Notes that a worker has no room for a shape, and wakes another if it was woken for it."""
        waiter = self._by_worker.get(worker)
        if waiter is None or shape in waiter.refused:
            return
        waiter.refused.add(shape)
        if waiter.shape == shape:
            waiter.shape = None
            self.wake_for(shape, 1)

    def decline(self, worker: int) -> None:
        """Notes that a worker takes no job for now, and wakes another if it was woken for one."""
        waiter = self._by_worker.get(worker)
        if waiter is not None and waiter.shape is not None:
            self.refuse(worker, waiter.shape)

    def forget_refusals(self) -> None:
        """Makes every worker eligible again: what it holds may have changed."""
        for waiter in self._by_worker.values():
            waiter.refused.clear()

    def wake(self, workers: Iterable[int]) -> None:
        """Wakes the syncs of these workers: there is a message for them."""
        for worker in workers:
            waiter = self._by_worker.get(worker)
            if waiter is not None:
                waiter.refused.clear()
                waiter.wake()

    def wake_all(self) -> None:
        """Wakes every sync."""
        for waiter in list(self._by_worker.values()):
            waiter.wake()
