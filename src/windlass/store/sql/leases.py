"""Rows of `leases`: the attempts in force."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.records import Lease, Ticket
from windlass.messages.sync import Assignment
from windlass.store.sql.session import Role


class Marked(NamedTuple):
    """A lease whose process must be stopped (then it has a reason), or of a suspect."""

    worker: int
    incarnation: int
    job: int
    attempt: int
    state: int
    reason: str | None
    suspicion: int


class LeasesRead(Role):
    """Reads rows of `leases`: the attempts in force."""

    __slots__ = ()

    async def read(self, jobs: Sequence[int]) -> dict[int, Lease]:
        """Returns the leases of these jobs, not locked."""
        return await self._by_job("read_leases", jobs)

    async def _by_job(self, query: str, jobs: Sequence[int]) -> dict[int, Lease]:
        if not jobs:
            return {}
        rows = await self._session.rows(Lease, query, self._session.ids(jobs))
        return {row[0]: row for row in rows}

    async def of_workers(self, workers: Sequence[int]) -> list[Lease]:
        """Returns all leases of these workers, ascending by lease number, not locked."""
        if not workers:
            return []
        return await self._session.rows(Lease, "leases_of_workers", self._session.ids(workers))

    async def newer(self, than: Mapping[int, int]) -> list[Lease]:
        """Returns leases of these workers with higher numbers, ascending by number, not locked."""
        held = await self.of_workers(sorted(than))
        return [lease for lease in held if lease.lease > than[lease.worker]]

    async def count(self, workers: Sequence[int]) -> dict[int, int]:
        """Returns how many leases each of these workers holds; those without any are absent."""
        if not workers:
            return {}
        return dict(await self._session.fetch("count_leases", self._session.ids(workers)))

    async def marked(self, workers: Sequence[int]) -> list[Marked]:
        """Returns leases of these workers that must be stopped, and those of suspects."""
        if not workers:
            return []
        return await self._session.rows(Marked, "marked_leases", self._session.ids(workers))

    async def overdue(self, now: int, count: int) -> list[Lease]:
        """Returns assigned and running leases with `deadline_at <= now`, not locked.

        They are sorted by deadline, then job.
        """
        return await self._session.rows(Lease, "overdue_leases", now, count)

    async def orphans(self, count: int) -> list[Lease]:
        """Returns leases whose worker is unknown or has a newer incarnation, not locked.

        They come ascending by job.
        """
        return await self._session.rows(Lease, "orphaned_leases", count)


class Leases(LeasesRead, ABC):
    """Reads and writes rows of `leases`: the attempts in force.

    Jobs without a lease are ignored.
    """

    __slots__ = ()

    async def lock(self, jobs: Sequence[int]) -> dict[int, Lease]:
        """Locks and reads the leases of these jobs, ascending by job."""
        return await self._by_job("lock_leases", jobs)

    async def start(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        """Marks assigned leases as running, given as (job, started_at, deadline_at)."""
        await self._session.many("start_leases", "iii", rows)

    async def mark(self, jobs: Sequence[int], state: int, reason: str) -> None:
        """Sets the state of these leases to canceling or timed_out, which tells their workers to
        stop.
        """
        if jobs:
            await self._session.execute("mark_leases", self._session.ids(jobs), state, reason)

    async def suspect(self, jobs: Sequence[int], suspicion: int) -> None:
        """Records how much the jobs of these leases are suspected."""
        if jobs:
            await self._session.execute("suspect_leases", self._session.ids(jobs), suspicion)

    async def touch(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        """Writes (job, activity_at, deadline_at)."""
        await self._session.many("touch_leases", "iii", rows)

    async def allow(self, rows: Sequence[tuple[int, int | None, int | None]]) -> None:
        """Changes the time limits of attempts, given as (job, timeout_ms, deadline_at)."""
        await self._session.many("allow_leases", "iii", rows)

    async def drop(self, jobs: Sequence[int]) -> None:
        if jobs:
            await self._session.execute("drop_leases", self._session.ids(jobs))

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
