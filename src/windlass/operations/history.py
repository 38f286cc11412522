"""What workers and pools did over time: attempts and machines, put together from events."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from windlass.domain.access.rights import FLEET, Action, Identity, may, sees
from windlass.domain.lifecycle.states import ACTIVE_CODES, STATE_BY_CODE, State
from windlass.domain.matching.shapes import Shape
from windlass.domain.pools.pools import MICROS, Lifecycle, PoolWorkerRow
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import Lease
from windlass.domain.rows.series import HOUR, PlanFigures, SeriesKind, read_plan, slot_of
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.ids import NameOrId
from windlass.domain.values.quantities import format_moment, shown_moment
from windlass.engine.engine import Engine
from windlass.engine.fleet.workers import find_worker
from windlass.engine.history.events import number_before
from windlass.messages.history import (
    FleetChange,
    PoolFigures,
    PoolHistory,
    PoolMachine,
    PoolReason,
    PoolSize,
    WorkerHistory,
    WorkerSpell,
)
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.parse import moment_since
from windlass.operations.past import MAX_SLOTS, Span, span_of
from windlass.store.sql.transaction import ReadTx


class Spell(NamedTuple):
    """An attempt on a worker. `state` is where its job went, or is while it lasts."""

    job: int
    attempt: int
    state: State
    assigned_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    reason: str | None = None

    @property
    def begin(self) -> int:
        """When it began, as far as that is known."""
        known = (self.assigned_at, self.started_at, self.finished_at)
        return next((at for at in known if at is not None), 0)


def spells_of(events: Sequence[Event], leases: Sequence[Lease]) -> list[Spell]:
    """Returns the attempts of a worker, by start: from its events, descending, and its leases."""
    found: dict[tuple[int, int], Spell] = {}
    for event in reversed(events):
        state = STATE_BY_CODE[event.to] if 0 <= event.to < len(STATE_BY_CODE) else None
        if event.kind != EventKind.JOB or state is None:
            continue
        # An attempt that ends may move its job on in the same breath: the first end counts.
        key = event.job, event.attempt
        known = found.get(key) or Spell(event.job, event.attempt, state)
        if known.finished_at is None:
            found[key] = _after(known, event, state)
    for lease in leases:
        held = Spell(
            lease.job, lease.attempt, STATE_BY_CODE[lease.state] or State.ASSIGNED,
            lease.assigned_at, lease.started_at,
        )  # fmt: skip
        found[lease.job, lease.attempt] = held
    return sorted(found.values(), key=lambda spell: (spell.begin, spell.job))


def _after(spell: Spell, event: Event, state: State) -> Spell:
    if state is State.ASSIGNED:
        return spell._replace(state=state, assigned_at=event.at)
    if state is State.RUNNING:
        return spell._replace(state=state, started_at=event.at)
    if state.code in ACTIVE_CODES:
        return spell._replace(state=state, reason=event.reason)
    return spell._replace(state=state, finished_at=event.at, reason=event.reason or spell.reason)


class Machine(NamedTuple):
    """A machine of a pool, by the name of its worker."""

    name: str
    state: str
    requested_at: int | None = None
    ready_at: int | None = None
    gone_at: int | None = None
    reason: str | None = None


class Size(NamedTuple):
    """How many machines there were from a time on, and how many of them had a worker."""

    at: int
    machines: int
    ready: int


def machines_of(events: Sequence[Event], living: Iterable[PoolWorkerRow]) -> list[Machine]:
    """Returns the machines of a pool, by request: from its events, descending, and its rows."""
    found = {row.token: _living(row) for row in living}
    for event in reversed(events):
        data = event.details
        asked = data.get("tokens")
        for name in asked if isinstance(asked, list) else ():
            known = found.get(name) or Machine(str(name), "requested")
            found[str(name)] = known._replace(requested_at=event.at)
        name, state = data.get("token"), data.get("state")
        if isinstance(name, str) and isinstance(state, str):
            found[name] = _moved(found.get(name) or Machine(name, state), event, state)
    return sorted(found.values(), key=lambda one: (one.requested_at or 0, one.name))


def _living(row: PoolWorkerRow) -> Machine:
    state = Lifecycle(row.state)
    ready = row.changed_at if state is Lifecycle.ONLINE else None
    return Machine(row.token, state.name.lower(), row.requested_at, ready, None, row.reason)


def _moved(machine: Machine, event: Event, state: str) -> Machine:
    machine = machine._replace(state=state)
    if state == Lifecycle.ONLINE.name.lower():
        return machine._replace(ready_at=event.at)
    if state == Lifecycle.GONE.name.lower():
        text = event.reason or ""
        return machine._replace(gone_at=event.at, reason=text.partition(": ")[2] or None)
    return machine


def sizes_of(machines: Iterable[Machine], begin: int, end: int) -> list[Size]:
    """Returns how the size changed between two times; the first one is that at the beginning."""
    steps: dict[int, tuple[int, int]] = {begin: (0, 0)}

    def add(at: int, machine: int, ready: int) -> None:
        at = max(at, begin)
        if at <= end:
            had = steps.get(at, (0, 0))
            steps[at] = had[0] + machine, had[1] + ready

    for one in machines:
        # What is not in the log any more, or not yet, was before it.
        add(begin if one.requested_at is None else one.requested_at, 1, 0)
        if one.ready_at is not None:
            add(one.ready_at, 0, 1)
        if one.gone_at is not None:
            add(one.gone_at, -1, 0 if one.ready_at is None else -1)
    sizes: list[Size] = []
    machines_now = ready_now = 0
    for at in sorted(steps):
        machines_now += steps[at][0]
        ready_now += steps[at][1]
        sizes.append(Size(at, machines_now, ready_now))
    return sizes


routes = Routes("/api/v1", "history")


MAX_WALKED: Final = 200_000  # events of the log, for the history of one worker
MAX_SEARCHED: Final = 1_000_000  # events of the log, for those about pools
MAX_EVENTS: Final = 5_000  # that name the worker or a pool
MAX_ATTEMPTS: Final = 1_000
MAX_NAMED: Final = 200  # attempts that are over
MAX_CHANGES: Final = 200
MAX_SIZES: Final = 1_000
HOUR_MS: Final = 3_600_000


class Window(NamedTuple):
    """The part of the log between two times; `after` and `until` are numbers of events."""

    begin: int
    end: int
    after: int
    until: int
    cut: bool = False  # the log holds more in that time than is read
    is_past: bool = False  # it ended before now


class _Named(msgspec.Struct, frozen=True):
    name: str | None = None


_named: Final = msgspec.json.Decoder(_Named).decode


@routes.get("/workers/{worker:str}/history", needs=Action.READ_FLEET, costly=True)
async def worker_history(
    call: Call, worker: NameOrId, since: str | None = None, until: str | None = None
) -> WorkerHistory:
    """Returns the attempts that ran on a worker, and what happened to it; at most 1,000.

    `since` and `until` are times, or how long ago; without them, the last hour.
    """
    engine = call.services.engine
    seen = await _window(engine, since, until, MAX_WALKED)

    async def read(tx: ReadTx) -> WorkerHistory:
        row = await find_worker(tx, worker)
        events = await tx.views.worker_events(row.id, seen.after, seen.until, MAX_EVENTS)
        leases = [] if seen.is_past else await tx.leases.of_workers([row.id])
        spells = spells_of(events, leases)
        begin = seen.begin
        more = seen.cut or len(events) == MAX_EVENTS or len(spells) > MAX_ATTEMPTS
        older, spells = spells[:-MAX_ATTEMPTS], spells[-MAX_ATTEMPTS:]
        if more and spells:
            begin = max(begin, spells[0].begin)
        held = {(lease.job, lease.attempt) for lease in leases}  # shown however old
        spells = [one for one in older if (one.job, one.attempt) in held] + spells
        facts = await tx.jobs.read(sorted({spell.job for spell in spells}))
        known = await engine.catalog.know(tx, [fact.shape for fact in facts.values()])
        shapes = {job: known[fact.shape] for job, fact in facts.items()}
        names = await _names(tx, spells)
        changes = [event for event in events if event.kind == EventKind.WORKER]
        if not may(call.who, Action.READ_EVENTS, FLEET):
            changes = []  # As the log is shown: limited tokens see events of their jobs.
        return WorkerHistory(
            begin=format_moment(seen.begin),
            end=format_moment(seen.end),
            complete_from=format_moment(begin),
            more=more,
            slots=row.slots,
            attempts=[
                _show(spell, shapes.get(spell.job), call.who, names.get(spell.job))
                for spell in spells
            ],
            changes=[
                FleetChange(at=format_moment(event.at), what=event.reason or "", actor=event.actor)
                for event in changes[:MAX_CHANGES]
            ],
        )

    return await engine.store.read(read)


@routes.get("/pools/{name:str}/history", needs=Action.READ_FLEET)
async def pool_history(
    call: Call, name: str, since: str | None = None, until: str | None = None
) -> PoolHistory:
    """Returns the machines of a pool as they came and went, its sizes, and what happened to it.

    `since` and `until` are times, or how long ago; without them, the last hour.
    """
    engine = call.services.engine
    seen = await _window(engine, since, until, MAX_SEARCHED)

    async def read(tx: ReadTx) -> PoolHistory:
        pools = await tx.pools.all()
        row = next((pool for pool in pools if pool.name == name), None)
        if row is None:
            raise NotFound("pool", name)
        found = await tx.views.pool_events(seen.after, seen.until, MAX_EVENTS)
        events = [event for event in found if event.details.get("pool") == name]
        living = await tx.pools.living(row.id)
        more = seen.cut or len(found) == MAX_EVENTS
        begin = found[-1].at if more and found else seen.begin
        shown = events[:MAX_CHANGES] if may(call.who, Action.READ_EVENTS, FLEET) else []
        machines = [
            one
            for one in machines_of(events, living)
            if one.requested_at is None or one.requested_at <= seen.end
        ]
        sizes = sizes_of(machines, begin, seen.end)
        detail = engine.config.series_detail_ms
        past = await read_past(tx, name, seen.begin, seen.end, detail, len(pools))
        return PoolHistory(
            begin=format_moment(seen.begin),
            end=format_moment(seen.end),
            complete_from=format_moment(begin),
            more=more,
            figures=show_figures(past, machines, begin),
            reasons=show_reasons(past),
            sizes=[
                PoolSize(at=format_moment(one.at), machines=one.machines, ready=one.ready)
                for one in sizes[-MAX_SIZES:]
            ],
            machines=[
                PoolMachine(
                    name=one.name,
                    state=one.state,
                    requested_at=shown_moment(one.requested_at),
                    ready_at=shown_moment(one.ready_at),
                    gone_at=shown_moment(one.gone_at),
                    reason=one.reason,
                )
                for one in machines[-MAX_ATTEMPTS:]
            ],
            changes=[
                FleetChange(at=format_moment(event.at), what=event.reason or "", actor=event.actor)
                for event in shown
            ],
        )

    return await engine.store.read(read)


async def _window(engine: Engine, since: str | None, until: str | None, most: int) -> Window:
    """Returns the part of the log to read: the last hour, unless told otherwise."""
    now = await engine.now()
    end = now if until is None else moment_since(until, now, "until")
    begin = end - HOUR_MS if since is None else moment_since(since, now)
    if begin >= end:
        raise InvalidInput("since", f"before until ({format_moment(end)})", since)
    store = engine.store
    last = await store.read(lambda tx: tx.log.newest())
    if end < now:
        last = await number_before(store, end + 1)
    after = min(await number_before(store, begin), last)
    cut = last - after > most
    return Window(begin, end, last - most if cut else after, last, cut, end < now)


async def _names(tx: ReadTx, spells: Sequence[Spell]) -> dict[int, str | None]:
    """Returns the names of the jobs of attempts that last, and of the newest others."""
    lasting = {spell.job for spell in spells if spell.finished_at is None}
    newest = {spell.job for spell in spells[-MAX_NAMED:]}
    specs = await tx.jobs.specs(sorted(lasting | newest))
    return {job: _named(stored).name for job, stored in specs.items()}


def _show(spell: Spell, shape: Shape | None, who: Identity, name: str | None) -> WorkerSpell:
    visible = may(who, Action.READ_JOBS, FLEET) if shape is None else sees(who, shape.namespace)
    shown = WorkerSpell(
        attempt=spell.attempt,
        state=spell.state.value,
        assigned_at=shown_moment(spell.assigned_at),
        started_at=shown_moment(spell.started_at),
        finished_at=shown_moment(spell.finished_at),
    )
    if not visible:
        return shown
    return msgspec.structs.replace(
        shown,
        job=spell.job,
        name=name,
        reason=spell.reason,
        task=None if shape is None else shape.task,
        queue=None if shape is None else shape.queue,
    )


MAX_REASONS: Final = 100

T = TypeVar("T", int, float)


class PoolPast(NamedTuple):
    """What is kept of a pool, by slot."""

    span: Span
    plans: dict[int, PlanFigures]


async def read_past(
    tx: ReadTx, name: str, begin: int, end: int, detail_ms: int, pools: int
) -> PoolPast:
    """Reads the figures of a pool between two times, as far back as one answer may show."""
    span = span_of(max(begin, end - MAX_SLOTS * HOUR), end, tx.now, detail_ms, pools)
    rows = await tx.series.between([SeriesKind.PLAN], span.step, span.start, span.end)
    return PoolPast(span, {row.at: read_plan(row) for row in rows if row.name == name})


def show_figures(past: PoolPast, machines: Sequence[Machine], known_from: int) -> PoolFigures:
    """Renders the figures, with the machines that came and went since `known_from`."""
    span, plans = past

    def each(value: Callable[[PlanFigures], T | None]) -> list[T | None]:
        return [None if (plan := plans.get(at)) is None else value(plan) for at in span.slots]

    return PoolFigures(
        step=span.step // 1000,
        times=[at // 1000 for at in span.slots],
        machines=each(lambda plan: plan.machines),
        ready=each(lambda plan: plan.ready),
        wanted=each(lambda plan: plan.wanted),
        most=each(lambda plan: plan.most),
        latency_seconds=each(lambda plan: _seconds(plan.latency_ms, unknown=-1)),
        target_seconds=each(lambda plan: _seconds(plan.target_ms)),
        used_seconds=each(lambda plan: _seconds(plan.used_ms)),
        used_money=each(lambda plan: plan.used_micros / MICROS),
        budget_seconds=each(lambda plan: _seconds(plan.budget_ms, unknown=0)),
        started=_counted(span, known_from, (one.requested_at for one in machines)),
        ended=_counted(span, known_from, (one.gone_at for one in machines)),
    )


def show_reasons(past: PoolPast) -> list[PoolReason]:
    """Returns the reasons of the plan, newest first; each from when on it was given."""
    found: list[PoolReason] = []
    for at, plan in sorted(past.plans.items()):
        if not found or found[-1].reason != plan.reason:
            found.append(PoolReason(at=format_moment(at), reason=plan.reason))
    return found[-MAX_REASONS:][::-1]


def _counted(span: Span, known_from: int, times: Iterable[int | None]) -> list[int | None]:
    counts: dict[int, int] = {}
    for at in times:
        if at is not None:
            slot = slot_of(at, span.step)
            counts[slot] = counts.get(slot, 0) + 1
    known = slot_of(known_from, span.step)
    return [counts.get(at, 0) if at >= known else None for at in span.slots]


def _seconds(ms: int, unknown: int | None = None) -> float | None:
    return None if ms == unknown else ms / 1000
