"""Rows of `statistics`, `usage`, `deadlines` and `series`: what follows from the log."""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from windlass.domain.rows.series import Move, SeriesRow
from windlass.domain.rows.statistics import StatisticsRow, Usage, WorkKind
from windlass.store.sql.session import Role, of_ids, query


class Taken(NamedTuple):
    """The time and memory of one completed attempt; `peak_memory` is 0 if it was not measured."""

    shape: int
    run_ms: int
    peak_memory: int
    spec: bytes


class Looked(NamedTuple):
    """The number of the last event read, and the attempts that completed among them."""

    upto: int
    taken: list[Taken]


class Statistics(Role):
    """Reads and writes rows of `statistics` and `usage`, from completed attempts."""

    __slots__ = ()

    async def completed(self, after: int, before: int, count: int) -> Looked:
        """Reads up to `count` events after number `after` that are not newer than `before`.

        Returns the jobs that completed, in the order of the events, unless their rows were removed
        since.
        """
        upto = await self._session.fetch_value("look_until", after, before, count)
        return Looked(upto, await self._session.rows(Taken, "completed_between", after, upto))

    async def position(self) -> int:
        """Returns the number of the last event that was accounted for."""
        return await self._session.fetch_value("statistics_position") or 0

    async def of_kinds(self, kinds: Sequence[WorkKind]) -> list[StatisticsRow]:
        """Returns the statistics, ascending by namespace, queue, kind and measure."""
        if not kinds:
            return []
        wanted = msgspec.json.encode(sorted(set(kinds))).decode()
        return await self._session.rows(StatisticsRow, "statistics_of", wanted)

    usage = of_ids("usage_of").by_id(Usage)

    move_on = query("move_statistics_on", int, int).found()
    """Moves the number up to which events are counted from one to another.

    Returns False if another server has moved it past the first. True means that this transaction
    holds it until commit.
    """

    async def put(self, rows: Sequence[StatisticsRow]) -> None:
        """Inserts or replaces, by namespace, queue, kind and measure."""
        for row in rows:
            await self._session.execute("put_statistics", *row)

    async def forget(self, before: int, keep: int) -> int:
        """Removes rows not updated since `before`, and the oldest beyond `keep`.

        Returns how many.
        """
        return len(await self._session.fetch("forget_statistics", before, keep))

    put_usage = query("put_usage").record(Usage)
    """Inserts or replaces, by job: the newest attempt's figures count."""


class Deadlines(Role):
    """Reads and writes rows of `deadlines`: jobs that have to start or to end before a time."""

    __slots__ = ()

    async def passed(self, now: int, count: int) -> list[tuple[int, int]]:
        """Returns (at, job) with `at <= now`, earliest first, without locking."""
        rows = await self._session.fetch("deadlines_passed", now, count)
        return [(at, job) for at, job in rows]

    async def add(self, rows: Sequence[tuple[int, int]]) -> None:
        """Adds (at, job); a job may have two."""
        await self._session.many("add_deadlines", "ii", sorted(rows))

    async def drop(self, rows: Sequence[tuple[int, int]]) -> None:
        await self._session.many("drop_deadlines", "ii", sorted(rows))


class Moved(NamedTuple):
    """The number of the last event read, and the transitions among them."""

    upto: int
    moves: list[Move]


class CompletedOn(NamedTuple):
    """How many jobs of a shape completed on a worker in one minute, and the time of the last
    one.
    """

    worker: int
    shape: int
    last_at: int
    jobs: int


class Completions(NamedTuple):
    """Completions by worker, shape and minute, ascending; `since` is when the first event was."""

    since: int
    rows: list[CompletedOn]


class Series(Role):
    """Reads and writes rows of `series`."""

    __slots__ = ()

    async def position(self) -> int:
        """Returns the number of the last counted event."""
        return await self._session.fetch_value("series_position") or 0

    async def moves(self, after: int, before: int, count: int) -> Moved:
        """Reads up to `count` events after number `after` that are not newer than `before`."""
        upto = await self._session.fetch_value("look_until", after, before, count)
        return Moved(upto, await self._session.rows(Move, "moves_between", after, upto))

    async def moved(
        self, after: int, upto: int, most: int
    ) -> list[tuple[int, int, int, int]] | None:
        """Returns how many jobs changed from one state to another: shape, from, to, count,
        ascending.

        None if there are more than `most` numbers in (after, upto].
        """
        if upto - after > most:
            return None
        rows = await self._session.fetch("moved_between", after, upto)
        return [(shape, source, to, count) for shape, source, to, count in rows]

    async def held_since(self, after: int, upto: int, most: int) -> dict[int, int] | None:
        """Returns how the number of jobs that each worker holds has changed in (after, upto].

        None if there are more than `most` numbers.
        """
        if upto - after > most:
            return None
        return dict(await self._session.fetch("held_since", after, upto))

    async def completed_on(self, after: int, since: int) -> Completions:
        """Returns where jobs completed after event number `after`, and not before a time.

        Jobs that were deleted are left out. `since` is 0 if there are no such events.
        """
        first = await self._session.fetch_value("first_event_at", after)
        rows = await self._session.rows(CompletedOn, "completed_on", after, since)
        return Completions(first or 0, rows)

    async def between(
        self, kinds: Sequence[int], step: int, start: int, end: int
    ) -> list[SeriesRow]:
        """Returns rows from `start` on and before `end`.

        They are sorted by kind, in the order of `kinds`, then by time, namespace and name.
        """
        wanted = self._session.integers(kinds)
        return await self._session.rows(SeriesRow, "series_between", wanted, step, start, end)

    last = query("last_series", int, int, int).row(SeriesRow)
    """Returns the last row of a kind and a step before a time."""

    workers_by_status = query("workers_by_status").pairs(int, int)

    async def pool_workers_by_state(self) -> list[tuple[str, int, int]]:
        """Returns how many living workers each pool has: name, state and count, ascending."""
        rows = await self._session.fetch("pool_workers_by_state")
        return [(name, state, count) for name, state, count in rows]

    move_on = query("move_series_on", int, int).found()
    """Moves the number up to which events are counted from one to another.

    Returns False if another server has moved it past the first. True means that this transaction
    holds it until commit.
    """

    put = query("put_series").many("iiiooo", SeriesRow)
    """Inserts or replaces rows, by kind, step, time, namespace and name."""

    async def trim(self, kind: int, step: int, before: int, count: int) -> int:
        """Removes up to `count` rows before a time, oldest first; returns how many."""
        return len(await self._session.fetch("trim_series", kind, step, before, count))
