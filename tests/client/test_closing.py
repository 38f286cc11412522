"""A client that is closed while others use it: they are told at once, nobody is left waiting."""

import asyncio
import socket
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

import windlass
from windlass.client.blocking.loop_thread import LoopThread

SECONDS = 30.0


def started(call: Callable[[], Any]) -> "Future[Any]":
    """Makes a call in a thread that may outlive the test."""
    future: Future[Any] = Future()

    def work() -> None:
        try:
            future.set_result(call())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, daemon=True).start()  # noqa: TID251 - a program's own thread
    return future


def test_a_call_that_ends_with_the_loop_has_its_outcome() -> None:
    async def last() -> int:
        asyncio.get_running_loop().stop()
        return 7

    thread = LoopThread()
    assert started(lambda: thread.run(last())).result(SECONDS) == 7


def test_while_a_client_closes_only_the_thread_that_closes_it_may_call() -> None:
    async def answer() -> int:
        return 7

    thread = LoopThread()
    assert not thread.begin_close()  # Nothing was opened.
    assert thread.run(answer()) == 7
    assert thread.begin_close()
    with pytest.raises(windlass.Conflict, match="this client was closed"):
        started(lambda: thread.run(answer())).result(SECONDS)
    assert thread.run(answer()) == 7
    thread.close()
    with pytest.raises(windlass.Conflict, match="this client was closed"):
        thread.run(answer())


def test_a_call_under_way_is_told_that_its_client_was_closed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = windlass.Client(f"http://127.0.0.1:{silent.getsockname()[1]}", "a token")
        call = started(client.queues.list)
        connection, _ = silent.accept()
        with connection:
            assert connection.recv(1)  # The request is under way.
            client.close()
            with pytest.raises(windlass.Conflict, match="was closed during the call") as told:
                call.result(SECONDS)
    assert told.value.code == "client_closed"
    assert not caplog.records  # It was not taken for a server that is away.
