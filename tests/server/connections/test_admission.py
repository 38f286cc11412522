"""Who may connect: the total of connections, and proxies that name whom they speak for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from tests.server.connections.raw import Wire, request, status_of, wire_to
from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server
from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.access.rights import Role
from windlass.domain.config import Config

STRANGER = "203.0.113.7"
OTHER = "203.0.113.8"


@asynccontextmanager
async def opened(server: RunningServer, count: int) -> AsyncIterator[list[Wire]]:
    """Connections that have begun with HTTP, the oldest first."""
    async with AsyncExitStack() as stack:
        wires = [await stack.enter_async_context(wire_to(server.address)) for _ in range(count)]
        yield wires


async def answered(wire: Wire, *fields: str, path: str = "/healthz") -> int:
    """The status of a request; 0 if the server has ended the connection."""
    await wire.send(request(path, *fields))
    try:
        return status_of(await wire.answer())
    except (asyncio.IncompleteReadError, ConnectionError):
        return 0


def limited(**limits: Any) -> Config:
    return Config(http=HttpLimits(**limits))


def test_beyond_the_total_the_oldest_connection_without_a_request_makes_room() -> None:
    async def scenario() -> None:
        config = limited(connections=6)
        async with running_server(config=config) as server, opened(server, 6) as wires:
            for wire in wires[1:]:
                assert await answered(wire) == 200
            async with wire_to(server.address) as late:
                assert await answered(late) == 200
                assert server.serving.connections <= 6
                assert await answered(wires[0]) == 0

    run(scenario())


def test_callers_with_a_token_make_no_room_for_strangers() -> None:
    async def scenario() -> None:
        async with running_server(config=limited(connections=4)) as server:
            token = await server.token(Role.VIEWER)
            await server.admin.aclose()  # it has connections of its own
            async with opened(server, 4) as wires:
                bearer = f"authorization: Bearer {token}"
                for wire in wires:
                    assert await answered(wire, bearer, path="/api/v1/jobs") == 200
                async with wire_to(server.address) as late:
                    answer = await late.rest()
                    assert status_of(answer) == 503
                    assert b"retry-after: 1" in answer
                for wire in wires:
                    assert await answered(wire, bearer, path="/api/v1/jobs") == 200

    run(scenario())


async def _seen_from(server: RunningServer, client: httpx.AsyncClient, forwarded: str) -> str:
    """The address that the audit log has of a change."""
    fields = {"X-Forwarded-For": forwarded} if forwarded else {}
    reply = await client.post("/api/v1/jobs", json={"jobs": [job()]}, headers=fields)
    assert reply.status_code == 201, reply.text
    await server.services.audit.run_once(server.services.clock.now_ms())
    rows = (await server.admin.get("/api/v1/audit")).json()["entries"]
    return str(next(r for r in rows if r["request"] == reply.headers["X-Request-Id"])["address"])


@pytest.mark.parametrize(
    ("proxies", "forwarded", "seen"),
    [
        ((), STRANGER, "127.0.0.1"),  # nobody is trusted: it may say what it likes
        (("10.0.0.0/8",), STRANGER, "127.0.0.1"),  # it is none of the proxies
        (("127.0.0.0/8",), STRANGER, STRANGER),
        (("127.0.0.0/8",), "", "127.0.0.1"),
        # What a client writes itself stands before what the proxy adds.
        (("127.0.0.0/8",), f"10.0.0.1, {STRANGER}", STRANGER),
        (("127.0.0.0/8", "10.0.0.0/8"), f"1.2.3.4, {STRANGER}, 10.0.0.1", STRANGER),
    ],
)
def test_only_a_trusted_proxy_says_where_a_request_comes_from(
    proxies: tuple[str, ...], forwarded: str, seen: str
) -> None:
    async def scenario() -> None:
        async with running_server(config=limited(trusted_proxies=proxies)) as server:
            assert await _seen_from(server, server.admin, forwarded) == seen

    run(scenario())


def test_strangers_behind_a_proxy_are_limited_each_for_itself_and_all_others_together() -> None:
    """Without a trusted proxy, another X-Forwarded-For for each request avoids no limit."""

    async def scenario(proxies: tuple[str, ...], second: int) -> None:
        config = limited(requests_per_caller=1, trusted_proxies=proxies)
        body = ("content-type: application/json", "content-length: 100")  # which does not come
        async with running_server(config=config) as server, opened(server, 2) as (held, other):
            enrol = "/api/v1/workers/enrol"
            await held.send(request(enrol, *body, f"x-forwarded-for: {STRANGER}", method="POST"))
            for _ in range(2):  # the server, in this loop, begins with it
                await server.admin.get("/healthz")
            assert await answered(other, f"x-forwarded-for: {OTHER}") == second

    run(scenario((), 429))
    run(scenario(("127.0.0.1",), 200))


def test_a_worker_that_waits_for_approval_shows_where_it_asked_from() -> None:
    async def scenario(proxies: tuple[str, ...], seen: str) -> None:
        async with running_server(config=limited(trusted_proxies=proxies)) as server:
            nobody = await server.http(None)
            fields = {"X-Forwarded-For": STRANGER}
            reply = await nobody.post("/api/v1/workers/enrol", json={"name": "w"}, headers=fields)
            assert reply.status_code == 200, reply.text
            (shown,) = (await server.admin.get("/api/v1/workers")).json()["workers"]
            assert (shown["status"], shown["reason"]) == ("pending_approval", f"asked from {seen}")

    run(scenario((), "127.0.0.1"))
    run(scenario(("127.0.0.1",), STRANGER))


def test_connections_of_a_proxy_are_not_limited_by_its_address() -> None:
    async def scenario(proxies: tuple[str, ...], first: int) -> None:
        config = limited(connections_per_caller=3, trusted_proxies=proxies)
        async with running_server(config=config) as server, opened(server, 6) as wires:
            assert await answered(wires[-1]) == 200
            assert await answered(wires[0]) == first

    run(scenario((), 0))
    run(scenario(("127.0.0.1",), 200))
