"""Many idle workers in one process: each keeps a sync open, as an agent without work does.

They speak HTTP by hand over one connection each, so that this process stays cheap beside
the server that is measured.
"""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from benchmarks.fleet.processes import Server
from windlass.messages.sync import EnrolReply, EnrolRequest, Finished, SyncReply, SyncRequest

AT_ONCE = 20  # enrolments side by side

_encode = msgspec.json.Encoder().encode


class Connection:
    """One connection that is kept open."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: str) -> "Connection":
        host, _, port = address.removeprefix("http://").rpartition(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    async def post(self, path: str, token: str, body: object) -> bytes:
        """The body of the answer; raises for anything but success."""
        data = _encode(body)
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        self._writer.write(head.encode() + data)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        content = await self._reader.readexactly(_length(answer))
        if not answer.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(f"{path} answered {answer[:20]!r}: {content!r}")
        return content

    def close(self) -> None:
        self._writer.close()


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    raise RuntimeError(f"an answer without a length: {head!r}")


class Crowd:
    """All the workers; `received` says which jobs came to one of them, and when."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._members: list[asyncio.Task[None]] = []
        self._received: dict[int, float] = {}
        self._news = asyncio.Event()
        self.syncs = 0

    async def enrol(self, count: int) -> None:
        """Let so many workers in, and begin to sync for each."""
        numbers = iter(range(count))

        async def some() -> None:
            for number in numbers:
                await self._enrol(f"idle-{number}")

        await asyncio.gather(*(some() for _ in range(AT_ONCE)))

    async def received(self, job: int) -> float:
        """When a worker was given `job`, on the monotonic clock."""
        while job not in self._received:
            self._check()
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 30)
        return self._received[job]

    async def close(self) -> None:
        for member in self._members:
            member.cancel()
        await asyncio.gather(*self._members, return_exceptions=True)

    def _check(self) -> None:
        for member in self._members:
            if member.done():
                member.result()

    async def _enrol(self, name: str) -> None:
        connection = await Connection.open(self._server.address)
        request = EnrolRequest(name=name, metadata={"tasks_allowlist": ["shell"]})
        answer = await connection.post("/api/v1/workers/enrol", self._server.token, request)
        enrolled = msgspec.json.decode(answer, type=EnrolReply)
        work = self._sync(connection, enrolled)
        self._members.append(asyncio.get_running_loop().create_task(work))

    async def _sync(self, connection: Connection, enrolled: EnrolReply) -> None:
        """One worker: report what it was given as done, else wait for more."""
        path = f"/api/v1/workers/{enrolled.worker}/sync"
        seq = received = 0
        finished: tuple[Finished, ...] = ()
        try:
            while True:
                seq += 1
                wait = int(enrolled.heartbeat_interval_ms * (0.6 + 0.2 * random.random()))
                request = SyncRequest(
                    incarnation=enrolled.incarnation, seq=seq, received=received, want=1,
                    finished=finished, wait_ms=0 if finished else wait,
                )  # fmt: skip
                answer = await connection.post(path, enrolled.token or "", request)
                reply = msgspec.json.decode(answer, type=SyncReply)
                self.syncs += 1
                for given in reply.jobs:
                    self._received[given.job] = time.monotonic()
                    received = given.lease
                    self._news.set()
                finished = tuple(Finished(a.job, a.attempt, exit_code=0) for a in reply.jobs)
        finally:
            connection.close()


@asynccontextmanager
async def crowd(server: Server, count: int) -> AsyncIterator[Crowd]:
    """So many idle workers of `server`."""
    members = Crowd(server)
    try:
        await members.enrol(count)
        yield members
    finally:
        await members.close()
