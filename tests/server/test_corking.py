"""Responses leave in one piece, and nothing that was written is held back or lost."""

import asyncio
import select
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from windlass.server.connections.connection import Corked
from windlass.server.serve import Listen, Serving, bind


class Written(asyncio.Transport):
    """Keeps what would have been sent, write by write."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []
        self.closed_after: int | None = None

    def write(self, data: object) -> None:
        assert isinstance(data, bytes)
        self.sent.append(data)

    def writelines(self, list_of_data: object) -> None:
        assert isinstance(list_of_data, tuple)
        self.sent.append(b"".join(list_of_data))

    def close(self) -> None:
        self.closed_after = len(self.sent)


def written(write: Callable[[Corked], Awaitable[None]]) -> Written:
    """What left below while `write` wrote above."""

    async def body() -> Written:
        below = Written()
        await write(Corked(below, asyncio.get_running_loop()))
        return below

    return asyncio.run(body())


async def turn() -> None:
    """Let the loop go round once."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(done.set_result, None)
    await done


def test_a_head_and_its_body_are_one_write() -> None:
    async def write(above: Corked) -> None:
        above.write(b"head ")
        above.write(b"body")
        await turn()

    assert written(write).sent == [b"head body"]


def test_a_head_without_a_body_leaves_at_the_end_of_the_turn() -> None:
    async def write(above: Corked) -> None:
        above.write(b"head of a stream")
        await turn()

    assert written(write).sent == [b"head of a stream"]


@pytest.mark.parametrize("count", range(1, 8))
def test_what_is_written_arrives_in_its_order(count: int) -> None:
    pieces = [b"%d," % number for number in range(count)]

    async def write(above: Corked) -> None:
        for number, piece in enumerate(pieces):
            above.write(piece)
            if number % 3 == 2:
                await turn()
        await turn()

    assert b"".join(written(write).sent) == b"".join(pieces)


def test_closing_sends_what_waits_first() -> None:
    async def write(above: Corked) -> None:
        above.write(b"last words")
        above.close()

    below = written(write)
    assert (below.sent, below.closed_after) == ([b"last words"], 1)


def test_a_server_sends_no_head_before_its_body() -> None:
    client = socket.socket()
    early: list[bool] = []

    async def application(_scope: Any, _receive: Any, send: Any) -> None:
        head = [(b"content-length", b"5")]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        early.append(bool(select.select([client], [], [], 0)[0]))
        await send({"type": "http.response.body", "body": b"whole"})

    async def ask() -> bytes:
        loop = asyncio.get_running_loop()
        listen = Listen()
        bound = bind(listen)
        serving = Serving(application, listen, bound)
        serving.start()
        client.setblocking(False)
        await loop.sock_connect(client, bound.getsockname())
        await loop.sock_sendall(client, b"GET / HTTP/1.1\r\nhost: here\r\n\r\n")
        answer = await loop.sock_recv(client, 65_536)
        client.close()
        await serving.stop()
        return answer

    assert uvloop.run(ask()).endswith(b"\r\n\r\nwhole")
    assert early == [False]
