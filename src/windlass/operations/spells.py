"""Attempts on a worker and machines of a pool, put together from events; pure."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from windlass.domain.lifecycle.states import ACTIVE_CODES, STATE_BY_CODE, State
from windlass.domain.pools.pools import Lifecycle, PoolWorkerRow
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.rows.records import Lease


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
