"""Says whether a server can do its work: its store and its blobs take what is written.

What users submitted in transactions of their own must also become jobs.
"""

import asyncio
from typing import Final, NamedTuple

from windlass.domain.values.errors import WindlassError
from windlass.engine.engine import Engine
from windlass.engine.inbox import INBOX_PATIENCE_MS, Inbox, late_inbox
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.blobs import Blobs

KEPT_SECONDS: Final = 1.0  # anyone may ask, so an answer serves for a while
PATIENCE_SECONDS: Final = 5.0
PROBED: Final = "probed_at"


class Problem(NamedTuple):
    """What keeps a server from its work: for everybody, and for callers it knows."""

    summary: str
    details: str  # may name paths and hosts


class Readiness:
    """Writes a little to the store and the blobs, as jobs would."""

    def __init__(self, engine: Engine, blobs: Blobs, inbox: Inbox) -> None:
        self._engine = engine
        self._blobs = blobs
        self._inbox = inbox
        self._turn = asyncio.Lock()
        self._known_until = 0.0
        self._problem: Problem | None = None

    async def problem(self) -> Problem | None:
        """Returns what keeps the server from its work, or None."""
        loop = asyncio.get_running_loop()
        async with self._turn:
            if loop.time() >= self._known_until:
                self._problem = await self._probe()
                self._known_until = loop.time() + KEPT_SECONDS
        return self._problem

    async def _probe(self) -> Problem | None:
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._engine.run(_write)
                await self._blobs.check()
                waited = await self._inbox.waiting_ms()
        except WindlassError as error:
            return _say(error)
        except TimeoutError:
            silent = f"the store did not answer within {PATIENCE_SECONDS:g} s"
            return Problem(silent, silent)
        if waited > INBOX_PATIENCE_MS:
            late = late_inbox(waited)
            return Problem(late, late)
        return None


async def _write(work: Work) -> None:
    await work.tx.catalog.set_meta(PROBED, work.now)


def _say(error: WindlassError) -> Problem:
    if error.code == "disk_full":
        return Problem("disk full", f"disk full: {error.message}")
    return Problem("the store or the blobs cannot be used", error.message)
