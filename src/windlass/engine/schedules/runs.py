"""Runs the slots of schedules, each at most once.

We record a slot as a waiting run, together with the schedule's new `next_at`, under the
schedule's lock. A second transaction starts the run: it submits the workflow and notes that in
the run's row. If a server crashes in between, the run still exists once and is started once, by
any server.
"""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.lifecycle.workflow_state import ENDED, WorkflowState
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import WorkflowRow
from windlass.domain.schedules import (
    MISSED,
    Overlap,
    RunRow,
    RunState,
    ScheduleRow,
    decide,
    look,
)
from windlass.domain.values.errors import InvalidInput, Overloaded, StoreUnavailable, WindlassError
from windlass.domain.values.quantities import format_moment
from windlass.engine.engine import Engine
from windlass.engine.jobs.unique_keys import Duplicate
from windlass.engine.schedules.templates import (
    MANY_ROWS,
    Planner,
    PlanRequest,
    find_template,
    plan_aside,
    plan_request_of,
    submit_planned,
)
from windlass.engine.transaction.unit_of_work import Work
from windlass.store.sql.transaction import ReadTx

OPEN_LIMIT: Final = 1_000  # runs of one schedule handled together
TIDIED: Final = 20  # runs that no other waits for, whose ends are recorded at the next slot
REASON_LIMIT: Final = 500


class RunTarget(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a schedule starts: a template with parameters, or jobs."""

    template: str | None = None
    parameters: dict[str, Any] = {}
    jobs: list[dict[str, Any]] = []
    priority: int | str | None = None


starts_of = msgspec.json.Decoder(RunTarget).decode


class Advanced(NamedTuple):
    """What one step did for the oldest waiting run.

    `run` is 0 if nothing could be done. `cancel` lists the workflows that it waits for and that
    must be canceled.
    """

    run: int = 0
    workflow: int | None = None
    cancel: tuple[int, ...] = ()


class Runs:
    """Records and starts the runs of schedules."""

    def __init__(self, engine: Engine, planner: Planner) -> None:
        self._engine = engine
        self._planner = planner

    async def due(self, count: int) -> list[int]:
        """Returns the schedules with a slot that is due."""
        return await self._engine.store.read(lambda tx: tx.schedules.due(tx.now, count))

    async def until_next(self) -> int | None:
        """Returns in how many milliseconds the next slot is due, if there is one."""

        async def read(tx: ReadTx) -> int | None:
            at = await tx.schedules.next_due()
            return None if at is None else at - tx.now

        return await self._engine.store.read(read)

    async def waiting(self, after: int, count: int) -> list[int]:
        """Returns the schedules after this id that have runs to start."""
        return await self._engine.store.read(lambda tx: tx.schedules.waiting(after, count))

    async def note_slots(self, schedule: int) -> int:
        """Records the slots of a schedule that are due; returns how many will run."""
        return await self._engine.run(lambda work: _note_slots(work, schedule))

    async def advance(self, schedule: int) -> int:
        """Starts waiting runs, as far as the overlap policy allows; returns how many."""
        started = 0
        while True:
            done = await self._advance_once(schedule)
            for workflow in done.cancel:
                reason = "Its schedule starts the next run"
                await self._engine.workflows.cancel(workflow, reason, "schedule")
            started += done.workflow is not None
            if not done.run:
                return started

    async def _advance_once(self, schedule: int) -> Advanced:
        """Handles the oldest waiting run in one transaction, or in a second one if it cannot
        start.
        """
        tried: list[int] = []
        try:
            return await self._engine.run(
                lambda work: self._advance(work, schedule, tried), MANY_ROWS
            )
        except (StoreUnavailable, Overloaded):
            raise
        except WindlassError as error:
            if not tried:
                raise
            state, reason = _verdict(error)
            run = tried[-1]
            return await self._engine.run(
                lambda work: _end_waiting(work, schedule, run, state, reason)
            )

    async def _advance(self, work: Work, schedule: int, tried: list[int]) -> Advanced:
        row = await work.tx.schedules.lock(schedule)
        if row is None:
            return Advanced()
        runs = await work.tx.schedules.open_runs(schedule, OPEN_LIMIT)
        waiting = [run for run in runs if run.state == RunState.WAITING]
        if not waiting:
            return Advanced()
        started = [run for run in runs if run.state == RunState.STARTED]
        overlap = Overlap(row.overlap)
        if overlap is Overlap.ALLOW:
            started = started[:TIDIED]
        running = await _still_running(work, started)
        run = waiting[0]
        decision = decide(overlap, len(waiting), running)
        if decision.skip is not None:
            return await _end(work, row, run, RunState.SKIPPED, decision.skip)
        if not decision.start:
            return Advanced(cancel=decision.cancel)
        tried.append(run.id)
        planned = await plan_aside(self._planner, await order_of(work.tx, row, run.slot))
        submitted = await submit_planned(work, self._engine, planned)
        made = submitted.known_workflow
        done = run._replace(state=RunState.STARTED, workflow=made, changed_at=work.now)
        await work.tx.schedules.update_runs([done])
        _say(work, row, done, f"started workflow {made}", "started")
        return Advanced(run.id, made)


async def order_of(tx: ReadTx, row: ScheduleRow, slot: int | None) -> PlanRequest:
    """Returns the plan request for a run of this schedule."""
    starts = starts_of(row.body)
    order = PlanRequest(
        name=row.name,
        namespace=row.namespace,
        actor=f"schedule {row.name}",
        parameters=starts.parameters,
        jobs=starts.jobs,
        priority=starts.priority,
        labels={"schedule": row.name} | ({"slot": format_moment(slot)} if slot else {}),
    )
    if starts.template is not None:
        template = await find_template(tx, row.namespace, starts.template)
        order = plan_request_of(template, order)
    return order


async def _note_slots(work: Work, schedule: int) -> int:
    row = await work.tx.schedules.lock(schedule)
    if row is None or row.paused or row.next_at is None or row.next_at > work.now:
        return 0  # another server was faster
    try:
        due = look(row, work.now)
    except InvalidInput as error:  # for example, a zone that this server does not know
        await work.tx.schedules.update(row._replace(next_at=None))
        say(work, row, f"stopped: {error}", None)
        return 0
    runs = [
        RunRow(0, row.id, slot, RunState.WAITING, None, work.now, work.now, None, None)
        for slot in due.slots
    ]
    added = await work.tx.schedules.add_runs(runs)
    if due.missed_from is not None:
        skipped = RunRow(
            0, row.id, due.missed_from, RunState.SKIPPED, None, work.now, work.now, MISSED, None
        )
        await work.tx.schedules.add_runs([skipped])
    changed = row._replace(next_at=due.next_at, last_slot=max(row.last_slot, due.last))
    await work.tx.schedules.update(changed)
    if due.missed_from is not None:
        missed = format_moment(due.missed_from)
        say(work, row, f"missed slots from {missed} on", "cron", missed_from=missed)
    return len(added)


async def _still_running(work: Work, runs: Sequence[RunRow]) -> tuple[int, ...]:
    """Returns the open workflows of these runs, and records the ends of the others.

    It reads them without locks, because rows of workflows are locked last of all.
    """
    ended: list[RunRow] = []
    running: list[int] = []
    for run in runs:
        row = None if run.workflow is None else await _workflow(work.tx, run.workflow)
        if row is not None and WorkflowState(row.state) not in ENDED:
            running.append(row.id)
        else:
            state = None if row is None else WorkflowState(row.state).name.lower()
            ended.append(run._replace(state=RunState.ENDED, changed_at=work.now, reason=state))
    await work.tx.schedules.update_runs(ended)
    return tuple(running)


async def _workflow(tx: ReadTx, workflow: int) -> WorkflowRow | None:
    return (await tx.workflows.read([workflow])).get(workflow)


async def _end(work: Work, row: ScheduleRow, run: RunRow, state: RunState, reason: str) -> Advanced:
    ended = run._replace(state=state, changed_at=work.now, reason=reason[:REASON_LIMIT])
    await work.tx.schedules.update_runs([ended])
    word = state.name.lower()
    _say(work, row, ended, f"{word}: {ended.reason}", word)
    return Advanced(run.id)


async def _end_waiting(
    work: Work, schedule: int, run: int, state: RunState, reason: str
) -> Advanced:
    """Ends a run that could not be started, unless another server started it."""
    row = await work.tx.schedules.lock(schedule)
    if row is None:
        return Advanced()
    for found in await work.tx.schedules.open_runs(schedule, OPEN_LIMIT):
        if found.id == run and found.state == RunState.WAITING:
            return await _end(work, row, found, state, reason)
    return Advanced(run)


def _verdict(error: WindlassError) -> tuple[RunState, str]:
    """Returns the final state of a run that was refused, and why."""
    if isinstance(error, Duplicate):
        same = f"workflow {error.workflow} with the same key has not ended"
        return RunState.SKIPPED, same
    return RunState.FAILED, str(error)


def _say(work: Work, row: ScheduleRow, run: RunRow, what: str, verb: str) -> None:
    when = f"slot {format_moment(run.slot)}" if run.slot else "by hand"
    text = f"Schedule {row.name}, {when}: {what}"
    about = {"run": run.id, "slot": run.slot, "workflow": run.workflow, "run_state": verb}
    work.say(EventKind.SCHEDULE, text, actor=run.actor or "cron", data={**_about(row), **about})


def say(work: Work, row: ScheduleRow, what: str, actor: str | None, **data: object) -> None:
    """Adds an event about a schedule."""
    text = f"Schedule {row.name} {what}"
    work.say(EventKind.SCHEDULE, text, actor=actor, data={**_about(row), **data})


def _about(row: ScheduleRow) -> dict[str, object]:
    return {"schedule": row.id, "namespace": row.namespace, "name": row.name}
