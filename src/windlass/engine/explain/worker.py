"""Explains why a worker is idle: what is ready to run, and why this worker cannot take it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

from windlass.domain.explain.explanation import WorkEntry, WorkerExplanation
from windlass.domain.explain.reasons import (
    Matcher,
    Obstacle,
    Obstacles,
    company_obstacles,
    shown,
    slot_obstacles,
    status_obstacles,
)
from windlass.domain.matching.shapes import Shape, is_gated
from windlass.domain.matching.suspects import NOBODY
from windlass.domain.matching.workers import shown_status
from windlass.domain.rows.records import QueueRow, Worker
from windlass.domain.rows.views import WorkerView
from windlass.domain.values.errors import existing
from windlass.domain.values.ids import WorkerId
from windlass.domain.values.quantities import counted
from windlass.engine.explain.fleet import Rooms, suspects_on
from windlass.engine.explain.reasons import Sees, after_restore, asked_of, limits_of_shape
from windlass.engine.transaction.catalog import Catalog, Profile
from windlass.store.sql.transaction import ReadTx

COUNTED: Final = 10_000  # ready jobs of one kind that we count
SHOWN: Final = 20  # kinds of jobs that we list
_END: Final = 2**62  # behind every rank


class _JobGroup(NamedTuple):
    """Jobs that look the same to a person and have the same obstacles."""

    namespace: str
    queue: str
    task: str
    obstacles: Obstacles


async def explain_worker(
    tx: ReadTx, catalog: Catalog, worker: int, sees: Sees
) -> WorkerExplanation:
    """Explains why this worker is idle, or what it is doing."""
    views = {view.worker.id: view for view in await tx.views.workers_with_counts()}
    view = existing("worker", worker, views.get(WorkerId(worker)))
    heads = await tx.places.heads()
    await catalog.know(tx, (head.shape for head in heads))
    gates = await _Gates.read(tx, catalog, view.worker)
    kinds: dict[_JobGroup, list[int]] = {}
    for head in heads:
        shape = catalog.shapes[head.shape]
        if sees(shape.namespace):
            found = await gates.obstacles(shape)
            kind = _JobGroup(shape.namespace, shape.queue, shape.task, found)
            kinds.setdefault(kind, []).append(head.shape)
    ordered = sorted(kinds, key=lambda kind: (len(kind.obstacles), kind))
    hidden = len(heads) - sum(map(len, kinds.values()))
    work = [await _entry(tx, kind, kinds[kind]) for kind in ordered[:SHOWN]]
    return WorkerExplanation(
        worker=view.worker.name,
        id=worker,
        status=shown_status(view.worker, view.leases),
        slots=view.worker.slots,
        held=view.leases,
        summary=await _summary(tx, view, ordered, hidden),
        work=tuple(work),
    )


@dataclass(eq=False)
class _Gates:
    """The gates of this worker besides clauses: queues, their limits, rates, its own room."""

    _tx: ReadTx
    _rooms: Rooms
    _worker: int
    _profile: Profile
    _queues: Mapping[str, QueueRow]

    @classmethod
    async def read(cls, tx: ReadTx, catalog: Catalog, worker: Worker) -> Self:
        rooms = Rooms(tx, catalog)
        await rooms.read([worker.id])
        queues = {row.name: row for row in await tx.catalog.queues()}
        return cls(tx, rooms, worker.id, catalog.profile(worker), queues)

    async def obstacles(self, shape: Shape) -> Obstacles:
        """Returns everything that keeps this worker from jobs of this shape."""
        metadata = self._profile.metadata
        queue = self._queues.get(shape.queue)
        asked, per_worker = asked_of(shape, queue)
        found = Matcher(asked).obstacles(metadata)
        if queue is not None and queue.paused:
            needs, says = f"queue {shape.queue} running", f"queue {shape.queue} is paused"
            found += (Obstacle("paused", "paused", needs, "it paused", says=says),)
        if found:
            return found
        binding = [one for one in await limits_of_shape(self._tx, shape, queue) if one.binding]
        found = tuple(
            Obstacle(
                "limit", one.kind, f"{one.kind} {one.name} below {one.max}", f"{one.used}",
                says=one.text,
            )
            for one in binding
        )  # fmt: skip
        if is_gated(shape) or self._profile.shares or per_worker:
            found += tuple(self._rooms.lacks(self._worker, metadata, shape, per_worker))
        return found


async def _entry(tx: ReadTx, kind: _JobGroup, shapes: list[int]) -> WorkEntry:
    count = await tx.views.ready_before(shapes, _END, 0, COUNTED + 1)
    return WorkEntry(
        namespace=kind.namespace, queue=kind.queue, task=kind.task, jobs=min(count, COUNTED),
        jobs_more=count > COUNTED, **shown(kind.obstacles),
    )  # fmt: skip


async def _summary(tx: ReadTx, view: WorkerView, kinds: list[_JobGroup], hidden: int) -> str:
    worker = view.worker
    suspects = await suspects_on(tx, [worker.id])
    company = suspects.get(worker.id, NOBODY)._replace(held=view.leases)
    standing = [
        *status_obstacles(worker.status, worker.reason),
        *slot_obstacles(worker.slots, view.leases),
        *company_obstacles(company, 0),
    ]
    if standing:
        first = standing[0]
        return first.text if first.kind == "status" else f"takes no further job: {first.text}"
    free = f"{worker.slots - view.leases} of {counted(worker.slots, 'slot')} free"
    for held in (await after_restore(tx)).waiting:
        return f"{free}: it gets no job before {held.text}"
    if any(not kind.obstacles for kind in kinds):
        return f"{free}: there are jobs for it, which it gets at its next sync"
    if kinds or hidden:
        there = "jobs are ready" if kinds else "jobs of other namespaces are ready"
        return f"{free}: {there}, but none that it can run"
    held_back = await tx.limits.parked()
    if held_back:
        limits = counted(len(held_back), "concurrency limit")
        return f"{free}: no job is ready; some are held back by {limits}"
    return f"{free}: no job is ready to run"
