"""The inbox loop: jobs that users submitted in transactions of their own."""

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.inbox.inbox import Inbox


class InboxReport(msgspec.Struct, frozen=True):
    """How many submissions one round moved."""

    moved: int


class InboxLoop:
    """Checks the inbox, even if the store announces nothing. Safe to run on every server at
    once.
    """

    name = "inbox"

    def __init__(self, engine: Engine, inbox: Inbox) -> None:
        self._engine = engine
        self._inbox = inbox
        self.interval_ms = engine.config.inbox_interval_ms

    async def run_once(self, now: int) -> InboxReport:
        """Runs one round."""
        moved = await self._inbox.move()
        self._engine.counters.ran(self.name, now)
        return InboxReport(moved)
