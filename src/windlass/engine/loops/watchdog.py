"""The watchdog: finds workflows that do not move although nothing holds them back.

It repairs contradictions, and gives up on workflows in which one came back. Finding takes no locks.
We check each finding again under locks before we change anything, so that a workflow that moved on
meanwhile is left alone.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
import structlog

from windlass.domain.job.dependency_graph import ids_in
from windlass.domain.job.job import ALLOW_FAILURE, CONDITIONAL, MANUAL, JobSpec, decode_spec
from windlass.domain.lifecycle.states import COMPLETED, STATE_BY_CODE
from windlass.domain.lifecycle.workflow_state import (
    ENDED,
    Contradiction,
    WorkflowState,
    look_at,
    may_be_stuck,
)
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import (
    DECIDES,
    Cascade,
    CascadeKind,
    JobFacts,
    Ticket,
    Wait,
    WorkflowRow,
)
from windlass.domain.values.errors import Conflict
from windlass.engine.engine import Engine
from windlass.engine.jobs.dependents import hold_back, newest_of, release
from windlass.engine.jobs.places import withdraw
from windlass.engine.transaction.unit_of_work import Work
from windlass.engine.workflows import StopReason, cancel_workflow
from windlass.store.sql.transaction import ReadTx

ACTOR: Final = "watchdog"
PAGE: Final = 1_000
SHOWN: Final = 100  # jobs, events and workers named in a report
INTERVAL_MS = 30_000
log = structlog.get_logger("windlass.watchdog")


class Stall(NamedTuple):
    """A contradiction in a workflow; `jobs` are the blocked ones it is about."""

    workflow: int
    what: Contradiction
    jobs: tuple[int, ...] = ()


async def examine(tx: ReadTx, workflow: int) -> Stall | None:
    """Examines one workflow in one snapshot."""
    row = (await tx.workflows.read([workflow])).get(workflow)
    if row is None or WorkflowState(row.state) in ENDED:
        return None
    under_way = await tx.workflows.cascades_of(workflows=[workflow])
    recount = await tx.workflows.recount(workflow)
    stopping = any(c.kind == CascadeKind.CANCEL for c in under_way)
    what = look_at(WorkflowState(row.state), row.counts, recount, stopping)
    if what is not None:
        return Stall(workflow, what)
    if under_way or not may_be_stuck(recount):
        return None
    stuck = await _stuck_jobs(tx, workflow)
    return Stall(workflow, Contradiction.BLOCKED, stuck) if stuck else None


async def _stuck_jobs(tx: ReadTx, workflow: int) -> tuple[int, ...]:
    """Returns the open jobs that wait for neither an operator nor an open job."""
    stuck: list[int] = []
    after = 0
    while jobs := await tx.workflows.open_jobs(workflow, after, PAGE):
        stuck += await _without_hope(tx, jobs)
        after = jobs[-1]
    return tuple(stuck)


async def _without_hope(tx: ReadTx, jobs: Sequence[int]) -> list[int]:
    waits = await tx.places.waits(jobs)
    specs = {job: decode_spec(body) for job, body in (await tx.jobs.specs(jobs)).items()}
    newest = await newest_of(tx, {r for s in specs.values() for r in ids_in(s)})
    busy = {c.job for c in await tx.workflows.cascades_of([*jobs, *newest])}
    found = []
    for job in jobs:
        needs = [newest[ref] for ref in ids_in(specs[job]) if ref in newest]
        if job in busy or any(fact.id in busy for fact in needs):
            continue  # its dependents are about to be told
        open_needs = [fact for fact in needs if fact.is_open]
        wait = waits.get(job)
        if wait is None or not (wait.needs_operator or open_needs):
            found.append(job)
    return found


async def repair(work: Work, found: Stall) -> bool:
    """Repairs what is still wrong; returns False if nothing is."""
    if found.what is Contradiction.BLOCKED:
        return await _unblock(work, found)
    row = (await work.tx.workflows.lock([found.workflow])).get(found.workflow)
    if row is None or WorkflowState(row.state) in ENDED:
        return False
    recount = await work.tx.workflows.recount(found.workflow)
    stopping = await work.tx.workflows.cascades_of(workflows=[found.workflow])
    what = look_at(WorkflowState(row.state), row.counts, recount, bool(stopping))
    if what is None:
        return False
    for slot, (counted, should) in enumerate(zip(row.counts, recount, strict=True)):
        if counted != should:
            work.count_in_workflow(row.id, slot, should - counted)
    work.touch_workflow(row.id)
    if what is Contradiction.NOT_STOPPED:
        why = msgspec.json.encode(StopReason("Canceled", ACTOR)).decode()
        work.cascades.append(Cascade.of_workflow(row.id, CascadeKind.CANCEL, why))
    _say(work, row.id, f"repaired: {what}", {"counts": row.counts, "recount": recount})
    return True


async def _unblock(work: Work, found: Stall) -> bool:
    """Makes these jobs wait for their real dependencies, or continue."""
    specs = {j: decode_spec(b) for j, b in (await work.tx.jobs.specs(found.jobs)).items()}
    newest = await newest_of(work.tx, {r for s in specs.values() for r in ids_in(s)})
    named = {ref: fact.id for ref, fact in newest.items()}
    locked = await work.tx.jobs.lock(sorted({*found.jobs, *named.values()}))
    await work.catalog.know(work.tx, (locked[job].shape for job in specs if job in locked))
    still = set(await _without_hope(work.tx, [j for j in found.jobs if j in locked]))
    repaired = []
    for job in found.jobs:
        if job in still and not locked[job].state:
            needs = [(locked[named[r]], r in specs[job].after_any) for r in ids_in(specs[job])
                     if r in named]  # fmt: skip
            if await _place(work, locked[job], specs[job], needs):
                repaired.append(job)
    if repaired:
        message = f"repaired: {Contradiction.BLOCKED}"
        _say(work, found.workflow, message, {"jobs": repaired[:SHOWN]})
    return bool(repaired)


async def _place(
    work: Work, fact: JobFacts, spec: JobSpec, needs: Sequence[tuple[JobFacts, bool]]
) -> bool:
    """Puts a blocked job where it belongs; leaves one alone that has moved on."""
    found = await withdraw(work, [fact])
    if found.leased or any(gone.wait is None for gone in found.withdrawn):
        raise Conflict("moved", f"job {fact.id} is no longer blocked: nothing to repair")
    attempt = found.withdrawn[0].ticket.attempt if found.withdrawn else fact.attempt
    ticket = Ticket(
        fact.shape, fact.rank, fact.id, attempt, fact.workflow, fact.limit, fact.excluded
    )
    failed = [need for need, any_end in needs if not any_end and _has_failed(need)]
    unmet = len(failed) + sum(1 for need, _ in needs if need.is_open)
    # The operator's approval is lost with the row, so the operator must approve again.
    manual = 1 if fact.flags & MANUAL and not found.withdrawn else 0
    wait = Wait(fact.id, unmet + manual, manual, spec.not_before_ms, fact.age_from, ticket)
    if fact.flags & CONDITIONAL and not attempt:
        wait = wait._replace(manual=DECIDES)
        await (work.tx.places.add_waits([wait]) if unmet else hold_back(work, wait))
        return True
    if not wait.unmet:
        await release(work, [wait])
        return True
    await work.tx.places.add_waits([wait])
    for need in failed:
        work.cascades.append(Cascade.of_job(need.id, CascadeKind.ABORT))
    return True


def _has_failed(fact: JobFacts) -> bool:
    return not fact.is_open and fact.state != COMPLETED and not fact.flags & ALLOW_FAILURE


async def give_up(work: Work, found: Stall) -> bool:
    """Cancels a workflow whose contradiction came back, and logs all we know about it."""
    everything = await describe(work.tx, found)
    stopped = await cancel_workflow(work, found.workflow, f"Stalled: {found.what}", ACTOR)
    if stopped.applied:
        _say(work, found.workflow, f"canceled: {found.what}", everything)
    return stopped.applied


async def describe(tx: ReadTx, found: Stall) -> dict[str, Any]:
    """Returns counts, jobs, last events and workers for the log."""
    row: WorkflowRow = (await tx.workflows.read([found.workflow]))[found.workflow]
    open_jobs = await tx.workflows.open_jobs(found.workflow, 0, SHOWN)
    waits = await tx.places.waits(open_jobs)
    events = [event for job in open_jobs[:10] for event in (await tx.log.of_job(job))[-5:]]
    workers = await tx.workers.all()
    return {
        "counts": row.counts,
        "recount": await tx.workflows.recount(found.workflow),
        "jobs": open_jobs,
        "waits": [(wait.job, wait.unmet, wait.manual) for wait in waits.values()],
        "events": [
            (e.seq, e.job, str(STATE_BY_CODE[e.source]), str(STATE_BY_CODE[e.to]), e.reason)
            for e in events
        ],
        "workers": [(w.id, w.name, w.status, w.last_seen) for w in workers[:SHOWN]],
    }


def _say(work: Work, workflow: int, message: str, data: dict[str, Any]) -> None:
    work.say(
        EventKind.WATCHDOG, f"Workflow {workflow} {message}", actor=ACTOR,
        data={"workflow": workflow, **data},
    )  # fmt: skip


class WatchdogReport(msgspec.Struct, frozen=True):
    """What one round did; `examined` counts workflows unchanged since the last round."""

    unfinished: int
    examined: int
    repaired: int
    canceled: int


class _Sighting(NamedTuple):
    """How a workflow looked in the last round, and when it was examined."""

    look: tuple[object, ...]
    examined_at: int | None


class WatchdogLoop:
    """Repairs contradictions, and cancels workflows in which one came back."""

    name = "watchdog"

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.interval_ms = min(INTERVAL_MS, engine.config.stall_timeout_ms)
        self._seen: dict[int, _Sighting] = {}
        self._repaired_at: dict[int, int] = {}  # when a contradiction was first found

    async def run_once(self, now: int) -> WatchdogReport:
        """Runs one round: examines workflows that are unchanged since the last one."""
        rows = await self._unfinished()
        suspects = [row for row in rows if self._stands(row, now)]
        open_ids = {row.id for row in rows}
        self._seen = {n: seen for n, seen in self._seen.items() if n in open_ids}
        self._repaired_at = {n: at for n, at in self._repaired_at.items() if n in open_ids}
        repaired = canceled = 0
        for row in suspects:
            look = partial(examine, workflow=row.id)
            found = await self._engine.store.read(look, sum(row.counts))
            self._seen[row.id] = self._seen[row.id]._replace(examined_at=now)
            if found is not None:
                gave_up = await self._act(found, now)
                canceled += gave_up
                repaired += not gave_up
        self._engine.counters.ran(self.name, now)
        return WatchdogReport(len(rows), len(suspects), repaired, canceled)

    async def _unfinished(self) -> list[WorkflowRow]:
        rows: list[WorkflowRow] = []
        count = self._engine.config.chunk_rows
        while page := await self._engine.store.read(partial(_unfinished, rows=rows, count=count)):
            rows += page
        return rows

    def _stands(self, row: WorkflowRow, now: int) -> bool:
        """Returns True if it is unchanged since the last round and was not examined lately."""
        look = row.state, row.run, row.counts
        seen = self._seen.get(row.id)
        if seen is None or seen.look != look:
            self._seen[row.id] = _Sighting(look, None)
            return False
        return seen.examined_at is None or now - seen.examined_at >= self._patience

    @property
    def _patience(self) -> int:
        return self._engine.config.stall_timeout_ms

    async def _act(self, found: Stall, now: int) -> bool:
        """Repairs it, or cancels it if the problem came back; returns True if canceled."""
        first = self._repaired_at.setdefault(found.workflow, now)
        everything = await self._engine.store.read(partial(describe, found=found))
        log.error("workflow_stalled", workflow=found.workflow, what=found.what, **everything)
        came_back = now - first >= self._patience
        try:
            # Canceling only ends jobs that have their rows, so we restore missing rows first.
            await self._engine.run(partial(repair, found=found))
            gave_up = came_back and await self._engine.run(partial(give_up, found=found))
        except Conflict:
            return False  # it moved on meanwhile
        await self._engine.settled()
        return gave_up


async def _unfinished(tx: ReadTx, rows: list[WorkflowRow], count: int) -> list[WorkflowRow]:
    return await tx.workflows.unfinished(rows[-1].id if rows else 0, count)
