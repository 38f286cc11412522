"""The role of a transaction that keeps figures over time."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from windlass.domain.rows.series import Move, SeriesRow


class Moved(NamedTuple):
    """The number of the last event that was looked at, and the transitions among them."""

    upto: int
    moves: list[Move]


class CompletedOn(NamedTuple):
    """How many jobs of a shape completed on a worker in one minute, and when the last one did."""

    worker: int
    shape: int
    last_at: int
    jobs: int


class Completions(NamedTuple):
    """Completions by worker, shape and minute, ascending; `since` is when the first event was."""

    since: int
    rows: list[CompletedOn]


class SeriesRead(Protocol):
    """Reads rows of `series`, and the transitions of jobs that they are made of."""

    async def position(self) -> int:
        """Returns how far events are counted."""
        ...

    async def moves(self, after: int, before: int, count: int) -> Moved:
        """Looks at up to `count` events behind number `after` that are not newer than `before`."""
        ...

    async def moved(
        self, after: int, upto: int, most: int
    ) -> list[tuple[int, int, int, int]] | None:
        """Returns how many jobs went from which state to which: shape, from, to, count, ascending.

        None if there are more than `most` numbers in (after, upto].
        """
        ...

    async def held_since(self, after: int, upto: int, most: int) -> dict[int, int] | None:
        """Returns by how much the jobs that each worker holds have changed in (after, upto].

        None if there are more than `most` numbers.
        """
        ...

    async def completed_on(self, after: int, since: int) -> Completions:
        """Returns where jobs completed behind event number `after` and not before a time.

        Jobs that were deleted are left out. `since` is 0 if there are no such events.
        """
        ...

    async def between(
        self, kinds: Sequence[int], step: int, start: int, end: int
    ) -> list[SeriesRow]:
        """Returns rows from `start` on and before `end`.

        They ascend by time, namespace and name; those of one kind come after those of another, in
        the order of `kinds`.
        """
        ...

    async def last(self, kind: int, step: int, before: int) -> SeriesRow | None:
        """Returns the last row before a time."""
        ...

    async def workers_by_status(self) -> Mapping[int, int]: ...

    async def pool_workers_by_state(self) -> list[tuple[str, int, int]]:
        """Returns how many living workers pools have: name, state and count, ascending."""
        ...


class SeriesWrite(SeriesRead, Protocol):
    """Reads and writes rows of `series`."""

    async def move_on(self, source: int, to: int) -> bool:
        """Records that events up to `to` are counted.

        Returns False if another server has advanced it past `source`. True means that this
        transaction holds it until it ends.
        """
        ...

    async def put(self, rows: Sequence[SeriesRow]) -> None:
        """Inserts or replaces rows, by kind, step, time, namespace and name."""
        ...

    async def trim(self, kind: int, step: int, before: int, count: int) -> int:
        """Removes up to `count` rows before a time, oldest first; returns how many."""
        ...
