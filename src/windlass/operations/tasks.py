"""Forms: the tasks with what they take, and a job before it is submitted."""

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final

import msgspec

from windlass.domain.access.rights import FLEET, Action, Identity, may, sees
from windlass.domain.explain.equivalents import equivalents, start_texts
from windlass.domain.job.job import JobSpec
from windlass.domain.matching.functions import SCHEMAS
from windlass.domain.matching.matching import metadata_of
from windlass.domain.matching.shapes import NAMESPACES
from windlass.domain.matching.workers import may_claim
from windlass.domain.tasks.ffmpeg import FfmpegArgs
from windlass.domain.tasks.gstreamer import GstreamerArgs
from windlass.domain.tasks.media import MediaArgs
from windlass.domain.tasks.python import PythonArgs
from windlass.domain.tasks.reported import MAX_SHOWN, ReportedTask, unpack
from windlass.domain.tasks.shell import ShellArgs
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput, NotFound, WindlassError
from windlass.domain.values.names import did_you_mean
from windlass.engine.engine import Engine
from windlass.engine.schedules.templates import weight_of
from windlass.messages.jobs import SubmitRequest
from windlass.messages.schedules import StartRequest
from windlass.messages.tasks import Preview, PreviewRequest, Problem, TaskInfo, TaskList
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.errors import Forbidden
from windlass.operations.dispatch.routes import COUNTED, Routes
from windlass.operations.templates import find
from windlass.ports.clock import Clock
from windlass.ports.loop_time import aside
from windlass.workflows.expansion import expand

routes = Routes("/api/v1", "tasks")

FRESH_MS: Final = 5_000  # how long what workers told is used again
MAX_PROBLEMS: Final = 20
UNCHECKED: Final = "unchecked"  # a task whose arguments nobody checks
NOTHING: Final = object()
_BUILT_IN: Final[Mapping[str, tuple[type[msgspec.Struct], str]]] = {
    "shell": (ShellArgs, "Runs a program with its arguments."),
    "python": (PythonArgs, "Calls a Python function by its path."),
    "ffmpeg": (FfmpegArgs, "Converts media with ffmpeg."),
    "gstreamer": (GstreamerArgs, "Runs a GStreamer pipeline."),
    "media": (MediaArgs, "Converts media with the better of two tools."),
}


@routes.get("/tasks", needs=Action.READ_FLEET)
async def list_tasks(call: Call) -> TaskList:
    """Returns the tasks that jobs can name, with the schemas of their arguments."""
    known = await call.services.tasks.read()
    found = list(built_in())
    for name, task in sorted(known.tasks.items()):
        count = sum(_may_see(call.who, served) for served in known.workers[name])
        if count and name not in _BUILT_IN:
            found.append(_shown(task, count))
    return TaskList(found, known.more)


@routes.post("/jobs/preview", needs=Action.SUBMIT_JOBS, audit=COUNTED)
async def preview(call: Call, data: Body[PreviewRequest]) -> Preview:
    """Checks a job without submitting it, and returns the texts that would submit it."""
    problems: list[Problem] = []
    left = dict(data.job)
    # Each field that was reported is left out, to find what is wrong with others as well.
    while len(problems) < MAX_PROBLEMS:
        try:
            spec = await _check(call, left)
        except WindlassError as error:
            problems.append(_problem(error))
            if not _leave_out(left, problems[-1].field):
                break
        else:
            return Preview(problems=problems) if problems else await _preview(call, spec)
    return Preview(problems=problems)


@routes.post("/templates/{name:str}/preview", needs=Action.SUBMIT_JOBS, audit=COUNTED, costly=True)
async def preview_start(
    call: Call, name: str, data: Body[StartRequest], namespace: str | None = None
) -> Preview:
    """Checks the parameters of a template without starting it, and returns the texts for it."""
    template = await find(call, name, data.version, namespace)

    def check() -> None:
        expand(template.body, data.parameters)  # The jobs are freed in the thread, too.

    try:
        await aside(weight_of(template.body), check)
    except InvalidInput as error:
        return Preview(problems=[_parameter_problem(error)])
    texts = start_texts(template.name, data.parameters, data.version)
    return Preview(problems=[], command=texts.command, python=texts.python)


async def _preview(call: Call, spec: JobSpec) -> Preview:
    listed = {task.name: task for task in (await list_tasks(call)).tasks}
    task = listed.get(spec.task)
    notes = []
    if task is None:
        notes = [f"no worker has told of the task {spec.task}{did_you_mean(spec.task, listed)}"]
    argv = spec.args.get("argv") if spec.task == "shell" and isinstance(spec.args, dict) else None
    if isinstance(argv, list) and argv and isinstance(argv[0], str) and " " in argv[0].strip():
        notes.append(f"the program is called {argv[0]!r}, with its spaces: one word for each line")
    texts = equivalents(spec, None if task is None else task.path)
    return Preview(problems=[], **texts._asdict(), notes=notes)


async def _check(call: Call, job: Mapping[str, Any]) -> JobSpec:
    """Checks a job as `submit` does."""
    request = SubmitRequest(jobs=[convert(job, JobSpec, "jobs[0]")])
    (spec,), _ = await call.services.submissions.prepare(request, call.who)
    (checked,) = call.services.engine.submissions.validate([spec])
    return msgspec.structs.replace(checked.spec, submitted_by=None)


class _Known:
    """What the live workers told: tasks by name, with the namespaces of each worker that has it."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.tasks: dict[str, ReportedTask] = {}
        self.workers: dict[str, list[tuple[str, ...] | None]] = {}
        self.more = False


class WorkersTasks:
    """The tasks that live workers offer, read again every few seconds."""

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._known: _Known | None = None

    async def read(self) -> _Known:
        """Returns what they told."""
        now = self._clock.now_ms()
        known = self._known
        if known is None or not 0 <= now - known.at < FRESH_MS:
            rows = await self._engine.store.read(lambda tx: tx.views.fleet())
            known = _Known(now)
            for _, _, status, _, _, _, static, dynamic in rows:
                # Most workers tell nothing: their metadata is not decoded.
                if may_claim(status) and SCHEMAS in dynamic:
                    _add(known, metadata_of(static, dynamic))
            self._known = known
        return known


def _add(known: _Known, metadata: Mapping[str, Any]) -> None:
    served = metadata.get(NAMESPACES)
    names = None if served is None else _names(served)
    for task in unpack(metadata.get(SCHEMAS)):
        if task.name not in known.tasks and len(known.tasks) >= MAX_SHOWN:
            known.more = True
            continue
        known.tasks.setdefault(task.name, task)
        known.workers.setdefault(task.name, []).append(names)


def _names(served: object) -> tuple[str, ...]:
    return tuple(map(str, served)) if isinstance(served, list) else (str(served),)


def _may_see(who: Identity, served: tuple[str, ...] | None) -> bool:
    if may(who, Action.READ_FLEET, FLEET):
        return True
    return served is not None and all(sees(who, name, Action.READ_FLEET) for name in served)


def _shown(task: ReportedTask, workers: int) -> TaskInfo:
    return TaskInfo(is_built_in=False, workers=workers, **msgspec.structs.asdict(task))


@cache
def built_in() -> tuple[TaskInfo, ...]:
    """Returns the built-in tasks with the schemas of their arguments."""
    return tuple(_built_in())


def _built_in() -> Iterator[TaskInfo]:
    for name, (kind, doc) in _BUILT_IN.items():
        (schema,), found = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
        own = found.pop(kind.__name__, schema)
        whole = {**own, "$defs": found} if found else dict(own)
        order = [field.encode_name for field in msgspec.structs.fields(kind)]
        yield TaskInfo(name=name, is_built_in=True, doc=doc, schema=whole, order=order)


def _leave_out(job: dict[str, Any], field: str) -> bool:
    """Leaves out the option that a field belongs to; returns whether it was there."""
    name = field.partition(".")[0].partition("[")[0]
    if name == "args" and job.get("task") != UNCHECKED:
        job["task"] = UNCHECKED  # Which of its arguments are missing is known.
        job.pop("args", None)
        return True
    return job.pop(name, NOTHING) is not NOTHING


def _parameter_problem(error: InvalidInput) -> Problem:
    """Returns what is wrong with a parameter, or with the whole."""
    field = error.field
    if field == "parameters":
        field = f"parameters.{error.got}"
    return Problem(field=field, message=error.message)


def _problem(error: WindlassError) -> Problem:
    """Returns what is wrong, with the field as forms name it: `args.argv`."""
    if isinstance(error, InvalidInput):
        prefix, message = "jobs[0].", error.message
        return Problem(field=error.field.removeprefix(prefix), message=message.replace(prefix, ""))
    if isinstance(error, Forbidden):
        return Problem(field="namespace", message=error.message)
    if isinstance(error, NotFound):
        return Problem(field=_FIELDS.get(error.kind, error.kind), message=error.message)
    raise error


_FIELDS: Final = {"job": "parent", "workflow": "workflow"}
