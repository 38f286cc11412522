"""A path says which route it means as it stands: proxies in front decide by what is written."""

import asyncio

import pytest

from tests.server.connections.raw import place_of
from tests.support.running import run
from tests.support.running_server import RunningServer, running_server
from windlass.domain.access.rights import Role


async def status_of(server: RunningServer, target: str, token: str) -> int:
    """Asks for a target byte by byte as it is; clients would tidy it."""
    host, port = place_of(server.address)
    reader, writer = await asyncio.open_connection(host, port)
    head = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
    status = await reader.readline()
    writer.close()
    return int(status.split()[1])


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/api/v1/tokens", 200),
        ("/api/v1/tokens/", 200),
        ("//api/v1/tokens", 404),
        ("/api//v1/tokens", 404),
        ("/api/v1/%74okens", 404),
        ("/%61pi/v1/tokens", 404),
        ("/api%2Fv1/tokens", 404),
        ("/api/v1/jobs?name=%61", 200),
        ("/api/v1/templates/nightly", 200),
        ("/api/v1/templates/%6eightly", 404),
    ],
)
def test_only_the_plain_form_of_a_path_reaches_its_route(target: str, status: int) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            template = {"name": "nightly", "jobs": {"a": {"run": "true"}}}
            put = await server.admin.put("/api/v1/templates/nightly", json={"body": template})
            assert put.status_code == 200, put.text
            assert await status_of(server, target, await server.token(Role.ADMIN)) == status

    run(scenario())
