"""Decides which workflow the jobs of a submission belong to: a new or an existing one."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import JobTemplate, ValidatedJob
from windlass.domain.lifecycle.rank import LEVEL_LIMIT, parse_priority
from windlass.domain.lifecycle.workflow_state import (
    COUNTS,
    ENDED,
    FAIL_FAST,
    KEY_KEPT,
    REACTS,
    WorkflowState,
    is_failing,
)
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import WorkflowAbout, WorkflowRow
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.domain.values.ids import WorkflowId
from windlass.engine.jobs.unique_keys import keep_workflow_key, take_workflow_key
from windlass.engine.submit.submission import Submission, WorkflowSpec
from windlass.engine.transaction.unit_of_work import Work


class Groups(NamedTuple):
    """The workflows that jobs join, their base priorities, and the new one, if there is one."""

    rows: Mapping[int, WorkflowRow]
    bases: Mapping[int, int]
    new: int | None


async def join_workflows(
    work: Work, submission: Submission, jobs: Sequence[ValidatedJob]
) -> Groups:
    """Creates the new workflow, or locks the existing ones that jobs are added to."""
    tied = (job.spec.workflow for job in jobs if not job.template.only_named)
    named = sorted({workflow for workflow in tied if workflow is not None})
    if submission.workflow is None:
        return await _join(work, named, jobs, submission.reopen)
    if named:
        raise InvalidInput("jobs.workflow", "unset in the submission of a workflow", named[0])
    _check_namespaces(jobs, {}, submission.workflow.namespace)
    return await _make(work, submission.workflow)


async def _join(
    work: Work, named: Sequence[int], jobs: Sequence[ValidatedJob], reopen: bool
) -> Groups:
    if not named:
        return Groups({}, {}, None)
    rows = await work.tx.workflows.lock(named)
    for workflow in named:
        if workflow not in rows:
            raise InvalidInput("jobs.workflow", "the id of an existing workflow", workflow)
        _check_open(rows[workflow], reopen)
        if WorkflowState(rows[workflow].state) in ENDED:
            await keep_workflow_key(work, rows[workflow])
            work.reopen_workflow(workflow)
    _check_namespaces(jobs, rows, "")
    about = await work.tx.workflows.about(named)
    return Groups(rows, {number: row.base for number, row in about.items()}, None)


def _check_open(row: WorkflowRow, reopen: bool) -> None:
    state = WorkflowState(row.state)
    if state is WorkflowState.CANCELING:
        raise Conflict("workflow_canceling", f"workflow {row.id} is being canceled")
    if state in ENDED:
        if not reopen:
            message = f"workflow {row.id} has ended ({state.name.lower()})"
            raise Conflict("workflow_ended", message)
    elif is_failing(row.flags, row.counts):
        raise Conflict("workflow_failing", f"workflow {row.id} was stopped by a failure")


def _check_namespaces(
    jobs: Sequence[ValidatedJob], rows: Mapping[int, WorkflowRow], new: str
) -> None:
    last: JobTemplate | None = None
    for index, job in enumerate(jobs):
        if job.template is last:  # similar jobs share one
            continue
        last, spec = job.template, job.spec
        own = new if spec.workflow is None else rows[spec.workflow].namespace
        if own and job.shape.namespace != own:
            where = f"jobs[{index}].namespace"
            raise InvalidInput(
                where, f"the same as that of its workflow, {own}", job.shape.namespace
            )


async def _make(work: Work, spec: WorkflowSpec) -> Groups:
    (new,) = await work.tx.workflows.allocate(1)
    if spec.key is not None:
        await take_workflow_key(work, spec.namespace, spec.key, new, spec.details.supersedes)
    flags = (FAIL_FAST if spec.fail_fast else 0) | (REACTS if spec.details.reacts else 0)
    if spec.details.key_for is not None:
        flags |= KEY_KEPT
    row = WorkflowRow(
        WorkflowId(new), spec.namespace, spec.name, int(WorkflowState.QUEUED), 1,
        flags, work.now, None, (0,) * COUNTS,
    )  # fmt: skip
    base = 0 if spec.priority is None else parse_priority(spec.priority, "workflow.priority")
    body = msgspec.json.encode(spec.details)
    await work.tx.workflows.insert([row])
    await work.tx.workflows.describe(WorkflowAbout(new, base, spec.key, None, body))
    work.touch_workflow(new)
    again = spec.details.supersedes
    work.say(
        EventKind.WORKFLOW,
        f"submitted as {spec.name}" + (f", again after workflow {again}" if again else ""),
        actor=spec.details.submitted_by,
        data={"workflow": new},
    )
    return Groups({new: row}, {new: base}, new)


def base_of(spec: JobSpec, own: int | None, parent: int | None, workflow: int) -> int:
    """Returns a job's base: its own, else its parent's effective priority, else its workflow's.

    A priority with a sign, as text, is relative to what the job would otherwise have.
    """
    ground = workflow if parent is None else parent
    if own is None:
        return ground
    if not is_relative(spec):
        return own
    return max(-LEVEL_LIMIT, min(LEVEL_LIMIT, ground + own))


def is_relative(spec: JobSpec) -> bool:
    """Returns True if the job's priority is an amount to add."""
    return isinstance(spec.priority, str) and spec.priority.strip()[:1] in ("+", "-")
