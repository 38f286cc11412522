"""The agents' side of the HTTP API."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import aiohttp
from yarl import URL

from windlass.client.transport import CONNECT_SECONDS, ServerError, Transport
from windlass.domain.values.errors import Unreachable
from windlass.ports.gateway import Holder
from windlass.wire.files import LogEnd, LogNext, MediaDuration, RunLimit, Upload
from windlass.wire.jobs import SubmitReply, SubmitRequest
from windlass.wire.sync import SyncReply, SyncRequest
from windlass.wire.workers import Changed, EnrolReply, EnrolRequest, LeaveRequest

CHUNK = 1024 * 1024
MARGIN_SECONDS = 10.0
# A large file may take any time; a bucket that accepts no connection fails at once.
_UPLOAD_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)


class HttpGateway:
    """`Gateway` over one server; after enrolling it presents the worker's own token."""

    def __init__(self, transport: Transport, own_token: str | None = None) -> None:
        self._transport = transport
        self._given = transport.token
        if own_token is not None:
            transport.token = own_token

    async def enrol(self, request: EnrolRequest) -> EnrolReply:
        try:
            reply = await self._enrol(request)
        except ServerError as error:
            # The token of an earlier life is not known here any more.
            if error.status not in (401, 403) or self._transport.token == self._given:
                raise
            self._transport.token = self._given
            reply = await self._enrol(request)
        if reply.token is not None:
            self._transport.token = reply.token
        return reply

    async def _enrol(self, request: EnrolRequest) -> EnrolReply:
        return await self._transport.call("POST", "/api/v1/workers/enrol", EnrolReply, request)

    async def sync(self, worker: int, request: SyncRequest) -> SyncReply:
        path = f"/api/v1/workers/{worker}/sync"
        limit = request.wait_ms / 1000 + MARGIN_SECONDS
        return await self._transport.call("POST", path, SyncReply, request, timeout=limit)

    async def leave(self, worker: int, incarnation: int) -> None:
        path = f"/api/v1/workers/{worker}/leave"
        request = LeaveRequest(incarnation=incarnation)
        await self._transport.call("POST", path, Changed, request, timeout=MARGIN_SECONDS)

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        query = {"incarnation": holder.incarnation, "offset": offset}
        path = f"{_attempt(holder)}/log"
        reply = await self._transport.call_bytes("POST", path, LogNext, data, query=query)
        return reply.next

    async def end_log(
        self,
        holder: Holder,
        size: int,
        state: Literal["committed", "lost"],
        peak_memory: int = 0,
    ) -> None:
        query = {"incarnation": holder.incarnation}
        path = f"{_attempt(holder)}/log/end"
        body = LogEnd(size, state, peak_memory)
        await self._transport.call("POST", path, Changed, body, query=query)

    async def progress(self, holder: Holder, value: Any) -> None:
        query = {"incarnation": holder.incarnation}
        path = f"{_attempt(holder)}/progress"
        await self._transport.call("POST", path, Changed, {"progress": value}, query=query)

    async def measured(self, holder: Holder, duration_ms: int) -> int:
        query = {"incarnation": holder.incarnation}
        path = f"{_attempt(holder)}/duration"
        body = MediaDuration(duration_ms)
        reply = await self._transport.call("POST", path, RunLimit, body, query=query)
        return reply.timeout_ms

    async def put_artifact(
        self, holder: Holder, name: str, path: Path, sha256: str, content_type: str
    ) -> None:
        size = _size(path)
        facts = {
            "incarnation": holder.incarnation,
            "sha256": sha256,
            "size": size,
            "content_type": content_type,
        }
        route = f"{_attempt(holder)}/artifacts/{name}"
        upload = await self._transport.call("POST", f"{route}/presign", Upload, query=facts)
        if upload.url is None:
            await self._transport.send_bytes("PUT", route, _read(path), query=facts)
            return
        await _put_direct(upload, path, size)
        await self._transport.call("PUT", f"{route}/uploaded", Changed, query=facts)

    async def get_artifact(self, holder: Holder, job: int, name: str, path: Path) -> None:
        route = f"{_attempt(holder)}/inputs/{job}/{name}"
        query = {"incarnation": holder.incarnation}
        with path.open("wb") as file:
            async for chunk in self._transport.stream(route, query):
                file.write(chunk)

    async def submit(self, holder: Holder, request: SubmitRequest) -> SubmitReply:
        query = {"incarnation": holder.incarnation}
        path = f"{_attempt(holder)}/jobs"
        return await self._transport.call("POST", path, SubmitReply, request, query=query)

    async def close(self) -> None:
        await self._transport.close()


def _attempt(holder: Holder) -> str:
    return f"/api/v1/workers/{holder.worker}/jobs/{holder.job}/attempts/{holder.attempt}"


def _size(path: Path) -> int:
    return path.stat().st_size


async def _read(path: Path) -> AsyncIterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            yield chunk


async def _put_direct(upload: Upload, path: Path, size: int) -> None:
    """Uploads a file straight to the bucket, with the one permission that the URL carries."""
    headers = {**upload.headers, "Content-Length": str(size)}
    try:
        async with (
            aiohttp.ClientSession(trust_env=True, timeout=_UPLOAD_TIMEOUT) as session,
            session.put(
                # Quoting it again would break its signature.
                URL(str(upload.url), encoded=True),
                data=_read(path),
                headers=headers,
                skip_auto_headers=("Content-Type",),
                allow_redirects=False,
            ) as response,
        ):
            status = response.status
    except (aiohttp.ClientError, TimeoutError) as error:
        raise Unreachable(f"the artifact store did not answer: {error}") from error
    if status >= 300:
        raise Unreachable(f"the artifact store answered {status}")
