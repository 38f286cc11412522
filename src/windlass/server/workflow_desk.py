"""Reads workflows as they are shown, and only those that the asker may see."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.access.roles import Identity
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.lifecycle.workflow_state import FAIL_FAST, Details, WorkflowState
from windlass.domain.rows.records import WorkflowAbout, WorkflowRow
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.times import format_moment
from windlass.engine.engine import Engine
from windlass.ports.store import ReadTx
from windlass.wire.reactions import conceal
from windlass.wire.workflows import Workflow, WorkflowList

FIRST: Final = 2**62  # above every id
CHUNK: Final = 500  # rows that are read at once
SCAN: Final = 5_000  # rows that one call looks at

_details = msgspec.json.Decoder(Details).decode


class WorkflowFilter(NamedTuple):
    """Which workflows a list shows; what is empty or None does not filter."""

    states: tuple[int, ...] = ()
    namespaces: tuple[str, ...] | None = None
    name: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    key: str | None = None


def parse_states(names: Sequence[str]) -> tuple[int, ...]:
    """The codes of these states."""
    known = {state.name.lower(): int(state) for state in WorkflowState}
    for name in names:
        if name not in known:
            raise InvalidInput("state", f"one of {', '.join(known)}", name)
    return tuple(known[name] for name in names)


class WorkflowDesk:
    """What routes and embedded clients show of workflows."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def workflow(self, workflow: int, who: Identity) -> Workflow:
        """One workflow."""

        async def read(tx: ReadTx) -> Workflow | None:
            row = (await tx.workflows.read([workflow])).get(workflow)
            if row is None or not who.sees(row.namespace):
                return None
            return show_workflow(row, (await tx.workflows.about([workflow])).get(workflow))

        shown = await self._engine.store.read(read)
        if shown is None:
            raise NotFound("workflow", workflow)
        return shown

    async def workflows(self, wanted: WorkflowFilter, after: int, limit: int) -> WorkflowList:
        """A page of workflows, newest first; each call looks at a bounded number of rows."""

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
    )


def show_workflow(row: WorkflowRow, about: WorkflowAbout | None) -> Workflow:
    """A workflow without the secrets of its reactions."""
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
        finished_at=format_moment(row.finished_at) if row.finished_at else None,
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
