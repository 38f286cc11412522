"""One transaction's working set: what it reads with, what it records, and its effects.

`Work` is made for each run of a transaction and dropped with it. Commands write rows through `tx`.
Transitions go through `move`, which checks them against the one table and counts them. `settle`
writes counts and events last, and the reactions to ends of workflows with the end: none is lost,
and each fires once per run, even after a crash. `Effects` collects what other parts must know after
the commit.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from windlass.domain.config import Config
from windlass.domain.job.validation import JobTemplate, ValidatedJob
from windlass.domain.lifecycle.states import QUEUED, STATE_BY_CODE, TRANSITION_CODES, State
from windlass.domain.lifecycle.workflow_state import (
    ENDED,
    REACTS,
    Details,
    WorkflowState,
    decode_details,
    next_state,
    stops_now,
)
from windlass.domain.rows.events import Event, EventKind, Moves, expand
from windlass.domain.rows.records import Cascade, CascadeKind, Worker, WorkflowRow
from windlass.domain.schedules import ReactionKind, ReactionRow, ReactionState, Trigger, triggers
from windlass.domain.values.errors import InvalidTransition
from windlass.domain.values.ids import NO_WORKER, AttemptNo, JobId, ShapeId, WorkerId, WorkflowId
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.effects import Effects
from windlass.engine.transaction.limit_slots import Slots
from windlass.ports.clock import Chance
from windlass.store.sql.transaction import WriteTx

DEPTH = "depth:"  # prefix of a queue's name
BULK = 20  # smaller groups of equal events share a statement with the others


class Work:
    """The transaction, the rules it follows, and what it has recorded so far."""

    def __init__(
        self, tx: WriteTx, config: Config, catalog: Catalog, chance: Chance, inline: bool = False
    ) -> None:
        self.tx = tx
        self.inline = inline  # transactions run one after another, so there is nothing to lock
        self.now = tx.now
        self.config = config
        self.catalog = catalog
        self.chance = chance
        self.effects = Effects()
        self.slots = Slots(tx, catalog, self.effects)
        self.events: list[Event | Moves] = []
        self.cascades: list[Cascade] = []
        self.shapes: dict[str, ValidatedJob] = {}  # new ones, by digest, to be cached
        self.shape_ids: dict[str, int] = {}
        self._queues: dict[int, str] = {}  # shapes that are not in the catalog yet
        self._queued: dict[int, int] = {}  # shape → change of depth
        self._workflows: dict[int, dict[int, int]] = {}
        self._reopened: set[int] = set()
        self._canceling: dict[int, tuple[str, str | None]] = {}  # why, and by whom

    async def intern(self, jobs: Sequence[ValidatedJob]) -> Mapping[str, int]:
        """Returns the ids of these jobs' shapes, by digest."""
        known = self.catalog.ids
        new: dict[str, ValidatedJob] = {}
        ids: dict[str, int] = {}
        last: JobTemplate | None = None
        for job in jobs:
            template = job.template
            if template is not last:  # similar jobs share one
                last = template
                # Copy it before waiting: another transaction may fail meanwhile and clear it.
                if template.digest in known:
                    ids[template.digest] = known[template.digest]
                else:
                    new[template.digest] = job
        if not new:
            return ids
        self.shapes.update(new)
        self.shape_ids.update(await self.catalog.intern(self.tx, new))
        for digest, job in new.items():
            self._queues[self.shape_ids[digest]] = job.shape.queue
        return {**ids, **self.shape_ids}

    def move(
        self,
        job: JobId,
        shape: ShapeId,
        workflow: WorkflowId | None,
        attempt: AttemptNo,
        source: int,
        to: int,
        reason: str | None = None,
        *,
        worker: WorkerId = NO_WORKER,
        incarnation: int = 0,
        actor: str | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Records one transition of one job."""
        if (source, to) not in TRANSITION_CODES:
            refuse(source, to)
        self.events.append(
            Event(
                0,
                self.now,
                EventKind.JOB,
                job,
                attempt,
                worker,
                incarnation,
                source,
                to,
                reason,
                actor,
                None if data is None else json.dumps(data, separators=(",", ":")),
            )
        )
        self.count_moves(shape, workflow, source, to)

    def count_moves(
        self, shape: int, workflow: int | None, source: int, to: int, jobs: int = 1
    ) -> None:
        """Updates depth and workflow counts for `jobs` equal transitions."""
        if to == QUEUED:
            self._queued[shape] = self._queued.get(shape, 0) + jobs
        elif source == QUEUED:
            self._queued[shape] = self._queued.get(shape, 0) - jobs
        if workflow is not None:
            self.count_in_workflow(workflow, to, jobs)
            if source:
                self.count_in_workflow(workflow, source, -jobs)

    def count_in_workflow(self, workflow: int, slot: int, by: int) -> None:
        """Changes one count of a workflow."""
        counts = self._workflows.setdefault(workflow, {})
        counts[slot] = counts.get(slot, 0) + by

    def touch_workflow(self, workflow: int) -> None:
        """Has this workflow's state checked at the end, even if no count changed."""
        self._workflows.setdefault(workflow, {})

    def reopen_workflow(self, workflow: int) -> None:
        """Starts another run of an ended workflow, one of whose jobs is retried."""
        self._reopened.add(workflow)
        self.touch_workflow(workflow)

    def cancel_workflow(self, workflow: int, reason: str, actor: str | None) -> None:
        """Makes this workflow `canceling`, or `canceled` if none of its jobs is open."""
        self._canceling[workflow] = reason, actor
        self.touch_workflow(workflow)

    def say(
        self,
        kind: EventKind,
        reason: str,
        *,
        job: int = 0,
        worker: int = 0,
        incarnation: int = 0,
        actor: str | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Records an event that is not a transition of a job."""
        text = None if data is None else json.dumps(data, separators=(",", ":"))
        self.events.append(
            Event(0, self.now, kind, job, 0, worker, incarnation, 0, 0, reason, actor, text)
        )

    def say_of(self, worker: Worker, reason: str, actor: str | None = None, **data: object) -> None:
        """Records an event about a worker in its present incarnation."""
        self.say(
            EventKind.WORKER, reason, worker=worker.id, incarnation=worker.incarnation,
            actor=actor, data=data,
        )  # fmt: skip

    async def settle(self) -> None:
        """Ends the transaction: writes slots, cascades, counts, workflow states and events."""
        await self.slots.settle()
        if self.cascades:
            await self.tx.workflows.add_cascades(self.cascades)
            self.cascades = []
            self.effects.cascades = True
        if self._workflows:
            await self._settle_workflows()
        depth = self._depth()
        if depth:
            await self.tx.log.bump(depth)
        await self._log_events()

    async def _log_events(self) -> None:
        """Writes the events in order; equal ones of many jobs go in bulk."""
        single: list[Event] = []
        for entry in self.events:
            if isinstance(entry, Event):
                single.append(entry)
            elif len(entry.jobs) < BULK:
                single += expand(entry)
            else:
                if single:
                    await self.tx.log.append(single)
                    single = []
                await self.tx.flow.log(entry)
        if single:
            await self.tx.log.append(single)

    def move_all(
        self,
        jobs: Sequence[int],
        attempts: Sequence[int],
        steps: tuple[tuple[int, int], ...],
        worker: int = 0,
        incarnation: int = 0,
        reason: str | None = None,
        actor: str | None = None,
        data: Mapping[str, object] | None = None,
    ) -> None:
        """Records the same steps of many jobs; the caller counts them (`count_moves`)."""
        for step in steps:
            if step not in TRANSITION_CODES:
                refuse(*step)
        self.events.append(
            Moves(
                self.now,
                worker,
                incarnation,
                steps,
                jobs,
                attempts,
                reason,
                actor,
                None if data is None else json.dumps(data, separators=(",", ":")),
            )
        )

    def _depth(self) -> dict[str, int]:
        depth: dict[str, int] = {}
        for shape, change in self._queued.items():
            if change:
                name = depth_of(self._queues.get(shape) or self.catalog.queue_of(shape))
                depth[name] = depth.get(name, 0) + change
        return depth

    async def _settle_workflows(self) -> None:
        changed = []
        ends: list[tuple[int, int, WorkflowState]] = []
        for row in await self.tx.workflows.bump(self._workflows):
            before, run = WorkflowState(row.state), row.run
            if row.id in self._reopened and before in ENDED:
                run += 1
                before = self._change_workflow(row.id, before, WorkflowState.DISPATCHING)
            if row.id in self._canceling and before not in ENDED:
                why = self._canceling[row.id]
                before = self._change_workflow(row.id, before, WorkflowState.CANCELING, *why)
            after = next_state(before, row.counts)
            if after not in ENDED and after is not WorkflowState.CANCELING:
                await self._fail_fast(row)
            if after is not before:
                self._change_workflow(row.id, before, after)
                if after in ENDED and row.flags & REACTS:
                    ends.append((row.id, run, after))
            if (after, run) != (row.state, row.run):
                finished_at = self.now if after in ENDED else None
                changed.append((row.id, int(after), run, finished_at))
        if changed:
            await self.tx.workflows.set_state(changed)
        if ends:
            await note_ends(self.tx, ends)

    async def _fail_fast(self, row: WorkflowRow) -> None:
        """Records the cascade that stops the rest of the workflow, if a failure demands it."""
        deltas = self._workflows[row.id]
        failures = deltas.get(State.FAILED.code, 0) + deltas.get(State.REJECTED.code, 0)
        if not stops_now(row.flags, row.counts, failures):
            return
        under_way = await self.tx.workflows.cascades_of(workflows=[row.id])
        if any(cascade.kind == CascadeKind.STOP for cascade in under_way):
            return
        why = json.dumps({"reason": "Another job of the workflow failed"})
        await self.tx.workflows.add_cascades([Cascade.of_workflow(row.id, CascadeKind.STOP, why)])
        self.effects.cascades = True
        self.say(EventKind.WORKFLOW, "stopped by a failure", data={"workflow": row.id})

    def _change_workflow(
        self,
        workflow: int,
        before: WorkflowState,
        after: WorkflowState,
        reason: str | None = None,
        actor: str | None = None,
    ) -> WorkflowState:
        message = f"{before.name.lower()} → {after.name.lower()}"
        self.say(
            EventKind.WORKFLOW,
            message if reason is None else f"{message}: {reason}",
            actor=actor,
            data={"workflow": workflow, "from": int(before), "to": int(after)},
        )
        if after in ENDED:
            self.effects.ended_workflows.append(workflow)
        return after


def depth_of(queue: str) -> str:
    """Returns the counter of a queue's depth."""
    return f"{DEPTH}{queue}"


def refuse(source: int, to: int) -> None:
    """Raises for a transition outside the table; both codes are known states."""
    before, after = STATE_BY_CODE[source], STATE_BY_CODE[to]
    raise InvalidTransition(before, str(after))


async def note_ends(tx: WriteTx, ends: Sequence[tuple[int, int, WorkflowState]]) -> None:
    """Records the reactions to these ends: workflow, run, and final state."""
    about = await tx.workflows.about([workflow for workflow, _, _ in ends])
    rows: list[ReactionRow] = []
    for workflow, run, state in ends:
        details = decode_details(about[workflow].body)
        for trigger in triggers(state):
            for place, value in enumerate(reactions_for(details, trigger)):
                rows.append(
                    ReactionRow(
                        0, workflow, run, int(trigger), place, _kind(value),
                        ReactionState.PENDING, 0, tx.now, tx.now, None, int(state), None, None,
                    )
                )  # fmt: skip
    if rows:
        await tx.reactions.add(rows)


def reactions_for(details: Details, trigger: int) -> list[Any]:
    """Returns the reactions of a workflow to one kind of end, as they were submitted."""
    chosen = {
        Trigger.SUCCESS: details.on_success,
        Trigger.FAILURE: details.on_failure,
        Trigger.END: details.on_end,
    }
    return chosen[Trigger(trigger)]


def _kind(value: Any) -> int:
    if value.get("webhook") is not None:
        return ReactionKind.WEBHOOK
    return ReactionKind.SUBMIT if value.get("retry") is None else ReactionKind.RETRY
