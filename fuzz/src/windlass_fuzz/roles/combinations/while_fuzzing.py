"""Examines what breaks a build while the engine still runs, so that a bug is filed in minutes.

Only failures that look new are examined; more inputs of the same ones wait for the end of the run.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.roles.findings_run import FindingsRun

EVERY_MS: Final = 2_000
MIN_ALLOWANCE_MS: Final = 5_000  # with less time, everything waits for the end of the run


@dataclass(slots=True)
class WhileFuzzing:
    """Triages the failing inputs of one campaign that are in the bucket, for at most `allowance_ms`
    of work.

    `handling` has a work folder of its own, and `file` files what was found.
    """

    handling: FindingsRun
    commit: str
    allowance_ms: int
    file: Callable[[], Awaitable[None]]
    found: list[Finding] = field(default_factory=list)
    spent_ms: int = 0
    _looked: set[str] = field(default_factory=set)

    async def run_until(self, stopped: asyncio.Event) -> None:
        """Looks at new inputs from time to time; ends after the pass that is under way."""
        clock = self.handling.pipeline.runtime.clock
        while not stopped.is_set() and self.allowance_ms - self.spent_ms >= MIN_ALLOWANCE_MS:
            await clock.sleep_ms(EVERY_MS)
            began = clock.now_ms()
            deadline = began + self.allowance_ms - self.spent_ms
            try:
                found = await self.handling.triage_commit(self.commit, deadline, self._looked)
                self.found += found
                if found:
                    await self.file()
            except WindlassError as error:
                self.handling.notify(f"could not triage while fuzzing: {error}")
            self.spent_ms += clock.now_ms() - began
