"""Workers as they were at an earlier moment, from the events about them."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from windlass.domain.matching.matching import merge_metadata
from windlass.domain.rows.events import BaselineKind, Event, EventKind
from windlass.domain.rows.records import Worker
from windlass.domain.rows.views import WorkerView
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.ids import WorkerId
from windlass.domain.values.quantities import format_moment
from windlass.engine.engine import Engine
from windlass.engine.verify.baseline import load
from windlass.engine.verify.past import Findings, SnapshotIndex, WorkerPast
from windlass.engine.verify.replay import Replay
from windlass.messages.workers import WorkerInfo
from windlass.operations.past.moments import MAX_EVENTS, PastPoint, find_point
from windlass.operations.render import show_worker
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx

MAX_FLEET: Final = 20_000  # events about workers that are replayed


async def past_workers(engine: Engine, as_of: str) -> list[WorkerInfo]:
    """Returns the workers of a moment, with how many jobs each held.

    When a worker was last seen is not kept: its last event by then stands for it.
    """

    async def read(tx: ReadTx) -> list[WorkerInfo]:
        point = await find_point(tx, as_of)
        events = await tx.views.fleet_events(0, point.seq, MAX_FLEET + 1)
        if len(events) > MAX_FLEET:
            expected = f"a time before which the log has at most {MAX_FLEET} events of workers"
            raise InvalidInput("as_of", expected, format_moment(point.at))
        known: dict[int, Worker] = {worker.id: worker for worker in await tx.workers.all()}
        own = [event for event in events if event.kind == EventKind.WORKER]
        past = await _replay(tx, own, sorted({*known, *(event.worker for event in own)}))
        present = sorted(number for number, worker in past.items() if not worker.removed)
        names = await tx.views.worker_names(present)
        held = await _held(tx, point)
        return [
            _show(_row(number, past[number], known.get(number), own, names), held.get(number, 0))
            for number in present
        ]

    return await engine.store.read(read)


async def _replay(tx: ReadTx, events: list[Event], workers: list[int]) -> Mapping[int, WorkerPast]:
    empty = Snapshot(*((),) * (len(Snapshot._fields) - len(Snapshot._field_defaults)))
    replay = Replay(SnapshotIndex(empty), Findings())
    load(replay, await tx.retention.baseline(BaselineKind.WORKER, workers), counting=False)
    for event in events:
        replay.apply(event)
    return replay.past.workers


async def _held(tx: ReadTx, point: PastPoint) -> dict[int, int]:
    """Returns how many jobs each worker held: those of now, and back from there."""
    views = await tx.views.workers_with_counts()
    held: dict[int, int] = {view.worker.id: view.leases for view in views}
    newest = await tx.log.newest()
    changes = await tx.series.held_since(point.seq, newest, MAX_EVENTS)
    if changes is None:
        expected = f"a time after which at most {MAX_EVENTS} events have happened"
        raise InvalidInput("as_of", expected, format_moment(point.at))
    for worker, change in changes.items():
        held[worker] = held.get(worker, 0) - change
    return held


def _row(
    number: int,
    past: WorkerPast,
    known: Worker | None,
    events: list[Event],
    names: Mapping[int, str],
) -> Worker:
    mine = [event for event in events if event.worker == number]
    enrolled = [e.at for e in mine if '"enrolled"' in (e.data or "")]
    last = mine[-1] if mine else None
    seen = last.at if last is not None else (known.enrolled_at if known is not None else 0)
    first = known.enrolled_at if known is not None else (enrolled[0] if enrolled else seen)
    return Worker(
        id=WorkerId(number),
        name=names.get(number, str(number)),
        incarnation=past.incarnation,
        seq=0,
        status=past.status,
        last_seen=seen,
        last_lease=0,
        slots=past.slots or (known.slots if known is not None else 0),
        static=past.static or "{}",
        dynamic=past.dynamic or "{}",
        troubles=None,
        reason=None if last is None else last.reason,
        enrolled_at=first,
    )


def _show(worker: Worker, held: int) -> WorkerInfo:
    dynamic: dict[str, Any] = msgspec.json.decode(worker.dynamic)
    merged = merge_metadata(dynamic, msgspec.json.decode(worker.static))
    return show_worker(WorkerView(worker, held), merged)
