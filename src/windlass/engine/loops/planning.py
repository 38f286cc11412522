"""The loops that submit jobs: schedules, reactions to ends of workflows, and the inbox.

Webhooks have a loop of their own, so that slow receivers delay nothing else.
"""

from typing import Final

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.inbox import Inbox
from windlass.engine.schedules.reactions import Reactions
from windlass.engine.schedules.runs import Runs
from windlass.ports.loop_time import all_of

MIN_PAUSE_MS: Final = 20  # between two rounds, also while a due slot cannot be recorded
AT_ONCE: Final = 20  # webhooks sent at the same time


class CronReport(msgspec.Struct, frozen=True):
    """What one round did."""

    slots: int
    started: int


class CronLoop:
    """Runs schedules. Safe on every server at once: each slot has one row and one start."""

    name = "cron"

    def __init__(self, engine: Engine, runs: Runs) -> None:
        self._engine = engine
        self._runs = runs
        self.interval_ms = engine.config.cron_interval_ms  # less if a slot comes earlier

    async def run_once(self, now: int) -> CronReport:
        """Runs one round; the times are the store's."""
        chunk = self._engine.config.chunk_rows
        self.interval_ms = self._engine.config.cron_interval_ms
        slots = started = 0
        for schedule in await self._runs.due(chunk):
            slots += await self._runs.note_slots(schedule)
        after = 0
        while waiting := await self._runs.waiting(after, chunk):
            for schedule in waiting:
                started += await self._runs.advance(schedule)
            after = waiting[-1]
        until_next = await self._runs.until_next()
        if until_next is not None:
            self.interval_ms = min(self.interval_ms, max(MIN_PAUSE_MS, until_next))
        self._engine.counters.ran(self.name, now)
        return CronReport(slots, started)


class ReactionsReport(msgspec.Struct, frozen=True):
    """How many reactions one round carried out or tried."""

    tried: int


class ReactionsLoop:
    """Submits follow-ups and retries. Safe to run on every server at once."""

    name = "reactions"

    def __init__(self, engine: Engine, reactions: Reactions) -> None:
        self._engine = engine
        self._reactions = reactions
        self.interval_ms = engine.config.reactions_interval_ms

    async def run_once(self, now: int) -> ReactionsReport:
        """Runs one round."""
        tried = 0
        for row in await self._reactions.due(False, self._engine.config.chunk_rows):
            await self._reactions.carry_out(row)
            tried += 1
        self._engine.counters.ran(self.name, now)
        return ReactionsReport(tried)


class WebhooksLoop:
    """Sends webhooks. Safe to run on every server at once."""

    name = "webhooks"

    def __init__(self, engine: Engine, reactions: Reactions) -> None:
        self._engine = engine
        self._reactions = reactions
        self.interval_ms = engine.config.reactions_interval_ms

    async def run_once(self, now: int) -> ReactionsReport:
        """Runs one round, which ends when the slowest receiver has answered or timed out."""
        rows = await self._reactions.due(True, AT_ONCE)
        sent = await all_of(map(self._reactions.send, rows))
        self._engine.counters.ran(self.name, now)
        return ReactionsReport(sum(outcome is not None for outcome in sent))


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
