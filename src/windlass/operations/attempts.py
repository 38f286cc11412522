"""Routes on which workers write about the attempts they hold."""

from typing import Any, Final

from windlass.api.children import Children
from windlass.api.rights import authorize
from windlass.api.steps.attempt import AttemptSteps
from windlass.domain.access.rights import Action, Resource
from windlass.domain.values.errors import NotFound
from windlass.operations.dispatch.answers import BINARY, Stream
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.files import Attempt, Number, Size, download
from windlass.ports.gateway import Holder
from windlass.wire.files import LogEnd, LogNext, MediaDuration, RunLimit, StackReport, Upload
from windlass.wire.jobs import SubmitReply, SubmitRequest
from windlass.wire.steps import StepReply, StepRequest
from windlass.wire.workers import Changed

LOG_CHUNK_LIMIT: Final = 16 * 1024 * 1024

routes = Routes("/api/v1/workers/{worker:int}/jobs/{job:int}/attempts/{attempt:int}", "attempts")


@routes.post("/log", needs=Action.WRITE_ATTEMPTS, body_limit=LOG_CHUNK_LIMIT, raw_body=True)
async def append_log(
    call: Call, worker: Number, job: Number, attempt: Attempt, incarnation: Number, offset: Size
) -> LogNext:
    """Writes log bytes at `offset`."""
    holder = _holder(call, worker, incarnation, job, attempt)
    return LogNext(await call.services.files.append_log(holder, offset, await call.body()))


@routes.post("/log/end", needs=Action.WRITE_ATTEMPTS)
async def end_log(
    call: Call, worker: Number, job: Number, attempt: Attempt, incarnation: Number,
    data: Body[LogEnd],
) -> Changed:  # fmt: skip
    """Marks the log as complete, or as lost."""
    holder = _holder(call, worker, incarnation, job, attempt)
    await call.services.files.end_log(holder, data.bytes, data.state, data.peak_memory)
    return Changed(True)


@routes.post("/progress", needs=Action.WRITE_ATTEMPTS)
async def progress(
    call: Call, worker: Number, job: Number, attempt: Attempt, incarnation: Number,
    data: Body[dict[str, Any]],
) -> Changed:  # fmt: skip
    """Reports how far the attempt is."""
    holder = _holder(call, worker, incarnation, job, attempt)
    await call.services.files.progress(holder, data.get("progress"))
    return Changed(True)


@routes.post("/duration", needs=Action.WRITE_ATTEMPTS)
async def measured(
    call: Call, worker: Number, job: Number, attempt: Attempt, incarnation: Number,
    data: Body[MediaDuration],
) -> RunLimit:  # fmt: skip
    """Reports how long the attempt's media is; its timeout follows."""
    holder = _holder(call, worker, incarnation, job, attempt)
    return RunLimit(await call.services.files.measured(holder, data.duration_ms))


@routes.post("/jobs", needs=Action.SUBMIT_CHILDREN, status=201, bulk=True)
async def submit_children(
    call: Call, worker: Number, job: Number, attempt: Attempt, incarnation: Number,
    data: Body[SubmitRequest],
) -> SubmitReply:  # fmt: skip
    """Submits jobs that the running job adds to its own workflow."""
    holder = _holder(call, worker, incarnation, job, attempt)
    return await Children(call.services.engine).submit(holder, data)


@routes.post("/steps", needs=Action.RUN_STEPS)
async def step(
    call: Call, worker: Number, job: Number, attempt: Attempt, incarnation: Number,
    data: Body[StepRequest],
) -> StepReply:  # fmt: skip
    """Stores a step of the running function, or begins what it waits for."""
    holder = _holder(call, worker, incarnation, job, attempt)
    return await AttemptSteps(call.services.engine).step(holder, data)


@routes.post("/stack", needs=Action.WRITE_ATTEMPTS)
async def stack(
    call: Call, worker: Number, job: Number, attempt: Attempt, incarnation: Number,
    data: Body[StackReport],
) -> Changed:  # fmt: skip
    """Answers where the running function is, because a sync asked for it."""
    holder = _holder(call, worker, incarnation, job, attempt)
    await call.services.files.stack(holder, data)
    return Changed(True)


@routes.get("/inputs/{source:int}/{name:path}", needs=Action.READ_INPUTS, media_type=BINARY)
async def get_input(
    call: Call, worker: Number, job: Number, attempt: Attempt, source: Number, name: str,
    incarnation: Number,
) -> Stream:  # fmt: skip
    """Streams an artifact of another job that the running one waits for or declares as input."""
    holder = _holder(call, worker, incarnation, job, attempt)
    return download(*await call.services.files.open_input(holder, source, name))


@routes.put("/artifacts/{name:path}", needs=Action.WRITE_ATTEMPTS, raw_body=True)
async def put_artifact(
    call: Call, worker: Number, job: Number, attempt: Attempt, name: str, incarnation: Number,
    sha256: str, size: Size, content_type: str = "",
) -> Changed:  # fmt: skip
    """Stores an artifact's bytes; below `/uploaded`, adopts those that are in the bucket."""
    holder, files = _holder(call, worker, incarnation, job, attempt), call.services.files
    if name.endswith("/uploaded"):
        plain = name.removesuffix("/uploaded")
        await files.adopt_artifact(holder, plain, sha256, size, content_type)
    else:
        await files.store_artifact(holder, name, call.stream(), sha256, size, content_type)
    return Changed(True)


@routes.post("/artifacts/{name:path}", needs=Action.WRITE_ATTEMPTS, raw_body=True)
async def presign(
    call: Call, worker: Number, job: Number, attempt: Attempt, name: str, incarnation: Number
) -> Upload:
    """Returns the URL to upload an artifact to; without one, upload it to the server."""
    holder = _holder(call, worker, incarnation, job, attempt)
    if not name.endswith("/presign"):
        raise NotFound("action", name.rpartition("/")[2])
    plain = name.removesuffix("/presign")
    return Upload(await call.services.files.presign_artifact(holder, plain))


def _holder(call: Call, worker: int, incarnation: int, job: int, attempt: int) -> Holder:
    held = Resource(worker=worker, incarnation=incarnation)
    authorize(call.who, Action.WRITE_ATTEMPTS, held)
    return Holder(worker, incarnation, job, attempt)
