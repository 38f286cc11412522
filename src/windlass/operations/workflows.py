"""Workflows; they are created by submitting jobs."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.access.rights import Action, Identity, sees
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.lifecycle.workflow_state import (
    FAIL_FAST,
    Details,
    WorkflowState,
    decode_details,
)
from windlass.domain.rows.records import WorkflowAbout, WorkflowRow
from windlass.domain.rows.views import JobFilter
from windlass.domain.schedules import ReactionKind, ReactionRow, ReactionState, Trigger
from windlass.domain.tasks.references import RESULT, TEXT, joined, replaced
from windlass.domain.values.errors import NotFound, UnknownName
from windlass.domain.values.ids import Cursor, Id
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.quantities import format_moment, shown_moment
from windlass.engine.sync.results import Results, resolved, results_of
from windlass.messages.jobs import JobList
from windlass.messages.reactions import conceal
from windlass.messages.schedules import ReactionInfo, ReactionList
from windlass.messages.workflows import (
    CanceledWorkflow,
    CancelWorkflow,
    RetriedWorkflow,
    RetryWorkflow,
    Workflow,
    WorkflowList,
)
from windlass.operations.dispatch.binding import Body
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.jobs import PageSize, Seconds
from windlass.operations.parse import namespace_of, parse_label, search_text
from windlass.store.sql.transaction import ReadTx

routes = Routes("/api/v1/workflows", "workflows")

FIRST: Final = 2**62  # above every id
CHUNK: Final = 500  # rows that are read at once
SCAN: Final = 5_000  # rows that one call looks at


class WorkflowFilter(NamedTuple):
    """Which workflows a list shows; an empty or None field does not filter.

    `text` is a part of the name, in any case.
    """

    states: tuple[int, ...] = ()
    namespaces: tuple[str, ...] | None = None
    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    key: str | None = None
    text: str | None = None


@routes.get("", needs=Action.READ_JOBS)
async def list_workflows(
    call: Call,
    state: list[str] | None = None,
    name: str | None = None,
    namespace: str | None = None,
    label: list[str] | None = None,
    key: str | None = None,
    text: str | None = None,
    after: Cursor = 0,
    limit: PageSize = 100,
) -> WorkflowList:
    """Returns a page of workflows, newest first; `text` is a part of the name."""
    wanted = workflow_filter(
        call.who, state=state, name=name, namespace=namespace, label=label, key=key, text=text
    )

    async def read(tx: ReadTx) -> WorkflowList:
        found: list[Workflow] = []
        below = after or FIRST
        for _ in range(SCAN // CHUNK):  # one call reads a bounded number of rows
            rows = await tx.workflows.newest(below, CHUNK)
            found += await _matching(tx, rows, wanted)
            if len(found) > limit or (len(found) == limit and rows):
                return WorkflowList(found[:limit], str(found[limit - 1].id))
            if len(rows) < CHUNK:
                return WorkflowList(found)
            below = rows[-1].id
        return WorkflowList(found, str(below))

    return await call.services.engine.store.read(read)


@routes.get("/{workflow:int}", needs=Action.READ_JOBS)
async def show(call: Call, workflow: Id) -> Workflow:
    """Returns one workflow."""
    return await _seen(call, workflow)


@routes.get("/{workflow:int}/jobs", needs=Action.READ_JOBS)
async def jobs(call: Call, workflow: Id, after: Cursor = 0, limit: PageSize = 100) -> JobList:
    """Returns a page of the workflow's jobs, newest first, with those that were superseded."""
    await _seen(call, workflow)
    place = (0, after) if after else None
    return await call.services.queries.jobs(JobFilter(workflow=workflow), place, limit)


@routes.get("/{workflow:int}/wait", needs=Action.READ_JOBS)
async def wait(call: Call, workflow: Id, timeout: Seconds = 30) -> Workflow:
    """Returns the workflow when it has ended, or as it is when the time is up."""
    await _seen(call, workflow)
    await call.services.engine.workflows.wait_ended(workflow, int(timeout * 1000))
    return await _seen(call, workflow)


@routes.get("/{workflow:int}/reactions", needs=Action.READ_JOBS)
async def list_reactions(call: Call, workflow: Id) -> ReactionList:
    """Returns the follow-ups, webhooks and retries of a workflow and their outcome."""
    await call.services.queries.check_workflows([workflow], call.who)
    rows = await call.services.reactions.of_workflow(workflow)
    return ReactionList([_show_reaction(row) for row in rows])


@routes.post("/{workflow:int}/cancel", needs=Action.CHANGE_JOBS)
async def cancel(call: Call, workflow: Id, data: Body[CancelWorkflow]) -> CanceledWorkflow:
    """Cancels a workflow: nothing new starts, and running jobs are told to stop."""
    await _check_own(call, workflow)
    return await call.services.engine.workflows.cancel(workflow, data.reason, call.who.name)


@routes.post("/{workflow:int}/retry", needs=Action.CHANGE_JOBS)
async def retry(call: Call, workflow: Id, data: Body[RetryWorkflow]) -> RetriedWorkflow:
    """Retries the failed jobs of a workflow, or all of it as a new workflow."""
    await _check_own(call, workflow)
    return await call.services.engine.workflows.retry(workflow, data.failed, call.who.name)


def workflow_filter(
    who: Identity,
    *,
    state: list[str] | None,
    name: str | None,
    namespace: str | None,
    label: list[str] | None,
    key: str | None,
    text: str | None = None,
) -> WorkflowFilter:
    """Parses the filter of a list of workflows, limited to what the caller may see."""
    namespaces = who.namespaces or None
    if namespace is not None:
        namespaces = (namespace_of(namespace, who),)
    return WorkflowFilter(
        states=tuple(_state(one) for one in state or ()),
        namespaces=namespaces,
        name=name,
        labels=tuple(parse_label(text) for text in label or ()),
        key=key,
        text=search_text(text),
    )


def _state(name: str) -> int:
    known = {state.name.lower(): int(state) for state in WorkflowState}
    if name not in known:
        expected = f"one of {', '.join(known)}"
        raise UnknownName("state", name, expected, did_you_mean(name, known))
    return known[name]


async def _seen(call: Call, workflow: int) -> Workflow:
    """Returns a workflow; raises `NotFound` if the caller may not see it."""

    async def read(tx: ReadTx) -> Workflow | None:
        row = (await tx.workflows.read([workflow])).get(workflow)
        if row is None or not sees(call.who, row.namespace):
            return None
        about = (await tx.workflows.about([workflow])).get(workflow)
        shown = show_workflow(row, about)
        outputs = {} if about is None else decode_details(about.body).outputs
        found = await _outputs(tx, outputs) if outputs else {}
        return msgspec.structs.replace(shown, outputs=found)

    shown = await call.services.engine.store.read(read)
    if shown is None:
        raise NotFound("workflow", workflow)
    return shown


async def _check_own(call: Call, workflow: int) -> None:
    """Raises `Forbidden` if the caller may not change the workflow."""
    shown = await _seen(call, workflow)
    call.services.rights.check_own_workflow(shown.submitted_by, call.who)


async def _outputs(tx: ReadTx, outputs: Mapping[str, Any]) -> dict[str, Any]:
    """Returns those outputs of a workflow whose jobs have completed."""
    results = await Results.read(tx, [{"args": dict(outputs)}])
    found: dict[str, Any] = {}
    for name, value in outputs.items():
        known = results.known({"args": value})
        if known.keys() == set(results_of({"args": value})):
            resolve = partial(resolved, known)
            found[name] = replaced(replaced(value, TEXT, partial(joined, resolve=resolve)),
                                   RESULT, resolve)  # fmt: skip
    return found


async def _matching(
    tx: ReadTx, rows: Sequence[WorkflowRow], wanted: WorkflowFilter
) -> list[Workflow]:
    rows = [row for row in rows if _may_match(row, wanted)]
    about = await tx.workflows.about([row.id for row in rows])
    shown = [show_workflow(row, about.get(row.id)) for row in rows]
    return [
        workflow
        for workflow in shown
        if (wanted.key is None or workflow.key == wanted.key)
        and all(workflow.labels.get(name) == value for name, value in wanted.labels)
    ]


def _may_match(row: WorkflowRow, wanted: WorkflowFilter) -> bool:
    return (
        (not wanted.states or row.state in wanted.states)
        and (wanted.namespaces is None or row.namespace in wanted.namespaces)
        and (wanted.name is None or row.name == wanted.name)
        and (wanted.text is None or wanted.text.casefold() in row.name.casefold())
    )


def show_workflow(row: WorkflowRow, about: WorkflowAbout | None) -> Workflow:
    """Renders a workflow without the secrets of its reactions."""
    details = Details() if about is None else decode_details(about.body)
    counts = {str(STATE_BY_CODE[code]): n for code, n in enumerate(row.counts) if code and n}
    return Workflow(
        id=row.id,
        name=row.name,
        namespace=row.namespace,
        state=WorkflowState(row.state).name.lower(),
        counts=counts,
        jobs=sum(counts.values()),
        priority=0 if about is None else about.base,
        key=None if about is None else about.key,
        submitted_by=details.submitted_by,
        created_at=format_moment(row.created_at),
        finished_at=shown_moment(row.finished_at),
        run=row.run,
        fail_fast=bool(row.flags & FAIL_FAST),
        labels=details.labels,
        template=details.template,
        parameters=details.parameters,
        on_success=conceal(details.on_success),
        on_failure=conceal(details.on_failure),
        on_end=conceal(details.on_end),
        supersedes=details.supersedes,
        reason=None if about is None else about.reason,
    )


def _show_reaction(row: ReactionRow) -> ReactionInfo:
    """Renders one reaction and its outcome."""
    pending = row.state == ReactionState.PENDING
    return ReactionInfo(
        id=row.id,
        run=row.run,
        on=Trigger(row.trigger).name.lower(),
        kind=ReactionKind(row.kind).name.lower(),
        state=ReactionState(row.state).name.lower(),
        tries=row.tries,
        next_at=shown_moment(row.next_at) if pending else None,
        created_at=format_moment(row.created_at),
        finished_at=shown_moment(row.finished_at),
        result=row.result,
        message=row.message,
    )
