"""A workflow that a program puts together, submitted as a whole when its block ends."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Final, Literal, Protocol, Self

import msgspec

from windlass.client.handles import AsyncJob
from windlass.client.service import Service
from windlass.client.values.uploads import with_uploads
from windlass.client.workflows import AsyncWorkflow
from windlass.domain.job.job import KEYWORDS, JobSpec, canonical_options
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.tasks.handles import with_references
from windlass.tasks.task import spec_of
from windlass.wire.jobs import NewWorkflow, SubmitRequest

# What `options` may have; the others are parameters of `submit`.
_OPTIONS: Final = KEYWORDS - {
    "task", "args", "after", "after_any", "allow_failure", "unblock", "workflow", "namespace",
}  # fmt: skip


_BUILDING: Final[ContextVar[object]] = ContextVar("windlass_block", default=None)


class HasId(Protocol):
    """A handle on a job that was submitted before."""

    @property
    def id(self) -> int: ...


Reference = HasId | int | str
References = Reference | Sequence[Reference]


class PlannedJob(AsyncJob):
    """A job of a workflow, which has an id once the workflow is submitted."""

    def __init__(self, service: Service, name: str, block: "AsyncWorkflowBlock") -> None:
        super().__init__(service, 0)
        self.name = name
        self._block = block

    @property
    def id(self) -> int:
        """The job's number."""
        if not self._number:
            raise Conflict(
                "not_submitted",
                f"job {self.name} has no id yet: its workflow is submitted when its block ends",
            )
        return self._number

    def __windlass_reference__(self) -> int | str:
        """Returns its name in the block of its workflow, else its id."""
        return self.name if not self._number and _BUILDING.get() is self._block else self.id

    def submitted_as(self, number: int) -> None:
        """Takes the ids from the answer to the submission."""
        self._number = number

    def __repr__(self) -> str:
        return f"<job {self._number or self.name}>"


class AsyncWorkflowBlock(AsyncWorkflow):
    """A workflow that is put together in an `async with` block and submitted when that ends.

    Nothing is submitted if the block raises.
    """

    def __init__(self, service: Service, workflow: NewWorkflow) -> None:
        super().__init__(service, 0)
        self._new = workflow
        self._requests: list[JobSpec] = []
        self._jobs: dict[str, PlannedJob] = {}
        self._alike: dict[str, int] = {}  # how many jobs got a name like this
        self._open = False

    def submit(
        self,
        task: Any,
        *args: Any,
        after: References = (),
        after_any: References = (),
        allow_failure: bool = False,
        unblock: Literal["auto", "manual"] = "auto",
        options: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> PlannedJob:
        """Adds a job, as `client.submit` takes it.

        `after` and `after_any` are jobs of this workflow or earlier ones. `options` has any
        other field of a job: `{"name": "build", "retries": 2}`.
        """
        if not self._open:
            raise Conflict("block_ended", "jobs are added to a workflow inside its with block")
        request = self._request(task, args, kwargs)
        fields = canonical_options(options or {}, _OPTIONS)
        name = fields.pop("name", None) or request.name or self._free_name(task, request)
        if name in self._jobs:
            raise InvalidInput("name", "unique in its workflow", name)
        changes: dict[str, Any] = {
            "namespace": request.namespace or self._new.namespace,
            "after": (*request.after, *self._references(after, "after")),
            "after_any": (*request.after_any, *self._references(after_any, "after_any")),
            "allow_failure": allow_failure or request.allow_failure,
            "unblock": unblock if unblock != "auto" else request.unblock,
        }
        self._requests.append(msgspec.structs.replace(request, name=name, **changes, **fields))
        planned = self._jobs[name] = PlannedJob(self._service, name, self)
        return planned

    def _request(self, task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobSpec:
        """Returns the job; arguments may be jobs of this block, which have no ids yet."""
        before = _BUILDING.set(self)
        try:
            return request_for(task, args, kwargs)
        finally:
            _BUILDING.reset(before)

    async def __aenter__(self) -> Self:
        if self.id or self._requests:
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
        reply = await self._service.submit(SubmitRequest(jobs=ready, workflow=self._new))
        self.id = reply.workflow or 0
        for planned, number in zip(self._jobs.values(), reply.ids, strict=True):
            planned.submitted_as(number)

    def __repr__(self) -> str:
        return f"<workflow {self.id or self._new.name}>"

    def _free_name(self, task: Any, request: JobSpec) -> str:
        base = getattr(task, "__name__", request.task)
        while True:
            number = self._alike[base] = self._alike.get(base, 0) + 1
            name = base if number == 1 else f"{base}-{number}"
            if name not in self._jobs:
                return name

    def _references(self, references: References, field: str) -> list[int | str]:
        if isinstance(references, str) or not isinstance(references, Sequence):
            references = [references]
        return [self._reference(reference, field) for reference in references]

    def _reference(self, reference: Reference, field: str) -> int | str:
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


def new_workflow(name: str, options: Mapping[str, Any]) -> NewWorkflow:
    """Returns the workflow that these options describe."""
    known = set(NewWorkflow.__struct_fields__) - {"name", "template"}
    unknown = sorted(options.keys() - known)
    if unknown:
        raise InvalidInput("workflow", f"described by {', '.join(sorted(known))}", unknown[0])
    return NewWorkflow(name=name, **options)


def request_for(task: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> JobSpec:
    """Returns the `JobSpec` for a marked function, a task by name, or a `JobSpec` as it is."""
    if isinstance(task, JobSpec):
        if args or kwargs:
            raise InvalidInput("args", "inside the request", "more beside it")
        return task
    if isinstance(task, str):
        if args:
            raise InvalidInput("args", "given by name", "arguments by position")
        return JobSpec(task=task, args=with_references(kwargs))
    return spec_of(task, args, kwargs)
