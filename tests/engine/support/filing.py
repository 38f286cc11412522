"""What the tests of files share: places in memory, and attempts that write."""

import hashlib
from collections.abc import AsyncIterator

from tests.engine.support.agent import Agent
from tests.engine.support.rig import Rig
from windlass.blobs.memory import MemoryBlobs
from windlass.engine.files.files import Files
from windlass.messages.sync import Assignment
from windlass.ports.gateway import Holder


class RigClock:
    """The rig's time, for blobs."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    def now_ms(self) -> int:
        return self._rig.now

    async def sleep_ms(self, duration_ms: int) -> None:
        await self._rig.advance(duration_ms)


class Desk:
    """Files over a rig, with the blobs they are kept in."""

    def __init__(self, rig: Rig) -> None:
        self.blobs = MemoryBlobs(RigClock(rig))
        self.files = Files(rig.engine, self.blobs)

    async def text(self, job: int, attempt: int | None = None, offset: int = 0) -> bytes:
        """The log of an attempt."""
        reading = await self.files.read_log(job, attempt, offset)
        return b"".join([chunk async for chunk in reading.chunks])

    async def leave(self, holder: Holder, name: str, data: bytes) -> str:
        """Leave an artifact; its digest."""
        digest = hashlib.sha256(data).hexdigest()
        await self.files.store_artifact(holder, name, one(data), digest, len(data), "text/plain")
        return digest

    async def fetch(self, job: int, name: str) -> bytes:
        """The bytes of an artifact."""
        _, chunks = await self.files.open_artifact(job, name)
        return b"".join([chunk async for chunk in chunks])


async def one(data: bytes) -> AsyncIterator[bytes]:
    """A stream of one chunk."""
    yield data


def holder_of(agent: Agent, job: Assignment) -> Holder:
    """Who holds an assignment."""
    return Holder(agent.id, agent.incarnation, job.job, job.attempt)
