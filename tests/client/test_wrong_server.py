"""An address where something else answers is named at once, in one sentence, by every call."""

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
import trustme

import windlass
from tests.cli.program import Program
from tests.support.running import run
from windlass.client.client import AsyncClient
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Unreachable, WindlassError, WrongServer

NOTHING = JobSpec(task="shell", args={"argv": ["true"]})
SLACK_S = 20.0  # far below the 60 s for which clients repeat what a server may answer yet


class _Other(BaseHTTPRequestHandler):
    """Answers as another web server does."""

    status: ClassVar[int]
    body: ClassVar[bytes]

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(self.status)
        if 300 <= self.status < 400:
            self.send_header("Location", "https://elsewhere.example/")
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - so they are called

    def log_message(self, *_: object) -> None:
        """Says nothing."""


HTML = b"<html><body>Welcome to nginx!</body></html>"
KINDS = {
    "page": (200, HTML), "json": (200, b'{"hello": "world"}'), "list": (200, b"[]"),
    "empty": (204, b""), "lost": (404, HTML), "fastapi": (404, b'{"detail": "Not Found"}'),
    "post": (501, HTML), "redirect": (302, b""), "latin": (200, b'{"id": "\xe4"}'),
}  # fmt: skip


@pytest.fixture(params=KINDS)
def other(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of another web server."""
    status, body = KINDS[request.param]
    handler = type("Handler", (_Other,), {"status": status, "body": body})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)  # noqa: TID251 - not our server
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


CALLS: dict[str, Callable[[AsyncClient], Awaitable[Any]]] = {
    "submit": lambda client: client.submit(NOTHING),
    "jobs": lambda client: client.jobs(),
    "info": lambda client: client.job(1).info(),
    "wait": lambda client: client.job(1).wait(),
    "logs": lambda client: anext(aiter(client.job(1).logs())),
    "events": lambda client: anext(aiter(client.events()), None),
    "workers": lambda client: client.workers.list(),
    "artifact": lambda client: anext(client.service.artifact(1, "a"), None),
    "upload": lambda client: client.upload(__file__),
}


async def _fails(call: Awaitable[Any], address: str) -> WindlassError:
    """Returns the error of a call, which comes soon and names the address."""
    with pytest.raises(WindlassError) as told:
        await asyncio.wait_for(call, SLACK_S)
    assert address in str(told.value)
    return told.value


def test_every_call_says_that_another_web_server_answers(other: str) -> None:
    async def scene() -> None:
        async with windlass.AsyncClient(other, "a token") as client:
            for call in CALLS.values():
                error = await _fails(call(client), other)
                assert isinstance(error, WrongServer)
                assert "is not a Windlass server" in str(error)
                assert "\n" not in str(error)

    run(scene())


@pytest.mark.parametrize("other", ["page", "lost"], indirect=True)
def test_commands_print_one_line(other: str, tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    for words in (
        ("submit", "--", "true"), ("jobs",), ("show", "1"), ("logs", "1"), ("events",),
        ("queues",), ("explain", "1"), ("verify",), ("run", "--", "true"),
    ):  # fmt: skip
        done = program(words[0], "--server", other, *words[1:])
        assert done.returncode == 3, (words, done)
        assert f"{other} is not a Windlass server" in done.stderr, (words, done)
        assert "Traceback" not in done.stderr


@asynccontextmanager
async def _served(
    answer: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def _nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read(10)


async def _ssh(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"SSH-2.0-OpenSSH_9.6\r\n")
    await reader.read(10)


def test_http_to_a_port_with_tls_is_said_at_once() -> None:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert("127.0.0.1").configure_cert(tls)

    async def scene() -> None:
        async with _served(_nothing, tls) as address:
            secure = address.replace("http:", "https:")
            async with windlass.AsyncClient(address, "a token") as client:
                for call in ("submit", "jobs", "wait", "events"):
                    error = await _fails(CALLS[call](client), address)
                    assert str(error).endswith(f"this port speaks https, so use {secure}")

    run(scene())


def test_https_to_a_port_without_tls_is_said_at_once() -> None:
    async def scene() -> None:
        for answer in (_nothing, _ssh):
            async with _served(answer) as address:
                secure = address.replace("http:", "https:")
                async with windlass.AsyncClient(secure, "a token") as client:
                    for call in ("submit", "jobs", "wait"):
                        assert isinstance(await _fails(CALLS[call](client), secure), Unreachable)

    run(scene())


def test_what_speaks_no_http_is_said_at_once() -> None:
    async def scene() -> None:
        async with (
            _served(_ssh) as address,
            windlass.AsyncClient(address, "a token") as client,
        ):
            error = await _fails(client.jobs(), address)
            assert "it does not speak HTTP" in str(error)

    run(scene())
