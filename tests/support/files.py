"""Logs, progress and artifacts in memory: what an agent needs beside an engine."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any, Literal

from windlass.domain.values.errors import NotFound
from windlass.messages.files import StackReport
from windlass.ports.gateway import Holder


class MemoryFiles:
    """Keeps everything it is given; tests wait for what they expect."""

    def __init__(self) -> None:
        self.logs: dict[tuple[int, int], bytearray] = {}
        self.ends: dict[tuple[int, int], tuple[int, str]] = {}
        self.artifacts: dict[tuple[int, str], bytes] = {}
        self.told: list[tuple[int, Any]] = []
        self.bytes = 0
        self.peaks: dict[int, int] = {}
        self.stacks: list[StackReport] = []
        self._changed = asyncio.Condition()

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        async with self._changed:
            log = self.logs.setdefault((holder.job, holder.attempt), bytearray())
            assert offset <= len(log), "a gap in a log"
            log[offset:] = data
            self.bytes += len(data)
            self._changed.notify_all()
            return len(log)

    async def end_log(
        self,
        holder: Holder,
        size: int,
        state: Literal["committed", "lost"],
        peak_memory: int = 0,
    ) -> None:
        async with self._changed:
            self.ends[holder.job, holder.attempt] = (size, state)
            self.peaks[holder.job] = peak_memory
            self._changed.notify_all()

    async def progress(self, holder: Holder, value: Any) -> None:
        async with self._changed:
            self.told.append((holder.job, value))
            self._changed.notify_all()

    async def measured(self, holder: Holder, duration_ms: int) -> int:
        return 2 * duration_ms

    async def put_artifact(
        self, holder: Holder, name: str, path: Path, sha256: str, content_type: str
    ) -> None:
        data = path.read_bytes()  # noqa: ASYNC240 - a test's small file
        assert hashlib.sha256(data).hexdigest() == sha256
        self.artifacts[holder.job, name] = data

    async def get_artifact(self, holder: Holder, job: int, name: str, path: Path) -> None:
        data = self.artifacts.get((job, name))
        if data is None:
            raise NotFound("artifact", name)
        path.write_bytes(data)  # noqa: ASYNC240 - a test's small file

    async def stack(self, holder: Holder, report: StackReport) -> None:
        self.stacks.append(report)

    async def log_line(self, job: int, attempt: int = 1, lines: int = 1) -> list[str]:
        """The lines of a log, once there are so many."""
        log = self.logs.setdefault((job, attempt), bytearray())
        async with self._changed:
            await self._changed.wait_for(lambda: log.count(b"\n") >= lines)
        return log.decode().splitlines()

    async def log_end(self, job: int, attempt: int = 1) -> bytes:
        """The whole log, once it has ended."""
        async with self._changed:
            await self._changed.wait_for(lambda: (job, attempt) in self.ends)
        return bytes(self.logs.get((job, attempt), b""))
