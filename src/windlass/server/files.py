"""Routes about logs and artifacts: written by workers, read by people."""

from typing import Annotated, Any
from urllib.parse import quote

from litestar import Controller, Request, Response, get, post, put
from litestar.params import FromPath, FromQuery, JSONBody, Parameter
from litestar.response import Stream

from windlass.api.children import Children
from windlass.api.errors import Forbidden, Unauthorized
from windlass.api.queries import Queries
from windlass.api.render import show_artifact
from windlass.domain.errors import InvalidInput, NotFound
from windlass.domain.files import LogState
from windlass.domain.roles import Identity, Role
from windlass.engine.following import READ_LIMIT, follow_growing
from windlass.engine.log_files import LogReading
from windlass.ports.gateway import Holder
from windlass.server.guard import IDENTITY, identity_of
from windlass.server.services import UseQueries, UseServices
from windlass.wire.files import ArtifactList, LogEnd, LogNext, MediaDuration, RunLimit, Upload
from windlass.wire.jobs import SubmitReply, SubmitRequest
from windlass.wire.workers import Changed

Ask = Request[Any, Any, Any]
Id = Annotated[int, Parameter(ge=1, le=2**53)]
Size = Annotated[int, Parameter(ge=0, le=2**53)]

LOG_CHUNK_LIMIT = 16 * 1024 * 1024

# Artifacts come from jobs: a browser must neither run nor guess what they are.
SAFE_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "sandbox; default-src 'none'",
}


class FileRoutes(Controller):
    """Read what jobs left."""

    path = "/api/v1/jobs/{job:int}"
    tags = ("files",)

    @get("/log", opt={"role": Role.VIEWER}, media_type="text/plain")
    async def log(
        self,
        request: Ask,
        job: Id,
        queries: UseQueries,
        services: UseServices,
        attempt: Annotated[int | None, Parameter(ge=1, le=2**53)] = None,
        offset: Size = 0,
        limit: Annotated[int, Parameter(ge=1, le=READ_LIMIT)] = READ_LIMIT,
        follow: FromQuery[bool] = False,
    ) -> Stream:
        """A job's log from `offset`; with `follow`, until it ends."""
        await queries.check_visible([job], identity_of(request))
        if follow:
            await services.files.log(job, attempt)  # what does not exist is said at once
            growing = follow_growing(services.engine, services.files, job, attempt, offset)
            return Stream(growing, media_type="text/plain", headers=SAFE_HEADERS)
        reading = await services.files.read_log(job, attempt, offset, limit)
        return Stream(reading.chunks, media_type="text/plain", headers=_log_headers(reading))

    @get("/artifacts", opt={"role": Role.VIEWER})
    async def artifacts(
        self, request: Ask, job: Id, queries: UseQueries, services: UseServices
    ) -> ArtifactList:
        """The artifacts of the accepted attempt."""
        await queries.check_visible([job], identity_of(request))
        return ArtifactList([show_artifact(row) for row in await services.files.artifacts(job)])

    @get("/artifacts/{name:path}", opt={"role": None})
    async def artifact(
        self, request: Ask, job: Id, name: FromPath[str], queries: UseQueries, services: UseServices
    ) -> Stream:
        """One artifact's bytes, for people and for workers whose jobs need it."""
        await _check_reader(request, job, queries)
        row, chunks = await services.files.open_artifact(job, name.lstrip("/"))
        headers = {
            **SAFE_HEADERS,
            "Content-Disposition": _disposition(row.name.rpartition("/")[2]),
            "Windlass-Sha256": row.sha256,
        }
        return Stream(chunks, media_type="application/octet-stream", headers=headers)


def _disposition(file: str) -> str:
    """For saving, under a name that any browser understands."""
    plain = "".join(c if c.isascii() and c.isprintable() and c not in '"\\' else "_" for c in file)
    full = "" if plain == file else f"; filename*=UTF-8''{quote(file, safe='')}"
    return f'attachment; filename="{plain}"{full}'


async def _check_reader(request: Ask, job: int, queries: Queries) -> None:
    who: Identity | None = request.scope["state"].get(IDENTITY)
    if who is None:
        raise Unauthorized("this needs a valid token: Authorization: Bearer …")
    await queries.check_visible([job], who)


def _log_headers(reading: LogReading) -> dict[str, str]:
    return {
        "Windlass-Log-State": LogState(reading.row.state).name.lower(),
        "Windlass-Log-Bytes": str(reading.row.bytes),
        "Windlass-Log-Next": str(reading.next),
        **SAFE_HEADERS,
    }


class AttemptRoutes(Controller):
    """What workers write about the attempts they hold; everything else is refused."""

    path = "/api/v1/workers/{worker:int}/jobs/{job:int}/attempts/{attempt:int}"
    tags = ("attempts",)
    opt = {"role": Role.WORKER}  # noqa: RUF012 - the framework's own way

    @post("/log", status_code=200)
    async def append_log(
        self, request: Ask, worker: Id, job: Id, attempt: Id, incarnation: Id, offset: Size,
        services: UseServices,
    ) -> LogNext:  # fmt: skip
        """Log bytes, written at `offset`."""
        holder = _holder(request, worker, incarnation, job, attempt)
        data = await _body(request, LOG_CHUNK_LIMIT)
        return LogNext(await services.files.append_log(holder, offset, data))

    @post("/log/end", status_code=200)
    async def end_log(
        self, request: Ask, worker: Id, job: Id, attempt: Id, incarnation: Id,
        data: JSONBody[LogEnd], services: UseServices,
    ) -> Changed:  # fmt: skip
        """The log is complete, or lost."""
        holder = _holder(request, worker, incarnation, job, attempt)
        await services.files.end_log(holder, data.bytes, data.state, data.peak_memory)
        return Changed(True)

    @post("/progress", status_code=200)
    async def progress(
        self, request: Ask, worker: Id, job: Id, attempt: Id, incarnation: Id,
        data: JSONBody[dict[str, Any]], services: UseServices,
    ) -> Changed:  # fmt: skip
        """How far the attempt is."""
        holder = _holder(request, worker, incarnation, job, attempt)
        await services.files.progress(holder, data.get("progress"))
        return Changed(True)

    @post("/duration", status_code=200)
    async def measured(
        self, request: Ask, worker: Id, job: Id, attempt: Id, incarnation: Id,
        data: JSONBody[MediaDuration], services: UseServices,
    ) -> RunLimit:  # fmt: skip
        """How long the attempt's media is; its timeout follows."""
        holder = _holder(request, worker, incarnation, job, attempt)
        return RunLimit(await services.files.measured(holder, data.duration_ms))

    @post("/jobs")
    async def submit(
        self, request: Ask, worker: Id, job: Id, attempt: Id, incarnation: Id,
        data: JSONBody[SubmitRequest], services: UseServices,
    ) -> SubmitReply:  # fmt: skip
        """Jobs that the running job adds to its own workflow."""
        holder = _holder(request, worker, incarnation, job, attempt)
        return await Children(services.engine).submit(holder, data)

    @put("/artifacts/{name:path}")
    async def put_artifact(
        self, request: Ask, worker: Id, job: Id, attempt: Id, name: FromPath[str], incarnation: Id,
        sha256: FromQuery[str], size: Size, services: UseServices,
        content_type: FromQuery[str] = "",
    ) -> Response[Changed]:  # fmt: skip
        """An artifact's bytes, or word that they were put to the address given before."""
        holder = _holder(request, worker, incarnation, job, attempt)
        plain = name.lstrip("/")
        if plain.endswith("/uploaded"):
            plain = plain.removesuffix("/uploaded")
            await services.files.adopt_artifact(holder, plain, sha256, size, content_type)
        else:
            await services.files.store_artifact(
                holder, plain, request.stream(), sha256, size, content_type
            )
        return Response(Changed(True))

    @post("/artifacts/{name:path}", status_code=200)
    async def presign(
        self, request: Ask, worker: Id, job: Id, attempt: Id, name: FromPath[str], incarnation: Id,
        services: UseServices,
    ) -> Upload:  # fmt: skip
        """Where to put an artifact; without an address, through the server."""
        holder = _holder(request, worker, incarnation, job, attempt)
        plain = name.lstrip("/")
        if not plain.endswith("/presign"):
            raise NotFound("action", plain.rpartition("/")[2])
        url = await services.files.presign_artifact(holder, plain.removesuffix("/presign"))
        return Upload(url)


def _holder(request: Ask, worker: int, incarnation: int, job: int, attempt: int) -> Holder:
    who = identity_of(request)
    if who.worker != worker:
        raise Forbidden("a worker writes only about its own attempts")
    return Holder(worker, incarnation, job, attempt)


async def _body(request: Ask, limit: int) -> bytes:
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise InvalidInput("body", f"at most {limit} bytes", f"more than {limit} bytes")
    return body
