"""Examines what breaks a build while the engine still runs, so that a bug is filed in minutes.

Only failures that look new are examined; more inputs of the same ones wait for the end of the run.
"""

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.builds.build_cache import LocalBuild
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.roles.engine_factory import fresh_folder
from windlass_fuzz.roles.findings_run import Examined, FindingsRun

EVERY_MS: Final = 2_000
MIN_ALLOWANCE_MS: Final = 5_000  # with less time, everything waits for the end of the run


@dataclass(slots=True)
class WhileFuzzing:
    """Watches the failing inputs of one campaign, for at most `allowance_ms` of work.

    `handling` has a work folder of its own, and `file` files what was found. Inputs that are `done`
    need no other triage.
    """

    handling: FindingsRun
    build: LocalBuild
    commit: str
    crashes: Path
    allowance_ms: int
    file: Callable[[], Awaitable[None]]
    works: bool = True
    found: list[Finding] = field(default_factory=list)
    reopened: list[str] = field(default_factory=list)
    done: list[Path] = field(default_factory=list)
    spent_ms: int = 0
    _sizes: dict[Path, int] = field(default_factory=dict)
    _looked: set[Path] = field(default_factory=set)
    _titles: set[str] = field(default_factory=set)
    _seen: Examined | None = None

    async def run_until(self, stopped: asyncio.Event) -> None:
        """Looks at new inputs from time to time; ends after the pass that is under way."""
        clock = self.handling.pipeline.runtime.clock
        while not stopped.is_set():
            await clock.sleep_ms(EVERY_MS)
            try:
                await self.run_once()
            except WindlassError as error:
                self.handling.notify(f"could not triage while fuzzing: {error}")

    async def run_once(self) -> list[Finding]:
        """Examines the inputs that show something new, and files what they show."""
        if self.allowance_ms - self.spent_ms < MIN_ALLOWANCE_MS:
            return []
        began = self.handling.pipeline.now_ms()
        fresh = await self._fresh_inputs()
        found = await self._examine(fresh, began) if fresh else []
        self.spent_ms += self.handling.pipeline.now_ms() - began
        if found:
            self.found += found
            await self.file()
        return found

    async def _examine(self, fresh: list[Path], began_ms: int) -> list[Finding]:
        batch = fresh_folder(self.handling.work / "crashes")
        for path in fresh:
            shutil.copy2(path, batch / path.name)
        deadline = began_ms + self.allowance_ms - self.spent_ms
        if self._seen is None:
            seen = await self.handling.examine(self.commit, self.build, batch, deadline, self.works)
            self._seen, found, left = seen, seen.found, seen.left
            self.reopened += seen.reopened
        else:
            found, left = await self.handling.triage_more(
                self._seen, self.commit, self.build, batch, deadline
            )
        waiting = {path.name for path in left}
        self.done += [path for path in fresh if path.name not in waiting]
        return found

    async def _fresh_inputs(self) -> list[Path]:
        """Returns inputs of failures that no earlier one showed.

        A file that has just grown may still be written: its turn comes later.
        """
        judge = self.handling.factory.judge(self.build.folder)
        fresh = []
        for path in sorted(self.crashes.iterdir()):
            if path in self._looked or not path.is_file():
                continue
            before, self._sizes[path] = self._sizes.get(path), path.stat().st_size
            if before != self._sizes[path]:
                continue
            self._looked.add(path)
            signature = (await judge.look(path)).signature
            if signature is not None and signature.title not in self._titles:
                self._titles.add(signature.title)
                fresh.append(path)
        return fresh
