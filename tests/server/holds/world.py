"""A server as a process, a large namespace in it, and somebody else who must not notice."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec

from tests.cli.program import Program
from tests.server.holds.rows import BIG, Large, encoded, template
from windlass.domain.access.rights import Role
from windlass.ports.loop_time import pass_time

LONGEST: Final = re.compile(
    r'windlass_event_loop_longest_hold_seconds\{work="([^"]*)"\} (\S+)'
)  # fmt: skip


class Client:
    """Calls a server as one token."""

    def __init__(self, session: aiohttp.ClientSession, address: str, token: str) -> None:
        self._session = session
        self._address = address
        self._token = token

    async def call(
        self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None
    ) -> tuple[int, bytes]:
        """The status and the body of an answer."""
        kind = "application/octet-stream" if isinstance(body, bytes) else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        reply = await self._session.request(
            method, self._address + path, data=encoded(body), params=query, headers=headers
        )
        async with reply:
            return reply.status, await reply.read()

    async def json(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """The decoded answer to a call that must succeed."""
        status, answer = await self.call(method, path, body, query)
        assert status in (200, 201), (method, path, status, answer[:300])
        return msgspec.json.decode(answer)

    async def large(self, route: str, what: Large, values: Mapping[str, Any]) -> tuple[int, bytes]:
        """Calls a route with its largest input."""
        method, path = route.split()
        known = {**values, **what.path}
        path = re.sub(r"\{(\w+):\w+\}", lambda found: str(known.get(found[1], "x")), path)
        query = {
            name: known.get(value[1:], value) if isinstance(value, str) else value
            for name, value in what.query.items()
        }
        return await self.call(method, path, what.body(values), query)

    async def longest(self) -> dict[str, float]:
        """The longest step of each route and loop."""
        status, page = await self.call("GET", "/metrics")
        assert status == 200, page
        return {name: float(value) for name, value in LONGEST.findall(page.decode())}

    async def limited(self, role: Role, namespace: str) -> "Client":
        """The same server as a token for one namespace."""
        body = {"name": f"{role} of {namespace}", "role": role, "namespaces": [namespace]}
        return self.at((await self.json("POST", "/api/v1/tokens", body))["token"])

    def at(self, token: str) -> "Client":
        """The same server as somebody else."""
        return Client(self._session, self._address, token)


@contextmanager
def server_on(store: str, folder: Path) -> Iterator[tuple[str, str]]:
    """A server as a process: its address, and the token of its admin."""
    program = Program(folder / "data")
    if store.startswith("postgresql"):
        program.text("db", "upgrade", "--store", store)
    place = ("--store", store, "--blobs", f"file://{folder}/blobs", "--listen", "127.0.0.1:0")
    with program.running("server", *place, "--log-level", "warning") as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        yield address, (folder / "data" / "admin-token").read_text().strip()


@asynccontextmanager
async def client_of(address: str, token: str) -> AsyncIterator[Client]:
    """A client that waits as long as it takes."""
    patience = aiohttp.ClientTimeout(total=600)
    async with aiohttp.ClientSession(timeout=patience) as session:
        yield Client(session, address, token)


class Bystander:
    """Another namespace: asks for /healthz, and has a worker that holds a job."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._seq = 1
        self.waits: list[float] = []

    async def begin(self) -> dict[str, Any]:
        """Starts the job of the worker; returns what names it."""
        await self._client.json("POST", "/api/v1/jobs", {"jobs": [_job()]})
        code = (await self._client.json("POST", "/api/v1/codes", {}))["code"]
        body = {"name": "bystander", "code": code, "slots": 1}
        enrolled = await self._client.json("POST", "/api/v1/workers/enrol", body)
        self.worker = self._client.at(enrolled["token"])
        self._path = f"/api/v1/workers/{enrolled['worker']}/sync"
        self._incarnation = enrolled["incarnation"]
        (given,) = (await self._sync(want=1))["jobs"]
        self._started = {"job": given["job"], "attempt": given["attempt"]}
        await self._sync(started=[self._started])
        return {
            "worker": enrolled["worker"], "incarnation": self._incarnation,
            "job": given["job"], "attempt": given["attempt"],
        }  # fmt: skip

    async def look_on(self) -> None:
        """Does until it is cancelled what others do all day."""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            status, _ = await self._client.call("GET", "/healthz")
            assert status == 200
            self.waits.append(clock() - began)
            if len(self.waits) % 20 == 0:
                assert not (await self._sync())["lost"]
            await pass_time(0.05)

    async def end(self) -> None:
        """Ends the job, whose lease must have lasted."""
        done = {**self._started, "outcome": "completed", "exit_code": 0}
        reply = await self._sync(finished=[done])
        assert not reply["lost"], reply

    async def _sync(self, **said: Any) -> Any:
        self._seq += 1
        body = {"incarnation": self._incarnation, "seq": self._seq, "wait": 0, **said}
        return await self.worker.json("POST", self._path, body)


def _job() -> dict[str, Any]:
    return {"task": "shell", "args": {"argv": ["true"]}, "namespace": "small"}


async def small_things(client: Client) -> None:
    """What the bounded routes name."""
    await client.json("PUT", "/api/v1/templates/t", {"body": template(2)}, **BIG)
