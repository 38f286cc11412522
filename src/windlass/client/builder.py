"""A workflow that a program puts together in a block, and how programs give jobs to a client."""

from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from datetime import timedelta
from types import TracebackType
from typing import Any, Final, ParamSpec, Protocol, Self, TypeVar, overload

import msgspec

from windlass.client.errors import Delivery, Spooled
from windlass.client.handles import AsyncJob, SpooledJob, delivered
from windlass.client.service import Service
from windlass.client.uploads import with_uploads
from windlass.client.workflows import AsyncWorkflow
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, InvalidInput, UnknownName
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.quantities import DurationLike, wait_seconds
from windlass.messages.jobs import NewWorkflow, SubmitRequest
from windlass.messages.workflows import Workflow
from windlass.tasks.handles import reference_of
from windlass.tasks.submitting import Submits, with_ids
from windlass.tasks.task import named

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


_BUILDING: Final[ContextVar[object]] = ContextVar("windlass_block", default=None)


class HasId(Protocol):
    """A handle on a job that was submitted before."""

    @property
    def id(self) -> int: ...


class PlannedJob(SpooledJob[R_co]):
    """A job of a workflow, which has an id once the workflow is submitted.

    It is equal to no other handle: inside the block it has no id, and a hash must not change.
    """

    def __init__(self, service: Service, name: str, block: "AsyncWorkflowBlock") -> None:
        super().__init__(service, None)
        self.name = name
        self._block = block

    @property
    def id(self) -> int:
        """The job's number."""
        if not super().id:
            raise Conflict(
                "not_submitted",
                f"job {self.name} has no id yet: its workflow is submitted when its block ends",
            )
        return self._number

    def __windlass_reference__(self) -> int | str:
        """Returns its name in the block of its workflow, else its id."""
        return self.name if not self._number and _BUILDING.get() is self._block else self.id

    def submitted_as(self, number: int, given_at: int) -> None:
        """Takes its id, and when it got it, from the answer to the submission."""
        self._number, self._given_at = number, given_at

    def __repr__(self) -> str:
        return f"<job {self._number or self.name}>"


class AsyncWorkflowBlock(AsyncWorkflow):
    """A workflow that is put together in an `async with` block and submitted when that ends.

    Nothing is submitted if the block raises. Made by `client.workflow(name)`. It is equal to no
    other handle, as its jobs are.
    """

    def __init__(self, service: Service, workflow: NewWorkflow) -> None:
        super().__init__(service, 0)
        self._new = workflow
        self._requests: list[JobSpec] = []
        self._jobs: dict[str, PlannedJob[Any]] = {}
        self._alike: dict[str, int] = {}  # how many jobs got a name like this
        self._open = False
        self._delivery: Delivery | None = None  # if no server took it at once

    @property
    def id(self) -> int:
        """The workflow's number, 0 before the end of the block; raises `Conflict` while it waits
        in a spool."""
        if not self._number and self._delivery is not None:
            reply = self._delivery.reply()
            self._number, self._given_at = reply.workflow or 0, reply.at
        return self._number

    async def wait(self, timeout: DurationLike | None = None) -> Workflow:
        """Waits until the workflow was taken and has ended; raises `ResultTimeout`."""
        return await super().wait(await delivered(self._delivery, timeout))

    @overload
    def submit(
        self, task: Submits[P, R], /, *args: P.args, **kwargs: P.kwargs
    ) -> PlannedJob[R]: ...
    @overload
    def submit(self, task: str, /, **kwargs: Any) -> PlannedJob[Any]: ...
    @overload
    def submit(self, task: JobSpec, /) -> PlannedJob[Any]: ...

    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> PlannedJob[Any]:
        """Adds a job, as `client.submit` takes it.

        Its options are those of the task: `wf.submit(build.options(after=fetch, name="b"), 1)`.
        `after` and `after_any` take jobs of this workflow, by handle or name, and earlier ones.
        """
        if not self._open:
            raise Conflict("block_ended", "jobs are added to a workflow inside its with block")
        request = self._request(task, args, kwargs)
        if request.workflow is not None:
            raise InvalidInput("workflow", "unset in the block of another one", request.workflow)
        name = request.name or self._free_name(task, request)
        if name in self._jobs:
            raise InvalidInput("name", "unique in its workflow", name)
        changes: dict[str, Any] = {
            "name": name,
            "namespace": request.namespace or self._new.namespace,
            "after": self._references(request.after, "after"),
            "after_any": self._references(request.after_any, "after_any"),
        }
        self._requests.append(msgspec.structs.replace(request, **changes))
        planned: PlannedJob[Any] = PlannedJob(self._service, name, self)
        self._jobs[name] = planned
        return planned

    def _request(self, task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobSpec:
        """Returns the job; arguments may be jobs of this block, which have no ids yet."""
        before = _BUILDING.set(self)
        try:
            return request_for(task, args, kwargs)
        finally:
            _BUILDING.reset(before)

    async def __aenter__(self) -> Self:
        if self._number or self._requests:
            raise Conflict("block_ended", "a workflow is submitted once: make another")
        self._open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._open = False
        if kind is None:
            await self._send()

    async def _send(self) -> None:
        ready = await with_uploads(self._service, self._requests)
        try:
            reply = await self._service.submit(submission(ready, self._new))
        except Spooled as spooled:
            self._delivery = spooled.delivery
            for place, planned in enumerate(self._jobs.values()):
                planned.spooled_as(spooled.delivery, place)
            return
        self._number, self._given_at = reply.workflow or 0, reply.at
        for planned, number in zip(self._jobs.values(), reply.ids, strict=True):
            planned.submitted_as(number, reply.at)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"<workflow {self._number or self._new.name}>"

    def _free_name(self, task: Any, request: JobSpec) -> str:
        base = getattr(task, "__name__", request.task)
        while True:
            number = self._alike[base] = self._alike.get(base, 0) + 1
            name = base if number == 1 else f"{base}-{number}"
            if name not in self._jobs:
                return name

    def _references(self, references: Sequence[Any], field: str) -> tuple[int | str, ...]:
        return tuple(self._reference(reference, field) for reference in references)

    def _reference(self, reference: HasId | int | str, field: str) -> int | str:
        if isinstance(reference, str):
            if reference not in self._jobs:
                raise InvalidInput(field, "the name of a job of this workflow", reference)
            return reference
        if isinstance(reference, int):
            return reference
        planned = getattr(reference, "asynchronous", reference)
        if isinstance(planned, PlannedJob) and self._jobs.get(planned.name) is planned:
            return planned.name
        return reference.id


def check_filters(given: Iterable[str], known: Sequence[str]) -> None:
    """Raises `UnknownName` for a filter that a list does not have."""
    for name in given:
        if name not in known:
            listed = f"one of {', '.join(known)}"
            raise UnknownName("filter", name, listed, did_you_mean(name, known))


def new_workflow(name: str, options: Mapping[str, Any]) -> NewWorkflow:
    """Returns the workflow that these options describe."""
    known = set(NewWorkflow.__struct_fields__) - {"name", "template"}
    unknown = sorted(options.keys() - known)
    if unknown:
        listed, found = ", ".join(sorted(known)), did_you_mean(unknown[0], sorted(known))
        raise UnknownName("workflow option", unknown[0], f"one of {listed}", found)
    return NewWorkflow(name=name, **{**options, "key_for": seconds_of(options.get("key_for"))})


def seconds_of(duration: DurationLike | None) -> float | str | None:
    """Returns a duration as it travels: a `timedelta` in seconds, others as they are."""
    return duration.total_seconds() if isinstance(duration, timedelta) else duration


def timeout_seconds(timeout: DurationLike) -> float:
    """Returns a time limit in seconds."""
    seconds = wait_seconds(timeout)
    if seconds is None or not seconds > 0:
        raise InvalidInput("timeout", "more than 0 seconds", timeout)
    return seconds


def request_for(task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobSpec:
    """Returns the job of a call of a task, given as such, by name, or as a `JobSpec`."""
    if isinstance(task, JobSpec):
        if args or kwargs:
            raise InvalidInput("args", "inside the request", "more beside it")
        return task
    if isinstance(task, str):
        task = named(task)
    if not isinstance(task, Submits):
        raise InvalidInput("function", "a function marked with @windlass.task", repr(task))
    made: JobSpec = task.job(*args, **kwargs)
    return made


def submission(jobs: Iterable[JobSpec], workflow: NewWorkflow | None = None) -> SubmitRequest:
    """Returns the request for jobs, which may wait for handles."""
    return SubmitRequest(jobs=[with_ids(job) for job in jobs], workflow=workflow)


def checked_jobs(jobs: Iterable[JobSpec]) -> list[JobSpec]:
    """Returns the jobs of any list or generator; says what to give for a task itself."""
    given = list(jobs)
    for place, job in enumerate(given):
        if not isinstance(job, JobSpec):
            hint = "describe the call: task.job(1, 2)" if isinstance(job, Submits) else ""
            raise InvalidInput(f"jobs[{place}]", "a JobSpec", repr(job), hint)
    return given


def all_behind(jobs: Any) -> list[Any]:
    """Returns jobs that are given by id or handle, as `behind` does."""
    if isinstance(jobs, str) or not isinstance(jobs, Iterable):
        raise InvalidInput("jobs", "a list of ids or handles of jobs", repr(jobs))
    return [behind(job) for job in jobs]


def behind(job: Any) -> Any:
    """Returns the asynchronous handle behind a blocking one, and others as they are."""
    return getattr(job, "asynchronous", job)


def given_at_of(job: Any) -> int:
    """Returns when a handle got its id (ms); 0 if that is unknown, as for a mere number."""
    return job.given_at if isinstance(job, AsyncJob) else 0


def times_of(jobs: Sequence[Any]) -> list[int]:
    """Returns that for each of these; nothing if it is known of none."""
    times = [given_at_of(job) for job in jobs]
    return times if any(times) else []


def id_of(job: Any) -> int:
    """Returns the id of a job that is given by id or handle."""
    found = job if type(job) is int else reference_of(job)
    if type(found) is not int:
        raise InvalidInput("job", "the id or the handle of a job", repr(job))
    return found


def dump_model(value: Any) -> Any:
    """Returns a model of pydantic as JSON."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__name__} is no JSON")
    return dump(mode="json", by_alias=True)


def split_reference(template: str) -> tuple[str, int]:
    """Splits a template reference into name and version; version 0 is the newest."""
    name, at, version = template.partition("@")
    if at and not (version.isascii() and version.isdigit()):
        raise InvalidInput("template", "name or name@version, such as nightly@3", template)
    return name, int(version or 0)
