"""What workers write about the attempts they hold, and what running jobs ask for."""

from typing import Any, Final, assert_never

import msgspec

from windlass.domain.access.rights import Action, Identity, Resource, Role
from windlass.domain.job.job import JobSpec
from windlass.domain.rows.steps import StepRow, StepState
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound
from windlass.engine.engine import Engine
from windlass.messages.files import LogEnd, LogNext, MediaDuration, RunLimit, StackReport, Upload
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.workers import Changed
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import BINARY, Call, Stream
from windlass.operations.dispatch.routes import Routes
from windlass.operations.files import Attempt, Number, Size, download
from windlass.operations.parse import check_count, job_spec
from windlass.operations.queries import Queries
from windlass.operations.rights import Rights, authorize
from windlass.ports.gateway import Holder
from windlass.ports.loop_time import LongList, aside

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
    return await add_children(call.services.engine, holder, data)


@routes.post("/steps", needs=Action.RUN_STEPS)
async def step(
    call: Call, worker: Number, job: Number, attempt: Attempt, incarnation: Number,
    data: Body[StepRequest],
) -> StepReply:  # fmt: skip
    """Stores a step of the running function, or begins what it waits for."""
    holder = _holder(call, worker, incarnation, job, attempt)
    return await take_step(call.services.engine, holder, data)


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


ALIVE: Final = StepReply("done")
_EVERYBODYS: Final = Identity(0, "", Role.ADMIN)  # the engine has checked whose jobs they are


async def take_step(engine: Engine, holder: Holder, request: StepRequest) -> StepReply:
    """Does what a running function asks for; the engine looks at its lease."""
    steps, key = engine.steps, request.key
    if request.do == "find":
        return _reply(await steps.find(holder, key))
    if request.do == "store":
        return _reply(await steps.store_result(holder, key, request.value))
    if request.do == "sleep":
        if request.wait_ms is None:
            raise InvalidInput("wait_ms", "given", "nothing")
        return _reply(await steps.sleep(holder, key, request.wait_ms))
    if request.do == "wait_for":
        return _reply(await steps.wait_for(holder, key, request.name, request.wait_ms))
    if request.do == "ask":
        asked = await steps.ask(holder, key, request.question, request.schema, request.wait_ms)
        return _reply(asked)
    if request.do == "send":
        await steps.send_from(holder, request.name, request.value, key)
        return ALIVE
    if request.do == "join":
        return await _joined(engine, await steps.join(holder, key, request.jobs, request.wait_ms))
    if request.do == "alive":
        await steps.note_alive(holder)
        return ALIVE
    assert_never(request.do)


async def _joined(engine: Engine, row: StepRow) -> StepReply:
    """Returns the jobs that ended, as lists show them."""
    if row.state != StepState.DONE:
        return _reply(row)
    ids = msgspec.json.decode(row.value or b"[]", type=list[int])
    jobs = {job.id: job for job in await Queries(engine).some_jobs(ids, _EVERYBODYS)}
    gone = [job for job in ids if job not in jobs]
    if gone:
        raise Conflict("job_removed", f"job {gone[0]}, which this one waited for, was removed")
    return StepReply("done", [jobs[job] for job in ids])


def _reply(row: StepRow | None) -> StepReply:
    if row is None:
        return StepReply("missing")
    if row.state == StepState.DONE:
        value = None if row.value is None else msgspec.Raw(row.value)
        return StepReply("done", value)
    return StepReply("pending" if row.state == StepState.PENDING else "timed_out")


async def add_children(engine: Engine, holder: Holder, request: SubmitRequest) -> SubmitReply:
    """Submits children of the job that the holder runs, with the rights of its namespace."""
    check_count("jobs", request.jobs, engine.config)
    if request.workflow is not None:
        raise InvalidInput("workflow", "unset: children join their parent's workflow", "one")
    if request.key is None:
        raise InvalidInput("key", "given", "nothing")
    namespace = await engine.jobs.namespace_of(holder.job)
    who = Identity(0, f"job {holder.job}", Role.SUBMITTER, (namespace,))
    numbered = enumerate(request.jobs)
    specs = await aside(
        len(request.jobs),
        lambda: LongList(job_spec(_alone(job), who, f"jobs[{n}]") for n, job in numbered),
    )
    await Rights(engine).check_children(holder.job, specs, who)
    done = await engine.jobs.submit_children(holder, specs, request.key)
    return SubmitReply(list(done.ids), list(done.applied), done.workflow, done.at)


def _alone(job: JobSpec) -> JobSpec:
    """Returns a job without a parent and a workflow of its own: children have those they have."""
    return msgspec.structs.replace(job, parent=None, workflow=None)
