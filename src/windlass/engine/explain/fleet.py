"""The fleet from one job's point of view: why each worker cannot take it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from windlass.domain.explain.reasons import (
    Group,
    Matcher,
    Obstacle,
    Obstacles,
    company_obstacles,
    excluded_obstacle,
    room_obstacles,
    slot_obstacles,
    status_obstacles,
)
from windlass.domain.matching.claim_planning import excludes
from windlass.domain.matching.indices import held_by
from windlass.domain.matching.room import Room
from windlass.domain.matching.shapes import Shape, is_gated
from windlass.domain.matching.suspects import NOBODY, Company, suspicion_of
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.records import JobFacts, Reservation
from windlass.domain.rows.views import FleetRow
from windlass.engine.fleet.capability import as_reported
from windlass.engine.transaction.catalog import Catalog, Profile
from windlass.store.sql.transaction import ReadTx

ONLINE: Final = int(WorkerStatus.ONLINE)


class Rooms:
    """What workers hold and what is reserved there, counted as claims do."""

    def __init__(self, tx: ReadTx, catalog: Catalog) -> None:
        self._tx = tx
        self._catalog = catalog
        self._held: dict[int, list[tuple[Shape, int]]] = {}
        self._kept: dict[int, Reservation] = {}
        self._indices: dict[int, list[str]] = {}  # indices that leases hold

    async def read(self, workers: Sequence[int]) -> None:
        """Reads the rooms of these workers."""
        loads = await self._tx.placement.loads(workers)
        kept = await self._tx.placement.reservations()
        await self._catalog.know(self._tx, [*(x.shape for x in loads), *(x.shape for x in kept)])
        self._kept = {row.worker: row for row in kept}
        for row in await self._tx.placement.indices(workers):
            self._indices.setdefault(row.worker, []).append(row.indices)
        for worker, shape, leases in loads:
            self._held.setdefault(worker, []).append((self._catalog.shapes[shape], leases))

    def lacks(
        self, worker: int, metadata: dict[str, Any], shape: Shape, per_worker: int
    ) -> Iterator[Obstacle]:
        """Yields what this worker lacks for one more job of this shape."""
        kept = self._kept.get(worker)
        if kept is None and worker not in self._held:
            return  # All that its metadata offers is free, and was already matched.
        reserved = None if kept is None else self._catalog.shapes[kept.shape]
        missing = self._room(worker, metadata, reserved).lacks(shape, per_worker)
        if missing is None:
            return
        alone = None if kept is None else self._room(worker, metadata, None)
        if kept is not None and alone is not None and alone.lacks(shape, per_worker) is None:
            has = f"room reserved for job {kept.job}"
            says = f"its room is reserved for job {kept.job}"
            yield Obstacle("reserved", "reserved", missing.needs, has, missing.key, says)
            return
        yield from room_obstacles(missing)

    def _room(self, worker: int, metadata: dict[str, Any], reserved: Shape | None) -> Room:
        room = Room(metadata, reserved, held_by(self._indices.get(worker, ())))
        for shape, leases in self._held.get(worker, ()):
            room.take(shape, leases)
        return room


async def suspects_on(tx: ReadTx, workers: Sequence[int]) -> dict[int, Company]:
    """Returns the suspects on each of these workers that holds some."""
    found: dict[int, Company] = {}
    for row in await tx.leases.marked(workers):
        if row.suspicion:
            found[row.worker] = found.get(row.worker, NOBODY).joined_by(row.suspicion)
    return found


class Fleet:
    """All workers, read once."""

    def __init__(self, tx: ReadTx, catalog: Catalog, rows: Sequence[FleetRow]) -> None:
        self._tx = tx
        self._catalog = catalog
        self._rows = rows
        self._by_id = {row[0]: row for row in rows}
        self._rooms: Rooms | None = None
        self._suspects: dict[int, Company] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    @classmethod
    async def read(cls, tx: ReadTx, catalog: Catalog) -> "Fleet":
        """Reads the workers and how many jobs each holds."""
        return cls(tx, catalog, await tx.views.fleet())

    async def groups(self, shape: Shape, facts: JobFacts, per_worker: int) -> list[Group]:
        """Returns all workers, grouped by their obstacles to this job.

        Workers that could never run it, or take no jobs, get no more detail. There may be ten
        thousand of them, so the common case needs few calls.
        """
        matched, profile_of = Matcher(shape).obstacles, self._catalog.profile_by
        gated = is_gated(shape) or bool(per_worker)
        suspicion, suspects = suspicion_of(facts.excluded), await self._read_suspects()
        found: dict[Obstacles, Group] = {}
        for worker, name, status, slots, held, reason, static, dynamic in self._rows:
            profile = profile_of(static, dynamic)
            obstacles = matched(profile.metadata)
            if status != ONLINE:
                obstacles += tuple(status_obstacles(status, reason))
            if not obstacles:
                if held >= slots or facts.excluded is not None:
                    obstacles = tuple(self._at_present(worker, slots, held, facts.excluded))
                if gated or profile.shares:
                    rooms = await self._read_rooms()
                    lacks = rooms.lacks(worker, profile.metadata, shape, per_worker)
                    obstacles += tuple(lacks)
                if held and (suspicion or worker in suspects):
                    company = suspects.get(worker, NOBODY)._replace(held=held)
                    obstacles += tuple(company_obstacles(company, suspicion))
            group = found.get(obstacles)
            if group is None:
                group = found[obstacles] = Group(obstacles, status, profile.metadata, [], [])
            group.ids.append(worker)
            group.names.append(name)
        return list(found.values())

    def _at_present(
        self, worker: int, slots: int, held: int, excluded: str | None
    ) -> Iterator[Obstacle]:
        if excludes(excluded, worker, self._tx.now):
            yield excluded_obstacle(excluded, worker, self._tx.now)
        yield from slot_obstacles(slots, held)

    async def _read_suspects(self) -> dict[int, Company]:
        if self._suspects is None:
            busy = [worker for worker, _, _, _, held, *_ in self._rows if held]
            self._suspects = await suspects_on(self._tx, busy)
        return self._suspects

    async def _read_rooms(self) -> Rooms:
        if self._rooms is None:
            self._rooms = Rooms(self._tx, self._catalog)
            await self._rooms.read(list(self._by_id))
        return self._rooms

    def name_of(self, worker: int) -> str:
        """Returns a worker's name."""
        row = self._by_id.get(worker)
        return str(worker) if row is None else row[1]

    def profile_with(self, worker: int, dynamic: str) -> Profile | None:
        """Returns the worker's profile with this reported metadata; None if the worker does not
        exist.
        """
        row = self._by_id.get(worker)
        if row is None:
            return None
        *_, static, now = row
        return self._catalog.profile_by(static, as_reported(dynamic, now))

    def metadata_of(self, workers: Sequence[int]) -> list[Mapping[str, Any]]:
        """Returns the metadata of these workers."""
        return [profile.metadata for profile in self._profiles(workers)]

    def slots(self, workers: Sequence[int]) -> tuple[int, int]:
        """Returns how many slots these workers have, and how many slots are free."""
        mine = [(slots, held) for _, _, _, slots, held, *_ in map(self._by_id.__getitem__, workers)]
        return sum(slots for slots, _ in mine), sum(max(0, slots - held) for slots, held in mine)

    def profiles(self, workers: Sequence[int]) -> list[Profile]:
        """Returns the distinct profiles of these workers, to see what else they can run."""
        return list({profile.digest: profile for profile in self._profiles(workers)}.values())

    def _profiles(self, workers: Sequence[int]) -> Iterator[Profile]:
        for *_, static, dynamic in map(self._by_id.__getitem__, workers):
            yield self._catalog.profile_by(static, dynamic)
