"""Shows, cancels and retries workflows, with the rights of the caller."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec

from windlass.api.rights import Rights
from windlass.domain.access.rights import Identity, sees
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.lifecycle.workflow_state import FAIL_FAST, Details, WorkflowState
from windlass.domain.rows.records import WorkflowAbout, WorkflowRow
from windlass.domain.tasks.references import RESULT, TEXT, joined, replaced
from windlass.domain.values.errors import NotFound, UnknownName
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.quantities import format_moment
from windlass.engine.engine import Engine
from windlass.engine.sync.results import Results, resolved, results_of
from windlass.ports.store import ReadTx
from windlass.wire.reactions import conceal
from windlass.wire.workflows import CanceledWorkflow, RetriedWorkflow, Workflow, WorkflowList

FIRST: Final = 2**62  # above every id
CHUNK: Final = 500  # rows that are read at once
SCAN: Final = 5_000  # rows that one call looks at

_details = msgspec.json.Decoder(Details).decode


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


def parse_states(names: Sequence[str]) -> tuple[int, ...]:
    """Returns the codes of these states."""
    known = {state.name.lower(): int(state) for state in WorkflowState}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UnknownName("state", name, f"one of {', '.join(known)}", hint)
    return tuple(known[name] for name in names)


class Workflows:
    """Answers requests about workflows; raises `NotFound` for those the caller may not see."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rights = Rights(engine)

    async def workflow(self, workflow: int, who: Identity) -> Workflow:
        """Returns one workflow."""

        async def read(tx: ReadTx) -> Workflow | None:
            row = (await tx.workflows.read([workflow])).get(workflow)
            if row is None or not sees(who, row.namespace):
                return None
            about = (await tx.workflows.about([workflow])).get(workflow)
            shown = show_workflow(row, about)
            outputs = {} if about is None else _details(about.body).outputs
            found = await _outputs(tx, outputs) if outputs else {}
            return msgspec.structs.replace(shown, outputs=found)

        shown = await self._engine.store.read(read)
        if shown is None:
            raise NotFound("workflow", workflow)
        return shown

    async def workflows(self, wanted: WorkflowFilter, after: int, limit: int) -> WorkflowList:
        """Returns a page of workflows, newest first; one call reads a bounded number of rows."""

        async def read(tx: ReadTx) -> WorkflowList:
            found: list[Workflow] = []
            below = after or FIRST
            for _ in range(SCAN // CHUNK):
                rows = await tx.workflows.newest(below, CHUNK)
                found += await _matching(tx, rows, wanted)
                if len(found) > limit or (len(found) == limit and rows):
                    return WorkflowList(found[:limit], str(found[limit - 1].id))
                if len(rows) < CHUNK:
                    return WorkflowList(found)
                below = rows[-1].id
            return WorkflowList(found, str(below))

        return await self._engine.store.read(read)

    async def wait(self, workflow: int, seconds: float, who: Identity) -> Workflow:
        """Returns the workflow when it has ended, or as it is when the time is up."""
        await self.workflow(workflow, who)
        await self._engine.workflows.wait_ended(workflow, int(seconds * 1000))
        return await self.workflow(workflow, who)

    async def cancel(self, workflow: int, reason: str, who: Identity) -> CanceledWorkflow:
        """Cancels a workflow: nothing new starts, and running jobs are told to stop."""
        shown = await self.workflow(workflow, who)
        self._rights.check_own_workflow(shown.submitted_by, who)
        done = await self._engine.workflows.cancel(workflow, reason, who.name)
        return CanceledWorkflow(done.workflow, done.state, done.applied)

    async def retry(self, workflow: int, failed: bool, who: Identity) -> RetriedWorkflow:
        """Retries the failed jobs of a workflow, or all of it as a new workflow."""
        shown = await self.workflow(workflow, who)
        self._rights.check_own_workflow(shown.submitted_by, who)
        done = await self._engine.workflows.retry(workflow, failed, who.name)
        return RetriedWorkflow(done.workflow, done.applied)


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
    details = Details() if about is None else _details(about.body)
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
        finished_at=None if row.finished_at is None else format_moment(row.finished_at),
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
