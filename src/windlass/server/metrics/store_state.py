"""Reads what the store holds for the gauges, at a cost that does not grow with the queue."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client.metrics_core import Metric as Family

from windlass.domain.lifecycle.states import STATE_BY_CODE, TERMINAL, State
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.pools.pools import Lifecycle
from windlass.domain.rows.views import Census
from windlass.engine.engine import Engine
from windlass.engine.fleet.epochs import known_losses
from windlass.engine.pools.pools import Pools, PoolView
from windlass.server.metrics.catalogue import MAX_POOLS, OTHER
from windlass.server.metrics.series import Labels, ShownNames, gauge
from windlass.store.sql.transaction import ReadTx

MAX_COUNTED: Final = 20_000  # rows of one place
MAX_LINES: Final = 1_000  # shapes whose first job is read

_HELD: Final = (State.ASSIGNED, State.RUNNING, State.CANCELING, State.TIMED_OUT)
_OPEN: Final = tuple(str(state) for state in State if state not in TERMINAL)


class StoreState(NamedTuple):
    """What one look at the store found."""

    newest: int  # the number of the newest event
    census: Census
    waited_ms: Mapping[str, int]  # by queue: how long the first job in line has waited
    queue_of: Mapping[int, str]  # by shape
    losses: int  # failovers and restores that lost commits
    pools: Sequence[PoolView]
    inbox_ms: int  # how long the oldest row of the inbox has waited


async def read_state(engine: Engine, pools: Pools) -> StoreState:
    """Looks at the store."""

    async def read(
        tx: ReadTx,
    ) -> tuple[int, Census, dict[str, int], dict[int, str], int, int]:
        census = await tx.views.census(MAX_COUNTED)
        heads = (await tx.places.heads())[:MAX_LINES]
        shapes = {shape for shape, *_ in census.jobs} | {head.shape for head in heads}
        await engine.catalog.know(tx, shapes)
        queue_of = {shape: engine.catalog.shapes[shape].queue for shape in shapes}
        facts = await tx.jobs.read([head.job for head in heads])
        waited: dict[str, int] = {}
        for head in heads:
            known = facts.get(head.job)
            if known is None or known.failed or known.lost or known.returned:
                continue
            queue = queue_of[head.shape]
            waited[queue] = max(waited.get(queue, 0), tx.now - known.age_from)
        submitted = await tx.inbox.oldest()
        inbox = 0 if submitted is None else max(0, tx.now - submitted)
        losses = len(await known_losses(tx))
        return await tx.log.newest(), census, waited, queue_of, losses, inbox

    newest, census, waited, queue_of, losses, inbox = await engine.store.read(read)
    return StoreState(newest, census, waited, queue_of, losses, await pools.all(), inbox)


def families(
    state: StoreState, paused: Mapping[str, bool], depth: Mapping[str, int], names: ShownNames
) -> Iterator[Family]:
    """Returns the gauges about the store; `depth` is how many jobs of each queue are queued."""
    waits = {queue: ms / 1000 for queue, ms in state.waited_ms.items()}
    yield gauge("windlass_inbox_oldest_age_seconds", {(): state.inbox_ms / 1000})
    yield gauge("windlass_queue_oldest_job_age_seconds", names.top(waits))
    stopped = {queue: float(is_paused) for queue, is_paused in paused.items()}
    yield gauge("windlass_queue_paused", names.top(stopped))
    by_state = _jobs_by_state(state, depth, names)
    yield gauge("windlass_jobs", by_state)
    held = sum(count for (_, name), count in by_state.items() if name in _HELD)
    yield gauge("windlass_leases", {(): held})
    yield gauge("windlass_losses", {(): state.losses})
    workers = dict.fromkeys(WorkerStatus, (0, 0))
    workers |= {WorkerStatus(code): (count, slots) for code, count, slots in state.census.workers}
    yield gauge("windlass_workers", {(_name(s),): count for s, (count, _) in workers.items()})
    yield gauge("windlass_worker_slots", {(_name(s),): slots for s, (_, slots) in workers.items()})
    yield from _pool_families(state.pools[:MAX_POOLS])


def _jobs_by_state(
    state: StoreState, depth: Mapping[str, int], names: ShownNames
) -> dict[Labels, float]:
    """Returns how many open jobs there are by queue and state; small queues become `other`.

    A queue has a series for each state, 0 as well: a rule about none can only find what exists.
    """
    counts: dict[tuple[str, str], float] = {}
    for queue, queued in depth.items():
        counts[queue, State.QUEUED] = queued
    for shape, code, jobs in state.census.jobs:
        place = state.queue_of[shape], str(STATE_BY_CODE[code])
        counts[place] = counts.get(place, 0) + jobs
    totals: dict[str, float] = {}
    for (queue, _), total in counts.items():
        totals[queue] = totals.get(queue, 0) + total
    kept = names.largest(totals)
    shown: dict[Labels, float] = {(*queue, name): 0 for queue in kept for name in _OPEN}
    for (queue, name), total in counts.items():
        shown[queue if (queue,) in kept else OTHER, name] += total
    return shown


def _pool_families(pools: Sequence[PoolView]) -> Iterator[Family]:
    members: dict[Labels, float] = {}
    for view in pools:
        states = Counter(Lifecycle(member.state).name.lower() for member in view.workers)
        for lifecycle in Lifecycle:
            name = lifecycle.name.lower()
            if lifecycle is not Lifecycle.GONE:
                members[view.row.name, name] = states.get(name, 0)
    yield gauge("windlass_pool_workers", members)
    yield gauge("windlass_pool_max_workers", {(v.row.name,): v.pool.max_workers for v in pools})
    used = {(v.row.name,): sum(cost.ms for cost in v.costs) / 1000 for v in pools}
    yield gauge("windlass_pool_used_seconds", used)
    limited = (view for view in pools if view.pool.max_ms_per_month)
    budgets = {(v.row.name,): v.pool.max_ms_per_month / 1000 for v in limited}
    yield gauge("windlass_pool_budget_seconds", budgets)
    yield gauge("windlass_pool_failed_launches", {(v.row.name,): v.row.failures for v in pools})


def _name(status: WorkerStatus) -> str:
    return status.name.lower()
