"""The files of one attempt: its scratch folder, and artifacts on their way in and out."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import structlog

from windlass.domain.matching.isolation import WEAKEST, Isolation
from windlass.domain.values.errors import Overloaded, StoreUnavailable
from windlass.ports.gateway import Holder
from windlass.worker.attempt import artifacts
from windlass.worker.attempt.context import AgentContext
from windlass.worker.attempt.find_files import find_files

PAUSES_MS: Final = (1_000, 2_000, 4_000, 8_000)  # between tries to upload a file

log = structlog.get_logger()


class Files:
    """Takes a scratch folder when one is first needed; `mode` is how the attempt is isolated."""

    __slots__ = ("_context", "_dirty", "_folder", "_holder", "_scratch")

    def __init__(self, context: AgentContext, holder: Holder, mode: Isolation = WEAKEST) -> None:
        self._context = context
        self._scratch = context.isolation.scratch.get(mode, context.scratch)
        self._holder = holder
        self._folder: Path | None = None
        self._dirty = False

    def folder(self) -> Path:
        """Returns the scratch folder, which need not exist yet."""
        if self._folder is None:
            self._folder = self._scratch.take()
        return self._folder

    def made_folder(self) -> Path:
        """Returns the scratch folder after making it."""
        path = self.folder()
        path.mkdir(mode=0o700, exist_ok=True)
        self._dirty = True
        return path

    def give_back(self, dirty: bool) -> None:
        """Lets go of the folder; `dirty`: processes left files in it."""
        if self._folder is not None:
            self._scratch.give_back(self._folder, dirty or self._dirty)
            self._folder = None

    async def fetch(self, job: int, artifact: str, path: str) -> None:
        """Places an artifact of another job at `path` in the scratch folder."""
        gateway = self._context.gateway
        await artifacts.place(gateway, self._holder, job, artifact, self.made_folder(), path)

    async def upload(self, patterns: Sequence[str], missing: Callable[[str], None]) -> None:
        """Uploads the files that match; calls `missing` with patterns that match none."""
        for pattern in patterns:
            found = await find_files(self.folder(), pattern, self._context.clock)
            if not found:
                missing(pattern)
            for name, path in found:
                await self._send(name, path)

    async def _send(self, name: str, path: Path) -> None:
        """Uploads a file; tries for a while if the server cannot take it, to save the work."""
        context = self._context
        for pause_ms in PAUSES_MS:
            try:
                await artifacts.send(context.gateway, self._holder, name, path, context.clock)
                return
            except (StoreUnavailable, Overloaded) as error:
                job = self._holder.job
                log.warning("upload_failed", job=job, artifact=name, error=error.message)
            await context.clock.sleep_ms(pause_ms)
        await artifacts.send(context.gateway, self._holder, name, path, context.clock)
