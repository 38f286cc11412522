"""Spans of whole workflows: from the submission, or a retry by hand, to the end."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.lifecycle.traces import Trace
from windlass.domain.lifecycle.workflow_state import ENDED, WorkflowState
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import WorkflowRow
from windlass.store.store import Store
from windlass.tracing.attributes import of_pipeline
from windlass.tracing.exporting import Made, Tracing

MAX_OPEN: Final = 10_000  # traced workflows that are remembered

_WORKFLOW: Final = int(EventKind.WORKFLOW)


class _Move(msgspec.Struct, frozen=True):
    """What an event says about a workflow; 0 if it does not change its state."""

    workflow: int = 0
    source: int = msgspec.field(default=0, name="from")
    to: int = 0


class _Traced(NamedTuple):
    trace: Trace
    reopened_at: int | None = None


_move: Final = msgspec.json.Decoder(_Move).decode


class WorkflowSpans:
    """Makes a span for each time that a traced workflow ended."""

    def __init__(self, tracing: Tracing) -> None:
        self._tracing = tracing
        self._open: dict[int, _Traced] = {}
        self._ended: Mapping[int, WorkflowRow] = {}

    def learn(self, workflow: int, trace: Trace) -> None:
        """Remembers the trace that the first known job of a workflow is in."""
        if workflow in self._open:
            return
        if len(self._open) >= MAX_OPEN:
            self._open.pop(next(iter(self._open)))
        self._open[workflow] = _Traced(trace)

    async def prepare(self, store: Store, events: Sequence[Event]) -> None:
        """Reads what the traced workflows are that end with these events."""
        moves = [_move(e.data) for e in events if e.kind == _WORKFLOW and e.data is not None]
        ended = {move.workflow for move in moves if move.to in ENDED} & self._open.keys()
        self._ended = {}
        if ended:
            self._ended = await store.read(lambda tx: tx.workflows.read(sorted(ended)))

    def observe(self, event: Event, counts: bool) -> None:
        """Takes notice of an event about a workflow; makes its span if it `counts`."""
        move = _Move() if event.data is None else _move(event.data)
        known = self._open.get(move.workflow)
        if known is None:
            return
        if move.source in ENDED:
            self._open[move.workflow] = known = known._replace(reopened_at=event.at)
        row = self._ended.get(move.workflow)
        if move.to in ENDED and row is not None and counts:
            self._add(event, row, WorkflowState(move.to), known)

    def _add(self, event: Event, row: WorkflowRow, state: WorkflowState, known: _Traced) -> None:
        began = row.created_at if known.reopened_at is None else known.reopened_at
        about = of_pipeline(row.id, row.name, state.name.lower())
        error = "failed" if state is WorkflowState.FAILED else None
        name = f"RUN {row.name}"
        self._tracing.add(Made(name, "SERVER", known.trace, began, event.at, about, error=error))
