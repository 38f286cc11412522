"""One job of a file as it is submitted, checked as the server will check it."""

import re
from typing import Any, Final

from windlass.domain.config import Config
from windlass.domain.job.capability import parse_grace
from windlass.domain.job.job import Concurrency, Door, JobSpec, check_name
from windlass.domain.matching.rates import Rate
from windlass.domain.tasks.ffmpeg import FfmpegTask
from windlass.domain.tasks.gstreamer import GstreamerTask
from windlass.domain.tasks.media import MediaTask
from windlass.domain.tasks.python import PythonTask
from windlass.domain.tasks.shell import ShellTask
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms
from windlass.domain.values.times import parse_moment
from windlass.wire.jobs import JobRequest, Limit, RateLimit
from windlass.workflows.format import OF_COMMANDS
from windlass.workflows.nodes import Misdescribed, Node, Place, plain

_SAME: Final = (
    "task", "args", "allow_failure", "unblock", "resources", "target", "secrets", "queue",
    "priority", "timeout", "idle_timeout", "duration", "retries", "retry_on", "not_before",
    "start_before", "finish_before", "capability_grace", "apart", "preemptible",
)  # fmt: skip
_WORDS: Final = {"argv": "run", "max_retries": "retries"}
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def make_job(name: str, node: Node, field: str, priority: Node | None) -> JobRequest:
    """The job that an entry describes, without what it waits for."""
    said = {n: part for n, part in node.entries().items() if part.value is not None}
    fields: dict[str, Any] = {n: plain(said[n]) for n in _SAME if n in said}
    if "run" in said:
        fields |= _command(said, node, field)
    elif "task" not in said:
        raise node.refuse(field, "a job with run, task or workflow", "none of them")
    else:
        _refuse_parts(said, node, field, OF_COMMANDS, "run")
    _refuse_parts(said, node, field, ("parameters",), "workflow")
    for clauses in ("requires", "prefers"):
        if clauses in said:
            fields[clauses] = [plain(clause) for clause in said[clauses].items()]
    if "labels" in said:
        fields["labels"] = {n: part.text for n, part in said["labels"].entries().items()}
    if "concurrency" in said:
        fields["concurrency"] = Limit(**plain(said["concurrency"]))
    if "rate" in said:
        fields["rate"] = RateLimit(**plain(said["rate"]))
    if priority is not None and "priority" not in said:
        fields["priority"] = plain(priority)
    return JobRequest(name=name, **fields)


def check_job(request: JobRequest, node: Node, field: str) -> None:
    """Refuse what the server would refuse, with the line it stands on."""
    try:
        _DOOR.prepare(_spec(request), "job")
    except InvalidInput as error:
        inner = error.field.removeprefix("job").lstrip(".")
        where = f"{field}.{_shown(inner)}" if inner else field
        raise Misdescribed(
            place_in(node, inner), where, error.expected, error.got, error.hint
        ) from None


def check_job_name(name: str, node: Node, field: str) -> None:
    """Refuse what cannot be a name."""
    try:
        check_name("name", name)
    except InvalidInput as error:
        raise node.refuse(f"{field}.name", error.expected, name) from None


def place_in(node: Node, field: str) -> Place:
    """Where a field of a job stands, or what it is part of."""
    found, place = node, node.place
    for name, number in _STEP.findall(_shown(field)):
        if name:
            place = found.place_of(name)
            child = found.get(name)
        else:
            items = found.value if isinstance(found.value, list) else []
            child = items[int(number)] if int(number) < len(items) else None
        if child is None:
            break
        found = child
        place = child.place if number else place
    return place


def _shown(field: str) -> str:
    """The field as files have it: `args.argv[1]` is `run[1]`, `timeout_ms` is `timeout`."""
    name, rest = field.partition(" ")[0], ""  # a clause comes with what it is about
    if field.startswith("args."):
        first = re.match(r"args\.(\w+)(.*)", field)
        if first and first[1] in ("argv", *OF_COMMANDS):
            name, rest = first[1], first[2]
    return _WORDS.get(name, name.removesuffix("_ms")) + rest


def _command(said: dict[str, Node], node: Node, field: str) -> dict[str, Any]:
    _refuse_parts(said, node, field, ("task", "args"), None)
    args: dict[str, Any] = {"argv": [word.text for word in said["run"].items()]}
    if "env" in said:
        args["env"] = {name: part.text for name, part in said["env"].entries().items()}
    if "inputs" in said:
        args["inputs"] = [_input(item, field) for item in said["inputs"].items()]
    if "artifacts" in said:
        args["artifacts"] = plain(said["artifacts"])
    return {"task": "shell", "args": args}


def _input(item: Node, field: str) -> dict[str, Any]:
    """An input; one that names a job is completed when that is known (`references.py`)."""
    fields: dict[str, Any] = plain(item)
    if not isinstance(fields.get("job"), str):
        return fields
    if not isinstance(fields["artifact"], str):
        raise item.refuse(f"{field}.inputs", "an artifact by name with job", fields["artifact"])
    rest = {name: value for name, value in fields.items() if name != "job"}
    return rest | {"artifact": {"$lookup": fields["artifact"]}}


def _refuse_parts(
    said: dict[str, Node], node: Node, field: str, names: tuple[str, ...], needs: str | None
) -> None:
    for name in names:
        if name in said:
            expected = f"without {name} beside run" if needs is None else f"with {name} for {needs}"
            raise Misdescribed(node.place_of(name), field, expected, name)


def _spec(request: JobRequest) -> JobSpec:
    limit = request.concurrency
    return JobSpec(
        task=request.task,
        args=request.args,
        priority=request.priority,
        queue=request.queue,
        requires=tuple(request.requires),
        resources=request.resources or None,
        target=request.target,
        secrets=tuple(request.secrets),
        name=request.name,
        duration_ms=_duration(request.duration, "duration"),
        timeout_ms=_duration(request.timeout, "timeout"),
        idle_timeout_ms=_duration(request.idle_timeout, "idle_timeout"),
        max_retries=request.retries,
        retry_on=tuple(request.retry_on),
        not_before=_moment(request.not_before, "not_before"),
        prefers=tuple(request.prefers),
        apart=request.apart,
        rate=_rate(request.rate),
        preemptible=request.preemptible,
        start_before=_moment(request.start_before, "start_before"),
        finish_before=_moment(request.finish_before, "finish_before"),
        capability_grace_ms=parse_grace(request.capability_grace, "capability_grace"),
        concurrency=None if limit is None else Concurrency(limit.key, limit.max),
        labels=request.labels or None,
    )


def _duration(value: float | str | None, field: str) -> int | None:
    return None if value is None else parse_duration_ms(value, field)


def _rate(asked: RateLimit | None) -> Rate | None:
    if asked is None:
        return None
    return Rate(asked.key, asked.max, parse_duration_ms(asked.per, "rate.per"))


def _moment(value: str | None, field: str) -> int | None:
    return None if value is None else parse_moment(value, field)


_KINDS: Final = (FfmpegTask(), GstreamerTask(), MediaTask(), PythonTask(), ShellTask())
_DOOR: Final = Door(Config(), {kind.name: kind for kind in _KINDS})
