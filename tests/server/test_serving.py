"""The socket servers listen on."""

import asyncio
import socket

from tests.support.running import run
from windlass.server.serve import Listen, bind


def test_answers_are_sent_at_once() -> None:
    """With Nagle's algorithm an answer in two parts waits for the first to be acknowledged."""

    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        async def look(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            connection: socket.socket = writer.get_extra_info("socket")
            found.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        bound = bind(Listen())
        async with await asyncio.start_server(look, sock=bound):
            _, writer = await asyncio.open_connection(*bound.getsockname())
            no_delay = await found
            writer.close()
            await writer.wait_closed()
        return no_delay

    assert run(accepted())
