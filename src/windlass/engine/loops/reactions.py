"""The loops for reactions to ends of workflows: follow-ups and retries, and webhooks.

Webhooks have their own loop, so that slow receivers delay nothing else.
"""

import asyncio
from typing import Final

import msgspec

from windlass.engine.engine import Engine
from windlass.engine.schedules.reactions import Reactions

AT_ONCE: Final = 20  # webhooks sent at the same time


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
        sent = await asyncio.gather(*map(self._reactions.send, rows), return_exceptions=True)
        for outcome in sent:
            if isinstance(outcome, BaseException):
                raise outcome
        self._engine.counters.ran(self.name, now)
        return ReactionsReport(sum(outcome is not None for outcome in sent))
