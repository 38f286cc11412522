"""The commands about schedules: create, pause, run by hand, delete.

Slots that pass while a schedule is paused do not count as missed.
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.job.dependency_graph import order_by_dependencies
from windlass.domain.rows.records import WorkflowRow
from windlass.domain.schedules import (
    CATCH_UP_LIMIT,
    CatchUp,
    Cron,
    Every,
    Overlap,
    RunRow,
    RunState,
    ScheduleRow,
    next_after,
)
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound
from windlass.domain.values.names import check_name
from windlass.engine.engine import Engine
from windlass.engine.schedules.runs import Runs, RunTarget, order_of, say
from windlass.engine.schedules.templates import Planner, check_template_name, plan_aside
from windlass.engine.transaction.arguments import check_text
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import aside
from windlass.store.sql.transaction import ReadTx

BODY_LIMIT: Final = 1024 * 1024
SHOWN_RUNS: Final = 20

_encode = msgspec.json.Encoder(order="deterministic").encode


class ScheduleInput(NamedTuple):
    """A schedule as requested by a caller."""

    namespace: str
    name: str
    cron: str | None
    every_ms: int | None
    zone: str
    overlap: str
    catch_up: str
    catch_up_limit: int
    paused: bool
    starts: RunTarget


class ScheduleView(NamedTuple):
    """A schedule, its newest runs, and the workflows of these that still exist."""

    row: ScheduleRow
    runs: Sequence[RunRow]
    workflows: Mapping[int, WorkflowRow]


class Schedules:
    """The schedules of one engine."""

    def __init__(self, engine: Engine, planner: Planner) -> None:
        self._engine = engine
        self._planner = planner
        self.runs = Runs(engine, planner)

    async def put(self, wanted: ScheduleInput, actor: str) -> tuple[ScheduleRow, bool]:
        """Creates or changes a schedule; returns the row, and whether anything changed."""
        body = _checked(wanted, actor)
        await self._try_plan(_draft(wanted, body))

        async def step(work: Work) -> tuple[ScheduleRow, bool]:
            return await _put(work, _draft(wanted, body), actor)

        return await self._engine.run(step)

    async def remove(self, namespace: str, name: str, actor: str) -> bool:
        """Deletes a schedule and its runs; workflows it started continue."""

        async def step(work: Work) -> bool:
            row = await work.tx.schedules.lock_name(namespace, name)
            if row is None:
                return False
            await work.tx.schedules.remove(row.id)
            say(work, row, "removed", actor)
            return True

        return await self._engine.run(step)

    async def set_paused(self, namespace: str, name: str, paused: bool, actor: str) -> bool:
        """Pauses or resumes a schedule; returns whether that changed anything."""

        async def step(work: Work) -> bool:
            row = _found(await work.tx.schedules.lock_name(namespace, name), name)
            if bool(row.paused) == paused:
                return False
            next_at = row.next_at if paused else next_after(row, work.now)
            changed = row._replace(paused=int(paused), next_at=next_at, updated_at=work.now)
            await work.tx.schedules.update(changed)
            say(work, row, "paused" if paused else "resumed", actor)
            return True

        return await self._engine.run(step)

    async def run_now(self, namespace: str, name: str, actor: str) -> RunRow:
        """Runs a schedule by hand, beside its slots; its overlap policy still applies."""

        async def step(work: Work) -> RunRow:
            row = _found(await work.tx.schedules.lock_name(namespace, name), name)
            wanted = RunRow(
                0, row.id, None, RunState.WAITING, None, work.now, work.now, None, actor
            )
            (run,) = await work.tx.schedules.add_runs([wanted])
            say(work, row, "run by hand", actor, run=run.id)
            return run

        run = await self._engine.run(step)
        await self.runs.advance(run.schedule)
        runs = await self._engine.store.read(
            lambda tx: tx.schedules.runs(run.schedule, run.id + 1, 1)
        )
        return runs[0] if runs else run

    async def all(self, namespace: str | None) -> list[ScheduleRow]:
        """Returns every schedule of a namespace, or of all."""
        return await self._engine.store.read(lambda tx: tx.schedules.all(namespace))

    async def show(self, namespace: str, name: str) -> ScheduleView:
        """Returns a schedule with its newest runs."""

        async def read(tx: ReadTx) -> ScheduleView:
            row = _found(await tx.schedules.named(namespace, name), name)
            runs = await tx.schedules.runs(row.id, 0, SHOWN_RUNS)
            started = sorted(run.workflow for run in runs if run.workflow is not None)
            return ScheduleView(row, runs, await tx.workflows.read(started))

        return await self._engine.store.read(read)

    async def _try_plan(self, row: ScheduleRow) -> None:
        """Raises if the schedule could not be started, as far as we can tell now."""
        order = await self._engine.store.read(lambda tx: order_of(tx, row, 0))
        jobs = (await plan_aside(self._planner, order)).jobs

        def check() -> None:
            self._engine.submissions.validate(jobs)
            order_by_dependencies(jobs)

        await aside(len(jobs), check)


def _found(row: ScheduleRow | None, name: str) -> ScheduleRow:
    if row is None:
        raise NotFound("schedule", name)
    return row


async def _put(work: Work, draft: ScheduleRow, actor: str) -> tuple[ScheduleRow, bool]:
    draft = draft._replace(created_at=work.now, created_by=actor, updated_at=work.now)
    known = await work.tx.schedules.lock_name(draft.namespace, draft.name)
    if known is None:
        row = draft._replace(next_at=next_after(draft, work.now))
        number = await work.tx.schedules.insert(row)
        if not number:
            raise Conflict(
                "busy", f"schedule {row.name} is being changed by another request", 1_000
            )
        row = row._replace(id=number)
        say(work, row, "put", actor)
        return row, True
    same = ("cron", "every_ms", "zone", "overlap", "catch_up", "catch_up_limit", "paused", "body")
    if all(getattr(known, field) == getattr(draft, field) for field in same):
        return known, False
    row = draft._replace(
        id=known.id,
        next_at=known.next_at,
        last_slot=known.last_slot,
        created_at=known.created_at,
        created_by=known.created_by,
    )
    clock = ("cron", "every_ms", "zone", "paused")
    if any(getattr(known, field) != getattr(row, field) for field in clock):
        row = row._replace(next_at=next_after(row, work.now))
    await work.tx.schedules.update(row)
    say(work, row, "changed", actor)
    return row, True


def _checked(wanted: ScheduleInput, actor: str) -> bytes:
    """Checks what the schedule starts and returns it as stored."""
    check_template_name(wanted.name)
    check_name("namespace", wanted.namespace)
    check_text("actor", actor)
    _check_times(wanted)
    _one_of("overlap", wanted.overlap, tuple(Overlap))
    _one_of("catch_up", wanted.catch_up, tuple(CatchUp))
    if not 1 <= wanted.catch_up_limit <= CATCH_UP_LIMIT:
        raise InvalidInput("catch_up_limit", f"1 to {CATCH_UP_LIMIT}", wanted.catch_up_limit)
    starts = wanted.starts
    if bool(starts.jobs) == (starts.template is not None):
        got = "both" if starts.jobs else "neither"
        raise InvalidInput("template", "given, unless jobs are", got)
    if starts.jobs and starts.parameters:
        raise InvalidInput("parameters", "given only with a template", "jobs")
    body = _encode(starts)
    if len(body) > BODY_LIMIT:
        raise InvalidInput("jobs", f"at most {BODY_LIMIT} bytes as JSON", f"{len(body)} bytes")
    return body


def _check_times(wanted: ScheduleInput) -> None:
    """Checks that there is a cron line or an interval, and only one of them."""
    if wanted.cron is not None and wanted.every_ms is None:
        Cron(wanted.cron, wanted.zone)
    elif wanted.cron is None and wanted.every_ms is not None:
        Every(wanted.every_ms, 0)
        if wanted.zone != "UTC":
            raise InvalidInput("zone", "given only with a cron line", wanted.zone)
    else:
        got = "neither" if wanted.cron is None else "both"
        raise InvalidInput("cron", "a cron line, or an interval in `every` instead", got)


def _one_of(field: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise InvalidInput(field, f"one of {', '.join(known)}", value)


def _draft(wanted: ScheduleInput, body: bytes) -> ScheduleRow:
    return ScheduleRow(
        0, wanted.namespace, wanted.name, wanted.cron, wanted.every_ms, wanted.zone,
        wanted.overlap, wanted.catch_up, wanted.catch_up_limit, int(wanted.paused), None, 0, body,
        0, None, 0,
    )  # fmt: skip
