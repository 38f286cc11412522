"""Finding 9 of the attack: what lasts long ends with the token of its caller."""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from tests.server.test_security_findings import leave_artifact, taken
from tests.support.running import run
from tests.support.running_server import (
    RAW,
    running_server,
)
from windlass.domain.access.rights import Role
from windlass.server.http import call

SOON_SECONDS: Final = 3.0  # a hundred times what it should take
FOLLOWED: Final = (
    "/api/v1/events",
    "/api/v1/live?show=jobs",
    "/api/v1/jobs/1/log?follow=true",
)


async def _ends(client: httpx.AsyncClient, path: str, begun: asyncio.Event) -> None:
    """Reads a followed stream until the server cuts it off, without its last chunk."""
    with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012
        async with client.stream("GET", path) as reply:
            assert reply.status_code == 200
            begun.set()
            async for _ in reply.aiter_bytes():
                pass


async def _must_end(reading: asyncio.Task[None]) -> None:
    """Fails soon if the stream goes on, and leaves no task that keeps the server from stopping."""
    _, going_on = await asyncio.wait({reading}, timeout=SOON_SECONDS)
    reading.cancel()
    await asyncio.wait({reading})
    assert not going_on, "the stream goes on without a valid token"
    await reading


async def _stalls(chunks: AsyncIterator[bytes], released: asyncio.Event) -> AsyncIterator[bytes]:
    """A download that takes longer than its token lives."""
    yield b"first"
    await released.wait()
    async for chunk in chunks:
        yield chunk


@pytest.mark.parametrize("path", ["/api/v1/jobs/1/log", "/api/v1/jobs/1/artifacts/secret"])
def test_finding_9_a_download_ends_with_its_token(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "RECHECK_SECONDS", 0.02)

    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            number = await leave_artifact(server, worker, tmp_path, "default")
            assert number == 1
            files = server.services.files
            read_log, open_artifact = files.read_log, files.open_artifact
            released = asyncio.Event()

            async def slow_log(*args: Any) -> Any:
                reading = await read_log(*args)
                return reading._replace(chunks=_stalls(reading.chunks, released))

            async def slow_artifact(*args: Any) -> Any:
                row, chunks = await open_artifact(*args)
                return row, _stalls(chunks, released)

            monkeypatch.setattr(files, "read_log", slow_log)
            monkeypatch.setattr(files, "open_artifact", slow_artifact)
            made = await server.services.access.create_token("ci", Role.VIEWER)
            begun = asyncio.Event()
            reading = asyncio.create_task(_ends(await server.http(made.secret), path, begun))
            await begun.wait()
            await server.services.access.revoke(made.token.id)
            try:
                await _must_end(reading)
            finally:
                released.set()

    run(scenario())


def _noting(
    monkeypatch: pytest.MonkeyPatch, owner: object, method: str, begun: asyncio.Event
) -> None:
    """Sets an event when a method is called."""
    original = getattr(owner, method)

    async def noted(*args: Any) -> Any:
        begun.set()
        return await original(*args)

    monkeypatch.setattr(owner, method, noted)


def test_finding_9_an_upload_ends_with_its_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "RECHECK_SECONDS", 0.0)

    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker()
            await server.submit()
            holder = await taken(worker)
            begun, disabled = asyncio.Event(), asyncio.Event()
            _noting(monkeypatch, server.services.files, "store_artifact", begun)

            async def body() -> AsyncIterator[bytes]:
                yield b"a"
                await disabled.wait()
                yield b"b"

            client = await server.http(worker.token)
            digest = hashlib.sha256(b"ab").hexdigest()
            query: dict[str, Any] = {"incarnation": 1, "sha256": digest, "size": 2}
            path = f"{worker.path(holder.job)}/artifacts/x"
            upload = client.put(path, params=query, content=body(), headers=RAW)
            uploading = asyncio.create_task(upload)
            await asyncio.wait_for(begun.wait(), 60)
            await server.admin.post(f"/api/v1/workers/{worker.id}/disable")
            disabled.set()
            assert (await uploading).status_code == 403
            stored = await server.services.engine.store.read(
                lambda tx: tx.files.artifacts([holder.job])
            )
            assert not stored.get(holder.job)

    run(scenario())


def test_finding_9_a_long_poll_is_not_answered_after_its_token(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(call, "RECHECK_SECONDS", 0.0)

    async def scenario() -> None:
        async with running_server() as server:
            number = await server.submit()
            begun = asyncio.Event()
            _noting(monkeypatch, server.services.engine.jobs, "wait_ended", begun)
            made = await server.services.access.create_token("ci", Role.VIEWER)
            client = await server.http(made.secret)
            waiting = asyncio.create_task(client.get(f"/api/v1/jobs/{number}/wait"))
            await asyncio.wait_for(begun.wait(), 60)
            await server.services.access.revoke(made.token.id)
            await server.services.engine.jobs.cancel([number], "x", "me")
            assert (await waiting).status_code == 401

    run(scenario())


@pytest.mark.parametrize("path", FOLLOWED)
@pytest.mark.parametrize("how", ["revoked", "expired"])
def test_finding_9_a_stream_ends_with_its_token(
    path: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "RECHECK_SECONDS", 0.02)

    async def scenario() -> None:
        async with running_server() as server:
            await server.submit()
            access, now = server.services.access, await server.services.engine.now()
            expires_at = now + 500 if how == "expired" else 0
            made = await access.create_token("ci", Role.VIEWER, expires_at=expires_at)
            begun = asyncio.Event()
            reading = asyncio.create_task(_ends(await server.http(made.secret), path, begun))
            other = asyncio.create_task(_ends(server.admin, path, asyncio.Event()))
            await begun.wait()
            try:
                if how == "revoked":
                    await access.revoke(made.token.id)
                await _must_end(reading)
                assert not other.done()
            finally:
                other.cancel()
                await asyncio.gather(other, return_exceptions=True)

    run(scenario())
