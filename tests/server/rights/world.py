"""What the rows ask for: jobs, files, plans and workers of one namespace, on one server."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import aiohttp

from tests.server.rights.callers import OWN, Caller, everybody
from tests.support.running_server import RAW, FakeWorker, RunningServer, job, running_server
from windlass.domain.config import Config
from windlass.messages.sync import Finished, Started
from windlass.ports.gateway import Holder

MARK: Final = "hidden-mark"  # in everything that only the own namespace may see
CONTENT: Final = f"what {MARK} made".encode()
LABELS: Final = {"team": MARK}
TEMPLATE: Final = {"name": "t", "jobs": {"a": {"run": ["true"], "labels": LABELS}}}
SCHEDULE: Final = {"cron": "@daily", "jobs": [job(labels=LABELS)]}


class Answer(NamedTuple):
    """A status, and what came with it."""

    status: int
    body: bytes


class World:
    """One server with something to ask for behind every route."""

    def __init__(self, server: RunningServer, session: aiohttp.ClientSession) -> None:
        self.server = server
        self._session = session
        self._made = 0
        self.values: dict[str, Any] = {}
        self.callers: list[Caller] = []

    async def call(self, caller: Caller, method: str, path: str, query: Any, body: Any) -> Answer:
        """Calls as somebody."""
        headers = {} if caller.token is None else {"Authorization": f"Bearer {caller.token}"}
        sent: dict[str, Any] = {"data": body} if isinstance(body, bytes) else {"json": body}
        if isinstance(body, bytes):
            headers |= RAW
        reply = await self._session.request(
            method, f"{self.server.address}{path}", params=query, headers=headers,
            **(sent if body is not None else {}),
        )  # fmt: skip
        async with reply:
            return Answer(reply.status, await reply.read())

    async def changes_by_callers(self, after: int) -> tuple[int, list[str]]:
        """The newest event, and what callers have changed after an older one."""
        store = self.server.services.engine.store
        names = {who.name or who.title for who in self.callers}
        events = await store.read(lambda tx: tx.log.read(after, 10_000))
        newest = events[-1].seq if events else after
        return newest, [f"{e.actor}: {e.reason}" for e in events if e.actor in names]

    def number(self) -> int:
        """Another one each time."""
        self._made += 1
        return self._made

    async def submit(self, by: Caller | None = None, **fields: Any) -> int:
        """Submits a job to the own namespace; by an admin, or by somebody who may."""
        client = self.server.admin if by is None else await self.server.http(by.token)
        body = job(namespace=OWN, name=MARK, queue=f"{MARK}-queue", **fields)
        return await self.server.submit(body, by=client)

    async def workflow(self, by: Caller | None = None) -> int:
        """Submits a workflow to the own namespace."""
        client = self.server.admin if by is None else await self.server.http(by.token)
        new = {"name": MARK, "namespace": OWN, "labels": LABELS}
        body = {"jobs": [job(namespace=OWN, name=MARK)], "workflow": new}
        reply = await client.post("/api/v1/jobs", json=body)
        assert reply.status_code == 201, reply.text
        return int(reply.json()["workflow"])

    async def put(self, path: str, body: Any) -> None:
        """Puts something as an admin."""
        reply = await self.server.admin.put(path, json=body)
        assert reply.status_code == 200, reply.text


# On a busy machine asking every route as everybody takes longer than a worker may be silent.
PATIENT = Config(heartbeat_timeout_ms=3_600_000)


@asynccontextmanager
async def standing_world(tmp_path: Path) -> AsyncIterator[World]:
    """A world in which every route has something to answer."""
    async with running_server(config=PATIENT) as server, aiohttp.ClientSession() as session:
        world = World(server, session)
        holder = await server.worker(
            "holder", slots=4, metadata={"secret:token": [f"{MARK}-namespace"]}
        )
        source = await _artifact(world, holder, tmp_path)
        item = {"job": source, "artifact": "file"}
        held = await world.submit(args={"argv": ["true"], "inputs": [item]})
        (given,) = (await holder.sync(want=1)).jobs
        await holder.sync(started=(Started(held, given.attempt),))
        await holder.gateway.append_log(_of(holder, held), 0, CONTENT)
        await world.put("/api/v1/templates/t?namespace=" + OWN, {"body": TEMPLATE})
        await world.put("/api/v1/schedules/s?namespace=" + OWN, SCHEDULE)
        world.values = {
            "job": held, "source": source, "attempt": 1, "worker": holder.id,
            "incarnation": holder.incarnation, "workflow": await world.workflow(),
        }  # fmt: skip
        world.callers = await everybody(server, holder)
        yield world


async def _artifact(world: World, worker: FakeWorker, tmp_path: Path) -> int:
    number = await world.submit()
    await worker.sync(want=1)
    file = tmp_path / "file"
    file.write_bytes(CONTENT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    await worker.gateway.put_artifact(_of(worker, number), "file", file, digest, "text/plain")
    await worker.sync(finished=(Finished(number, 1, "completed", 0),))
    await world.put("/api/v1/names/n", {"job": number, "artifact": "file"})
    return number


def _of(worker: FakeWorker, number: int) -> Holder:
    return Holder(worker.id, worker.incarnation, number, 1)
