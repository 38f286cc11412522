"""Steps transactions one statement at a time, as a schedule says.

Only one statement is let go at a time; it ends, or the database says that it waits for a
lock of another transaction. Then it stays inside, and the schedule picks among the rest.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import asyncpg

from tests.interleaver.gate import Gate
from tests.interleaver.schedules import NAMES, Schedule

POLL_SECONDS = 0.003
STUCK_SECONDS = 60.0
ENDS = {"commit", "rollback", "submit_plain", "sync_plain"}  # locks are given up with them

WHO_WAITS = "SELECT pid FROM unnest($1::integer[]) pid WHERE cardinality(pg_blocking_pids(pid)) > 0"


class StuckError(Exception):
    """Nobody can take a step, and the database does not call it a deadlock."""


class Scheduler:
    """Runs until all gates are done; `trace` tells what happened, `steps` how much of it."""

    def __init__(
        self,
        gates: Sequence[Gate],
        processes: Sequence[int],
        monitor: "asyncpg.Connection[Any]",
        moved: asyncio.Event,
    ) -> None:
        self._gates = gates
        self._processes = processes
        self._monitor = monitor
        self._moved = moved
        self.trace: list[str] = []
        self.steps = [0] * len(gates)

    async def run(self, schedule: Schedule) -> None:
        """Give out turns until everyone is done."""
        while True:
            await self._come_to_rest()
            able = [n for n, gate in enumerate(self._gates) if gate.before]
            if able:
                await self._let_go(schedule.pick(able))
            elif all(gate.done for gate in self._gates):
                return
            else:
                await self._wait_for_the_database()

    async def _let_go(self, actor: int) -> None:
        gate = self._gates[actor]
        name = gate.open()
        self.steps[actor] += 1
        self.trace.append(f"{NAMES[actor]}:{name}")
        await self._come_to_rest()
        if gate.waits:
            self.trace[-1] += "(waits)"
        elif name in ENDS:
            # Row locks are held until then, so this is when others may go on.
            for other in self._gates:
                other.waits = False

    async def _come_to_rest(self) -> None:
        """Wait until everyone stands before a gate, waits for a lock, or is done."""
        while any(gate.moves and not gate.waits for gate in self._gates):
            self._moved.clear()
            try:
                async with asyncio.timeout(POLL_SECONDS):
                    await self._moved.wait()
            except TimeoutError:
                await self._see_who_waits()

    async def _see_who_waits(self) -> None:
        inside = [self._processes[n] for n, gate in enumerate(self._gates) if gate.inside]
        if not inside:
            return
        waiting = {row[0] for row in await self._monitor.fetch(WHO_WAITS, inside)}
        for process, gate in zip(self._processes, self._gates, strict=True):
            if gate.inside:
                gate.waits = process in waiting

    async def _wait_for_the_database(self) -> None:
        """All wait for each other: it ends one of them."""
        self._moved.clear()
        try:
            async with asyncio.timeout(STUCK_SECONDS):
                await self._moved.wait()
        except TimeoutError:
            raise StuckError("every transaction waits for another") from None
