"""A server in the test's own loop, on a free port of this machine, spoken to by HTTP."""

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any, Final

import httpx

from windlass.assembly.backend import ServerOptions
from windlass.assembly.server import running_services
from windlass.client.gateway import HttpGateway, WorkerToken
from windlass.client.transport import Transport
from windlass.clock import RealSecrets
from windlass.domain.access.rights import Role
from windlass.domain.access.sign_in import SignIn
from windlass.domain.config import Config
from windlass.domain.values.errors import Conflict
from windlass.messages.sync import EnrolRequest, SyncReply, SyncRequest
from windlass.server.app import start_serving
from windlass.server.serve import Listen, Serving, address_of, bind
from windlass.server.services import ServerServices

JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "application/octet-stream"}
# For clients that only make plain calls: to load the authorities of the machine takes them long.
NO_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class FakeWorker:
    """What an agent says over HTTP, one call at a time."""

    def __init__(self, gateway: HttpGateway, own: WorkerToken, name: str) -> None:
        self.gateway = gateway
        self.name = name
        self._own = own
        self._seq = 0

    async def enrol(self, **said: Any) -> "FakeWorker":
        """Enrols, for the first time or again."""
        enrolled = await self.gateway.enrol(EnrolRequest(name=self.name, **said))
        assert enrolled.token is not None
        self.token = enrolled.token
        self.id = enrolled.worker
        self.incarnation = enrolled.incarnation
        return self

    @property
    def secret(self) -> str:
        """What it enrols with."""
        assert self._own.token is not None
        return self._own.token

    async def sync(self, **said: Any) -> SyncReply:
        """The next sync, saying this."""
        self._seq += 1
        request = SyncRequest(incarnation=self.incarnation, seq=self._seq, **said)
        return await self.gateway.sync(self.id, request)

    def path(self, job: int, attempt: int = 1) -> str:
        """Where this worker writes about an attempt."""
        return f"/api/v1/workers/{self.id}/jobs/{job}/attempts/{attempt}"


class RunningServer:
    """`services` behind `address`, and ways to speak to it in different roles."""

    def __init__(
        self, services: ServerServices, serving: Serving, address: str, stack: AsyncExitStack
    ) -> None:
        self.services = services
        self.serving = serving
        self.address = address
        self._stack = stack
        self._made = 0
        self.admin: httpx.AsyncClient

    async def token(self, role: Role, *namespaces: str) -> str:
        """The secret of a new token; an earlier server on the same store may have named some."""
        while True:
            self._made += 1
            with suppress(Conflict):
                named = f"{role}-{self._made}"
                return (await self.services.access.create_token(named, role, namespaces)).secret

    async def http(self, token: str | None) -> httpx.AsyncClient:
        """A client that presents this token; it is closed with the server."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        client = httpx.AsyncClient(
            base_url=self.address, headers=headers, timeout=120, verify=NO_TLS
        )
        return await self._stack.enter_async_context(client)

    async def role(self, role: Role, *namespaces: str) -> httpx.AsyncClient:
        """A client with a new token of this role."""
        return await self.http(await self.token(role, *namespaces))

    async def worker(self, name: str = "w1", **said: Any) -> FakeWorker:
        """A worker that enrolled with a code."""
        code, _ = await self.services.access.create_code(60_000)
        return await self._worker(name).enrol(code=code, **said)

    async def pending(self, name: str) -> FakeWorker:
        """A worker that waits for approval."""
        return await self._worker(name).enrol()

    def _worker(self, name: str) -> FakeWorker:
        own = WorkerToken(RealSecrets().secret)
        gateway = HttpGateway(Transport(self.address), own)
        self._stack.push_async_callback(gateway.close)
        return FakeWorker(gateway, own, name)

    async def submit(self, *jobs: Mapping[str, Any], by: httpx.AsyncClient | None = None) -> int:
        """Submit jobs, by default one that does nothing; returns the first one's id."""
        body = {"jobs": list(jobs) or [job()]}
        reply = await (by or self.admin).post("/api/v1/jobs", json=body)
        assert reply.status_code == 201, reply.text
        return int(reply.json()["ids"][0])

    async def waits(self) -> bool:
        """Whether a worker's sync waits for a job."""
        return len(self.services.engine.waiting_syncs) > 0

    async def show(self, number: int) -> dict[str, Any]:
        """A job as an admin sees it."""
        reply = await self.admin.get(f"/api/v1/jobs/{number}")
        assert reply.status_code == 200, reply.text
        shown: dict[str, Any] = reply.json()
        return shown


def job(**fields: Any) -> dict[str, Any]:
    """A shell job that does nothing, with these fields."""
    return {"task": "shell", "args": {"argv": ["true"]}, **fields}


@asynccontextmanager
async def running_server(
    store: str = "memory:",
    config: Config | None = None,
    blobs: str = "memory:",
    sign_in: SignIn | None = None,
    port: int = 0,
    fuzz: tuple[str, ...] = (),
) -> AsyncIterator[RunningServer]:
    """A server over `store`; everything is closed in the end."""
    listen = Listen(port=port)
    bound = bind(listen)
    options = ServerOptions(
        store, blobs, config or Config(), sign_in=sign_in or SignIn(), plugins={"fuzz": fuzz}
    )
    # Each is closed also if what follows fails: a later test would be told of a socket left open.
    async with AsyncExitStack() as outer:
        outer.callback(bound.close)
        services = await outer.enter_async_context(running_services(options))
        serving = start_serving(services, listen, bound)
        outer.push_async_callback(serving.stop)
        async with AsyncExitStack() as stack:
            server = RunningServer(services, serving, address_of(listen, bound), stack)
            server.admin = await server.role(Role.ADMIN)
            yield server


def error_of(reply: httpx.Response) -> dict[str, Any]:
    """The error in an answer, which has the documented form."""
    body = reply.json()
    assert set(body) == {"error"}, body
    error: dict[str, Any] = body["error"]
    assert {"code", "message"} <= set(error), error
    assert set(error) <= {
        "code", "message", "field", "expected", "got", "hint", "unknown", "retry_after_ms",
        "outcome_unknown",
    }  # fmt: skip
    return error
