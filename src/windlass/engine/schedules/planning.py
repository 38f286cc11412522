"""Turns a template or jobs into what the engine submits.

The engine does not know descriptions or jobs in the form clients write. A planner, chosen by the
assembly, turns them into specs.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import WindlassError
from windlass.engine.engine import Engine
from windlass.engine.submit.submission import Submission, Submitted, WorkflowSpec, check_workflow
from windlass.engine.submit.write_jobs import submit
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import SMALL, aside

MANY_ROWS: Final = SMALL + 1  # the assumed size of a description that is not read yet
_MULTIPLY: Final = (b'"matrix"', b'"count"', b'"workflow"')


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
        ...

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
    check_workflow(planned.workflow, engine.config.payload_limit)
    traced = engine.begin_trace(planned.jobs)
    jobs = await aside(len(traced), lambda: engine.validate(traced, work.now))
    submission = Submission(jobs, planned.workflow)
    (answer,) = await submit(work, [submission])
    if isinstance(answer, WindlassError):
        raise answer
    return answer
