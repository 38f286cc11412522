"""Rows of `leases`: the attempts in force."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.records import Lease, Ticket
from windlass.messages.sync import Assignment
from windlass.store.sql.session import Role, of_ids, query


class Marked(NamedTuple):
    """A lease whose process must be stopped (then it has a reason), or of a suspect."""

    worker: int
    incarnation: int
    job: int
    attempt: int
    state: int
    reason: str | None
    suspicion: int


class Leases(Role, ABC):
    """Reads and writes rows of `leases`: the attempts in force.

    Jobs without a lease are ignored.
    """

    __slots__ = ()

    read = of_ids("read_leases").by_id(Lease)
    """Returns the leases of these jobs, not locked."""

    of_workers = of_ids("leases_of_workers").rows(Lease)
    """Returns all leases of these workers, ascending by lease number, not locked."""

    async def newer(self, than: Mapping[int, int]) -> list[Lease]:
        """Returns leases of these workers with higher numbers, ascending by number, not locked."""
        held = await self.of_workers(sorted(than))
        return [lease for lease in held if lease.lease > than[lease.worker]]

    count = of_ids("count_leases").values(int)
    """Returns how many leases each of these workers holds; those without any are absent."""

    marked = of_ids("marked_leases").rows(Marked)
    """Returns leases of these workers that must be stopped, and those of suspects."""

    overdue = query("overdue_leases", int, int).rows(Lease)
    """Returns assigned and running leases whose deadline has come, up to a number, not locked.

    They are sorted by deadline, then job.
    """

    orphans = query("orphaned_leases", int).rows(Lease)
    """Returns leases whose worker is unknown or has a newer incarnation, not locked.

    They come ascending by job, up to a number.
    """

    lock = of_ids("lock_leases").by_id(Lease)
    """Locks and reads the leases of these jobs, ascending by job."""

    start = query("start_leases").many("iii", tuple[int, int, int | None])
    """Marks assigned leases as running, given as (job, started_at, deadline_at)."""

    mark = of_ids("mark_leases", int, str).run()
    """Sets the state of these leases to canceling or timed_out, with a reason, which tells their
    workers to stop.
    """

    suspect = of_ids("suspect_leases", int).run()
    """Records how much the jobs of these leases are suspected."""

    touch = query("touch_leases").many("iii", tuple[int, int, int | None])
    """Writes (job, activity_at, deadline_at)."""

    allow = query("allow_leases").many("iii", tuple[int, int | None, int | None])
    """Changes the time limits of attempts, given as (job, timeout_ms, deadline_at)."""

    drop = of_ids("drop_leases").run()

    @abstractmethod
    async def grant(
        self,
        given: Sequence[tuple[Ticket, Demand]],
        state: int,
        now: int,
        slack_ms: int,
        least_attempt: int = 0,
    ) -> list[Assignment]:
        """Turns ready jobs, which `peek` has locked, into leases in `state`; keeps their order.

        Each becomes the job's next attempt, or `least_attempt` if that is higher.

        `started_at` is `now` when the state is running, else None. `deadline_at` is, when
        running, now + the smaller of the job's timeouts + `slack_ms` (None if it has none);
        when assigned, now + `slack_ms`.
        """
