"""What an agent needs of a server, over HTTP or straight over an engine."""

from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from windlass.wire.jobs import SubmitReply, SubmitRequest
from windlass.wire.sync import SyncReply, SyncRequest
from windlass.wire.workers import EnrolReply, EnrolRequest


class Holder(NamedTuple):
    """Who writes: every write about an attempt carries it and is fenced by it."""

    worker: int
    incarnation: int
    job: int
    attempt: int


class Gateway(Protocol):
    """Raises `Unreachable` when nobody answered, `Conflict("lease_lost")` when fenced."""

    async def enrol(self, request: EnrolRequest) -> EnrolReply: ...

    async def sync(self, worker: int, request: SyncRequest) -> SyncReply: ...

    async def leave(self, worker: int, incarnation: int) -> None:
        """This incarnation has ended, and holds nothing any more."""
        ...

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        """Write log bytes at `offset`; where the next ones go. Writing twice is harmless."""
        ...

    async def end_log(
        self,
        holder: Holder,
        size: int,
        state: Literal["committed", "lost"],
        peak_memory: int = 0,
    ) -> None:
        """All is said; `peak_memory` are the bytes it took at most, if somebody measured."""
        ...

    async def progress(self, holder: Holder, value: Any) -> None: ...

    async def measured(self, holder: Holder, duration_ms: int) -> int:
        """The media is so long: how long the attempt may take from its start, 0: no limit."""
        ...

    async def put_artifact(
        self, holder: Holder, name: str, path: Path, sha256: str, content_type: str
    ) -> None: ...

    async def get_artifact(self, holder: Holder, job: int, name: str, path: Path) -> None:
        """Fetches an artifact that the holder's job declares as input or waits for."""
        ...

    async def submit(self, holder: Holder, request: SubmitRequest) -> SubmitReply:
        """Submit jobs into the workflow of the one that runs; its key makes it repeatable."""
        ...

    async def close(self) -> None: ...
