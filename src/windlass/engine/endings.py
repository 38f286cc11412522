"""Whoever waits for jobs to end: told by this engine's commits, else by looking again."""

import asyncio
from collections.abc import Iterable

from windlass.domain.workflow import ENDED, WorkflowState
from windlass.ports.store import ReadTx, Store

POLL_SECONDS = 0.5  # other engines do not tell which jobs have ended
SLOW_POLL_SECONDS = 5.0  # they do, and word of it was lost


async def _has_ended(tx: ReadTx, job: int) -> bool | None:
    """Whether a job, or the workflow with minus this number, has; None: there is none."""
    if job < 0:
        row = (await tx.workflows.read([-job])).get(-job)
        return None if row is None else WorkflowState(row.state) in ENDED
    facts = (await tx.jobs.read([job])).get(job)
    return None if facts is None else bool(facts.state)


class Endings:
    """The jobs somebody waits for; workflows have minus their number here."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._poll = SLOW_POLL_SECONDS if store.inline else POLL_SECONDS
        self._waiting: dict[int, list[asyncio.Event]] = {}
        self._closed = False

    async def wait(self, job: int, timeout_ms: int) -> bool:
        """Wait until a job has ended; whether it has."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout_ms / 1000
        while True:
            ended = asyncio.Event()
            self._waiting.setdefault(job, []).append(ended)
            try:
                over = await self._store.read(lambda tx: _has_ended(tx, job))
                left = deadline - loop.time()
                if over is None or over or left <= 0 or self._closed:
                    return bool(over)
                most = min(left, self._poll) if self._store.shared else left
                timer = loop.call_later(most, ended.set)
                await ended.wait()
                timer.cancel()
            finally:
                self._forget(job, ended)

    def tell(self, jobs: Iterable[int]) -> None:
        """These jobs have ended."""
        if self._waiting:
            for job in jobs:
                for ended in self._waiting.get(job, ()):
                    ended.set()

    def look_again(self) -> None:
        """Any of them may have ended unheard."""
        self.tell(list(self._waiting))

    def close(self) -> None:
        """End all waits."""
        self._closed = True
        self.look_again()

    def _forget(self, job: int, ended: asyncio.Event) -> None:
        waiting = self._waiting[job]
        waiting.remove(ended)
        if not waiting:
            del self._waiting[job]
