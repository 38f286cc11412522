"""Templates: named descriptions of workflows, and how they become what the engine submits.

Each change is a new version. Versions never change and are never deleted, so `release@3` of a
workflow keeps its meaning. A removed template cannot be started; added again, it continues with the
next version. The engine does not know descriptions or jobs in the form clients write: a planner,
chosen by the assembly, turns them into specs.
"""

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.rows.events import EventKind
from windlass.domain.schedules import TemplateRow
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound, WindlassError
from windlass.domain.values.names import check_name
from windlass.engine.engine import Engine
from windlass.engine.submit.submission import Submission, Submitted, WorkflowSpec, check_workflow
from windlass.engine.submit.write_jobs import submit
from windlass.engine.transaction.arguments import check_text
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.schedules import StartReply
from windlass.ports.loop_time import MANY, SMALL, aside, gc_paused
from windlass.store.sql.transaction import ReadTx

MANY_ROWS: Final = SMALL + 1  # the assumed size of a description that is not read yet
_MULTIPLY: Final = (b'"matrix"', b'"count"', b'"workflow"')
BODY_LIMIT: Final = 8 * 1024 * 1024
VERSION_LIMIT: Final = 2**31 - 1
_encode = msgspec.json.Encoder(order="deterministic").encode


class PlanRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to start, and for whom: a `description` with `parameters`, or `jobs`.

    `priority`, `key` with its `key_for`, and `labels` override those of the description; `name`
    is for a workflow made of plain jobs.
    """

    name: str
    namespace: str
    actor: str
    description: Mapping[str, Any] | None = None
    parameters: Mapping[str, Any] = {}
    jobs: Sequence[Mapping[str, Any]] = ()
    template: str | None = None
    priority: int | str | None = None
    key: str | None = None
    key_for: float | str | None = None
    labels: Mapping[str, str] = {}


class PlannedWorkflow(NamedTuple):
    """One workflow, ready to be submitted."""

    workflow: WorkflowSpec
    jobs: Sequence[JobSpec]


class Planner(Protocol):
    """Plans workflows; raises `InvalidInput` with the name of a wrong field."""

    def check(self, description: Mapping[str, Any], namespace: str) -> None:
        """Raises `InvalidInput` unless a description can be a template."""

    def plan(self, order: PlanRequest) -> PlannedWorkflow: ...


async def plan_aside(planner: Planner, order: PlanRequest) -> PlannedWorkflow:
    """Plans a workflow, in a thread if that may take long."""
    weight = len(order.jobs) if order.description is None else weight_of(order.description)
    return await aside(weight, partial(planner.plan, order))


def weight_of(description: Mapping[str, Any]) -> int:
    """Returns how much work it is to read a description: its values, or a large number.

    A description that multiplies jobs counts as large: its size is known only after it is read.
    """
    text = msgspec.json.encode(description)
    if any(word in text for word in _MULTIPLY):
        return MANY_ROWS
    return sum(map(text.count, (b",", b":", b"[", b"{")))


async def submit_planned(work: Work, engine: Engine, planned: PlannedWorkflow) -> Submitted:
    """Submits in the transaction of `work`, together with its other writes."""
    if len(planned.jobs) < MANY:
        return await _submit_planned(work, engine, planned)
    with gc_paused():
        return await _submit_planned(work, engine, planned)


async def _submit_planned(work: Work, engine: Engine, planned: PlannedWorkflow) -> Submitted:
    check_workflow(planned.workflow, engine.config.payload_limit)
    traced = engine.begin_trace(planned.jobs)
    jobs = await aside(len(traced), lambda: engine.submissions.validate(traced, work.now))
    submission = Submission(jobs, planned.workflow)
    (answer,) = await submit(work, [submission])
    if isinstance(answer, WindlassError):
        raise answer
    return answer


class PutTemplate(NamedTuple):
    """The current version; `applied` is False if nothing changed."""

    version: int
    applied: bool


class Templates:
    """Adds, finds and starts templates for one engine."""

    def __init__(self, engine: Engine, planner: Planner) -> None:
        self._engine = engine
        self._planner = planner

    async def put(
        self, namespace: str, name: str, body: Mapping[str, Any], actor: str
    ) -> PutTemplate:
        """Adds a new version, unless the newest is the same."""
        check_template_name(name)
        check_name("namespace", namespace)
        check_text("actor", actor)
        content = _encode(body)
        if len(content) > BODY_LIMIT:
            raise InvalidInput("body", f"at most {BODY_LIMIT} bytes", f"{len(content)} bytes")
        await aside(weight_of(body), lambda: self._planner.check(body, namespace))
        digest = hashlib.sha256(content).hexdigest()

        async def step(work: Work) -> PutTemplate:
            known = await work.tx.templates.newest(namespace, name)
            if known is not None and known.digest == digest and not known.removed_at:
                return PutTemplate(known.version, False)
            version = 1 if known is None else known.version + 1
            row = TemplateRow(namespace, name, version, content, digest, work.now, actor, None)
            if not await work.tx.templates.insert(row):
                raise Conflict(
                    "busy", f"template {name} is being changed by another request", 1_000
                )
            message = f"Template {name}@{version} put"
            data = {"namespace": namespace, "template": name, "version": version}
            work.say(EventKind.TEMPLATE, message, actor=actor, data=data)
            return PutTemplate(version, True)

        return await self._engine.run(step)

    async def remove(self, namespace: str, name: str, actor: str) -> bool:
        """Prevents all versions of a template from being started; returns False if none exists."""

        async def step(work: Work) -> bool:
            removed = await work.tx.templates.remove(namespace, name, work.now)
            if removed:
                data = {"namespace": namespace, "template": name}
                work.say(EventKind.TEMPLATE, f"Template {name} removed", actor=actor, data=data)
            return removed

        return await self._engine.run(step)

    async def find(self, namespace: str, reference: str) -> TemplateRow:
        """Returns a version that can be started: `name` for the newest, or `name@version`."""
        return await self._engine.store.read(lambda tx: find_template(tx, namespace, reference))

    async def all(self, namespace: str | None) -> list[TemplateRow]:
        """Returns the newest version of each template."""
        return await self._engine.store.read(lambda tx: tx.templates.all(namespace))

    async def start(self, reference: str, order: PlanRequest, key: str | None = None) -> StartReply:
        """Submits the workflow that a template describes; once per `key`."""
        row = await self.find(order.namespace, reference)
        planned = await plan_aside(self._planner, plan_request_of(row, order))
        key = key if planned.jobs else None
        done = await self._engine.submit(planned.jobs, planned.workflow, key)
        applied = len(done.ids) == len(planned.jobs) and all(done.applied)
        return StartReply(
            workflow=done.known_workflow,
            template=f"{row.name}@{row.version}",
            ids=list(done.ids),
            applied=applied,
            at=done.at,
        )


def check_template_name(name: str, field: str = "name") -> None:
    """Raises `InvalidInput` for a name that cannot be part of a URL or a reference."""
    check_name(field, name)
    if any(sign in name for sign in "@/?#%"):
        raise InvalidInput(field, "a name without @ / ? # %", name)


async def find_template(
    tx: ReadTx, namespace: str, reference: str, field: str = "template"
) -> TemplateRow:
    """Returns the version that a reference names."""
    name, at, text = reference.partition("@")
    if not at:
        found = await tx.templates.newest(namespace, name)
    else:
        if not (text.isascii() and text.isdigit() and 0 < int(text) <= VERSION_LIMIT):
            raise InvalidInput(field, "name or name@version, such as nightly@3", reference)
        found = await tx.templates.version(namespace, name, int(text))
    if found is None or found.removed_at:
        raise NotFound(field, reference)
    return found


def plan_request_of(row: TemplateRow, order: PlanRequest) -> PlanRequest:
    """Returns the same request with this version's description."""
    return msgspec.structs.replace(
        order,
        description=msgspec.json.decode(row.body, type=dict[str, Any]),
        template=f"{row.name}@{row.version}",
    )
