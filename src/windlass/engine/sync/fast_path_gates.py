"""Gates on the fast path: the room of workers, as far as this server knows what they hold.

We remember what a worker holds from the last claim that read it. Leases are only added under the
worker's row, and each raises its `last_lease`. If neither the agent nor the database has a newer
lease than we remember, the worker holds at most what we remember. So nothing is oversubscribed.
Jobs that ended elsewhere are noticed when the scheduling loop renews the memory.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from windlass.domain.matching.clauses import NO_CPUS
from windlass.domain.matching.room import Room, needs_of
from windlass.domain.matching.shapes import Shape
from windlass.domain.rows.records import Worker
from windlass.engine.transaction.catalog import Catalog, Profile
from windlass.engine.transaction.effects import WorkerLoad
from windlass.messages.sync import Assignment
from windlass.store.fast_path import Limited

PLAIN = 0  # stands for the shape of a job without gates


class Opening(NamedTuple):
    """How many jobs of each gated shape a worker may have, and the limits of their queues."""

    most: Mapping[int, int]
    limited: list[Limited]


class FastGates:
    """The loads of workers that this server assigned jobs to."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._loads: dict[int, WorkerLoad] = {}

    def learn(self, loads: Mapping[int, WorkerLoad], leaving: Iterable[int]) -> None:
        """Remembers what claims have read, once they have committed.

        Forgets workers whose jobs ended without a claim.
        """
        for worker, load in loads.items():
            known = self._loads.get(worker)
            if known is not None and known.incarnation == load.incarnation:
                _name_rest(load, known.given)
        for worker in leaving:
            self._loads.pop(worker, None)
        self._loads.update(loads)

    def forget(self) -> None:
        """Forgets everything: a queue may have limits that were not counted."""
        self._loads.clear()

    def room(self, worker: Worker, received: int, done: Iterable[int]) -> Room | None:
        """Returns what a worker has left once these jobs have ended; None if unknown."""
        load = self._loads.get(worker.id)
        if load is None or (load.incarnation, load.last_lease) != (worker.incarnation, received):
            return None
        ended = set(done)
        if not ended <= load.given.keys():
            return None  # we do not know the shape of their room
        return self._room_beside(worker, load, ended)

    def _room_beside(self, worker: Worker, load: WorkerLoad, ended: set[int]) -> Room | None:
        shapes = self._catalog.shapes
        held = [shape for job, shape in load.given.items() if shape and job not in ended]
        if any(shape not in shapes for shape in (*load.rest, *held)):
            return None
        room = Room(self._catalog.profile(worker).metadata)
        for shape, leases in load.rest.items():
            room.take(shapes[shape], leases)
        for shape in held:
            room.take(shapes[shape])
        return room

    def open(self, room: Room, profile: Profile, gated: Iterable[int], want: int) -> Opening | None:
        """Returns what a worker may have of these shapes; None if the normal path must run.

        If several gated shapes compete for the room, any mix of them must fit.
        """
        catalog = self._catalog
        if catalog.reserved:
            return None  # rare, and a claim may end a reservation
        most: dict[int, int] = {}
        limited: list[Limited] = []
        for number in gated:
            shape = catalog.shapes[number]
            most[number] = room.fits(shape, catalog.per_worker(shape.queue))
            if most[number] and (shape.rate is not None or _takes_indices(shape, profile)):
                return None
            limit = catalog.limit_of(shape.queue)
            if most[number] and limit:
                limited.append(Limited(number, limit))
        opened = [catalog.shapes[number] for number, jobs in most.items() if jobs]
        if want > 1 and len(opened) > 1 and not self._any_mix_fits(room, opened, want):
            return None
        return Opening(most, limited)

    def _any_mix_fits(self, room: Room, shapes: Sequence[Shape], want: int) -> bool:
        """Returns True if this many jobs fit, in any mix of these shapes."""
        if any(shape.apart is not None or NO_CPUS in shape.resources for shape in shapes):
            return False
        largest: dict[str, int] = {}
        for shape in shapes:
            for name, amount in shape.resources:
                largest[name] = max(amount, largest.get(name, 0))
        worst = tuple(sorted(largest.items()))
        per_worker = self._catalog.per_worker
        return all(
            room.fits(structs.replace(shape, resources=worst), per_worker(shape.queue)) >= want
            for shape in shapes
        )

    def note(
        self, worker: int, received: int, done: Iterable[int],
        granted: Iterable[Assignment], shapes: Iterable[int],
    ) -> None:  # fmt: skip
        """Updates a load after a fast sync: these jobs ended, those were assigned."""
        load = self._loads.get(worker)
        if load is None:
            return
        known = load.last_lease == received
        for job in done:
            # We do not know the shape of a job that was assigned earlier.
            known = load.given.pop(job, None) is not None and known
        if not known:
            del self._loads[worker]
            return
        for assignment, shape in zip(granted, shapes, strict=True):
            load.given[assignment.job] = shape
            load.last_lease = max(load.last_lease, assignment.lease)


def _takes_indices(shape: Shape, profile: Profile) -> bool:
    """Returns True if a claim must choose which of the worker's indices the job gets."""
    if not profile.indexed:
        return False
    return any(name in profile.indexed for name, _ in needs_of(shape, profile.metadata))


def _name_rest(load: WorkerLoad, known: Mapping[int, int]) -> None:
    """Assigns shapes to the earlier jobs that the counts still include, as far as possible."""
    for job, shape in known.items():
        if load.rest.get(shape, 0) > 0 and job not in load.given:
            load.rest[shape] -= 1
            load.given[job] = shape
