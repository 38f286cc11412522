"""What a worker needs of a server, over HTTP or straight over an engine."""

from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from windlass.messages.files import StackReport
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import EnrolReply, EnrolRequest, SyncReply, SyncRequest


class Holder(NamedTuple):
    """Names the attempt that writes; the server refuses it once the lease is lost."""

    worker: int
    incarnation: int
    job: int
    attempt: int


class AgentGateway(Protocol):
    """The calls of an agent. Raises `Unreachable` when nobody answered."""

    async def enrol(self, request: EnrolRequest) -> EnrolReply: ...

    async def sync(self, worker: int, request: SyncRequest) -> SyncReply: ...

    async def leave(self, worker: int, incarnation: int) -> None:
        """Says that this incarnation has ended and holds nothing any more."""


class FileGateway(Protocol):
    """Where the log, the progress, the files and the stack of an attempt go.

    Raises `Unreachable` when nobody answered, `Conflict("lease_lost")` when fenced.
    """

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        """Writes log bytes at `offset` and returns where the next ones go; may be repeated."""

    async def end_log(
        self,
        holder: Holder,
        size: int,
        state: Literal["committed", "lost"],
        peak_memory: int = 0,
    ) -> None:
        """Ends the log; `peak_memory` is the most bytes the attempt used, 0 if unknown."""

    async def progress(self, holder: Holder, value: Any) -> None: ...

    async def measured(self, holder: Holder, duration_ms: int) -> int | None:
        """Reports how long the media is; returns the timeout that follows, 0: no limit."""

    async def put_artifact(
        self, holder: Holder, name: str, path: Path, sha256: str, content_type: str
    ) -> None: ...

    async def get_artifact(self, holder: Holder, job: int, name: str, path: Path) -> None:
        """Fetches an artifact that the holder's job declares as input or waits for."""

    async def stack(self, holder: Holder, report: StackReport) -> None:
        """Says where the function of the attempt is, because somebody asked."""


class AttemptGateway(FileGateway, Protocol):
    """The calls about one attempt; raises the same errors."""

    async def submit(self, holder: Holder, request: SubmitRequest) -> SubmitReply:
        """Submits jobs into the workflow of the running one; its key makes it repeatable."""

    async def step(self, holder: Holder, request: StepRequest) -> StepReply:
        """Stores a step of the function, or begins what it waits for; may be repeated."""


class Gateway(AgentGateway, AttemptGateway, Protocol):
    """Everything a worker needs."""

    async def close(self) -> None: ...
