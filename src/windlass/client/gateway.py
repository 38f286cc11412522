"""The agents' side of the HTTP API."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Literal

import aiohttp
from msgspec.structs import replace
from yarl import URL

from windlass.client.transport import CONNECT_SECONDS, ServerError, Transport
from windlass.domain.access.tokens import TOKEN_PREFIX
from windlass.domain.values.errors import Conflict, Unreachable
from windlass.messages.files import LogEnd, LogNext, MediaDuration, RunLimit, StackReport, Upload
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import EnrolReply, EnrolRequest, LeaveRequest, SyncReply, SyncRequest
from windlass.messages.workers import Changed
from windlass.ports.gateway import Holder

CHUNK = 1024 * 1024
MARGIN_SECONDS = 10.0
PENDING = "pending_approval"
# A large file may take any time; a bucket that accepts no connection fails at once.
_UPLOAD_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS)


class WorkerToken:
    """The secret with which a worker enrols. The worker makes it and stores it (`keep`) before
    sending it, so it can repeat an enrolment whose answer was lost. If a server accepted a secret
    and refuses it later, the worker makes a new one.
    """

    def __init__(
        self,
        secret: Callable[[], str],
        token: str | None = None,
        accepted: bool = False,
        keep: Callable[[str, bool], None] | None = None,
    ) -> None:
        self.token = token
        self.accepted = accepted and token is not None
        self._secret = secret
        self._keep = keep

    def propose(self) -> str:
        """Returns the token to enrol with; a new one unless none was accepted yet."""
        if self.token is None or self.accepted:
            self._set(TOKEN_PREFIX + self._secret(), False)
        return str(self.token)

    def accept(self) -> None:
        """Notes that the server knows the token now."""
        self._set(str(self.token), True)

    def _set(self, token: str, accepted: bool) -> None:
        if self._keep is not None:
            self._keep(token, accepted)
        self.token, self.accepted = token, accepted


class HttpGateway:
    """`Gateway` over one server; after enrolling it presents the token of its incarnation."""

    def __init__(self, transport: Transport, own: WorkerToken) -> None:
        self._transport = transport
        self._given = transport.token
        self._own = own

    async def enrol(self, request: EnrolRequest) -> EnrolReply:
        """Enrols with the worker's own secret; with the code if there is none or it is refused."""
        refusal = ""
        if self._own.accepted:
            try:
                reply = await self._enrol(replace(request, code=None), self._own.token)
            except (ServerError, Conflict) as error:
                if not _refuses_token(error):
                    raise
                refusal = error.message
            else:
                if request.code is None or reply.status != PENDING:
                    return self._begin(reply)
        try:
            token = self._own.propose()
            reply = await self._enrol(replace(request, token=token), self._given)
        except ServerError as error:
            if not refusal or error.status not in (401, 403):
                raise
            raise ServerError(error.status, error.code, f"{refusal}; {error.message}") from error
        self._own.accept()
        return self._begin(reply)

    def _begin(self, reply: EnrolReply) -> EnrolReply:
        self._transport.token = reply.token
        return reply

    async def _enrol(self, request: EnrolRequest, bearer: str | None) -> EnrolReply:
        self._transport.token = bearer
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
        reply = await self._transport.call("POST", path, LogNext, query=query, content=data)
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

    async def measured(self, holder: Holder, duration_ms: int) -> int | None:
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
            await self._transport.call("PUT", route, Changed, query=facts, content=_read(path))
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

    async def step(self, holder: Holder, request: StepRequest) -> StepReply:
        query = {"incarnation": holder.incarnation}
        path = f"{_attempt(holder)}/steps"
        return await self._transport.call("POST", path, StepReply, request, query=query)

    async def stack(self, holder: Holder, report: StackReport) -> None:
        query = {"incarnation": holder.incarnation}
        path = f"{_attempt(holder)}/stack"
        await self._transport.call("POST", path, Changed, report, query=query)

    async def close(self) -> None:
        await self._transport.close()


def _refuses_token(error: ServerError | Conflict) -> bool:
    """Whether a server does not take this token for this worker, now or ever."""
    if isinstance(error, ServerError):
        return error.status in (401, 403)
    return error.code == "name_taken"


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
