"""What must agree inside a store after any test: places, log, counters, limits, workflows."""

from collections import Counter
from collections.abc import Iterator

from windlass.domain.events import Event, EventKind
from windlass.domain.job import ALLOW_FAILURE
from windlass.domain.states import STATE_BY_CODE, State
from windlass.domain.workflow import COUNTS, FORGIVEN
from windlass.engine.dependents import KEPT_WHILE_RUNNING
from windlass.ports.store import Snapshot, Store

QUEUED = State.QUEUED.code


async def complaints(store: Store) -> list[str]:
    """Everything in this store that contradicts itself."""
    snapshot = await store.snapshot()
    events = await store.read(lambda tx: tx.log.read(0, 10_000_000))
    logged = states_in_log(events)
    found = list(_places(snapshot, logged))
    found += _limits(snapshot)
    found += _workflows(snapshot, logged)
    found += _depths(snapshot, logged)
    return found


def states_in_log(events: list[Event]) -> dict[int, int]:
    """The state of each job as its transitions tell it."""
    states: dict[int, int] = {}
    for event in events:
        if event.kind == EventKind.JOB:
            known = states.get(event.job, 0)
            assert event.frm == known, f"job {event.job}: {event} does not follow from {known}"
            states[event.job] = event.to
    return states


def _places(snapshot: Snapshot, logged: dict[int, int]) -> Iterator[str]:
    standing: dict[int, list[int]] = {row.facts.id: [] for row in snapshot.jobs}
    for wait in snapshot.waits:
        if wait.manual != KEPT_WHILE_RUNNING:
            standing[wait.job].append(State.BLOCKED.code)
    for due in snapshot.due:
        standing[due.job].append(due.state)
    for ticket in (*snapshot.parked, *snapshot.ready):
        standing[ticket.job].append(QUEUED)
    for lease in snapshot.leases:
        standing[lease.job].append(lease.state)
    for row in snapshot.jobs:
        if row.facts.state:
            standing[row.facts.id].append(row.facts.state)
    for job, states in standing.items():
        if states != [logged.get(job)]:
            names = [str(STATE_BY_CODE[state]) for state in states]
            yield f"job {job} stands as {names}, the log says {STATE_BY_CODE[logged.get(job, 0)]}"


def _limits(snapshot: Snapshot) -> Iterator[str]:
    leased = Counter(lease.limit for lease in snapshot.leases if lease.limit)
    for row in snapshot.limits:
        if row.leased != leased[row.id]:
            yield f"limit {row.key} says {row.leased} leased, there are {leased[row.id]}"
        if leased[row.id] > row.max:
            yield f"limit {row.key} of {row.max} is exceeded by {leased[row.id]}"


def _workflows(snapshot: Snapshot, logged: dict[int, int]) -> Iterator[str]:
    counts = {row.id: [0] * COUNTS for row in snapshot.workflows}
    for row in snapshot.jobs:
        facts = row.facts
        if not facts.workflow or facts.superseded_by:
            continue
        counts[facts.workflow][logged[facts.id]] += 1
        if facts.state and facts.state != State.COMPLETED.code and facts.flags & ALLOW_FAILURE:
            counts[facts.workflow][FORGIVEN] += 1
    for workflow in snapshot.workflows:
        if list(workflow.counts) != counts[workflow.id]:
            yield f"workflow {workflow.id} counts {workflow.counts}, not {counts[workflow.id]}"


def _depths(snapshot: Snapshot, logged: dict[int, int]) -> Iterator[str]:
    queued = sum(1 for state in logged.values() if state == QUEUED)
    depth = sum(value for name, value in snapshot.counters if name.startswith("depth:"))
    if depth != queued:
        yield f"depth counters say {depth}, {queued} jobs are queued"
