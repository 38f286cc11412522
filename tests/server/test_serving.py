"""The socket servers listen on, and how they stop."""

import asyncio
import socket
from typing import NoReturn

import httpx
import pytest
from structlog.testing import capture_logs

from tests.support.running import run
from tests.support.running_server import job, running_server
from tests.support.waiting import until
from windlass.domain.values.errors import StoreUnavailable
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


def test_a_stop_answers_who_waits_and_cuts_streams_off(caplog: pytest.LogCaptureFixture) -> None:
    """Without an error, and long before the waits would have ended."""

    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            number = await server.submit(job())
            await worker.sync(want=1)
            idle = await server.worker("idle")
            syncing = asyncio.create_task(idle.sync(want=1, wait_ms=20_000))
            ending = server.admin.get(f"/api/v1/jobs/{number}/wait?timeout=60")
            waiting = asyncio.create_task(ending)
            reading = asyncio.create_task(server.admin.get(f"/api/v1/jobs/{number}/log?wait=60"))
            streams = (f"/api/v1/jobs/{number}/log", "/api/v1/events")
            begun = [asyncio.Event() for _ in streams]
            following = [
                asyncio.create_task(_read_all(server.admin, path, event))
                for path, event in zip(streams, begun, strict=True)
            ]
            for event in begun:
                await event.wait()
            await until("a waiting sync", server.waits, 60)
            loop = asyncio.get_running_loop()
            began = loop.time()
            await server.serving.stop()
            assert loop.time() - began < 2
            assert not (await syncing).jobs
            assert (await waiting).json()["state"] == "running"
            assert (await reading).status_code == 200
            for task in following:
                with pytest.raises(httpx.RemoteProtocolError):
                    await task

    run(scenario())
    assert [record.getMessage() for record in caplog.records if record.levelno >= 30] == []


async def _read_all(client: httpx.AsyncClient, path: str, begun: asyncio.Event) -> None:
    """Follows a stream to its end."""
    async with client.stream("GET", path, params={"follow": "true"}) as reply:
        begun.set()
        async for _ in reply.aiter_bytes():
            pass


def test_a_stream_whose_store_goes_away_is_cut_off_without_a_traceback(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(after: int, count: int) -> NoReturn:
        raise StoreUnavailable("the database is away", outcome_unknown=False)

    async def scenario() -> None:
        async with running_server() as server:
            begun = asyncio.Event()
            following = asyncio.create_task(_read_all(server.admin, "/api/v1/events", begun))
            await begun.wait()
            with capture_logs() as logged:
                monkeypatch.setattr(server.services.feed, "read_after", away)
                with pytest.raises(httpx.RemoteProtocolError):
                    await following
            told = [e for e in logged if e["log_level"] != "debug"]
            assert [(e["event"], e.get("error")) for e in told] == [
                ("cut_off", "the database is away")
            ]

    run(scenario())
    assert [record.getMessage() for record in caplog.records if record.levelno >= 30] == []
