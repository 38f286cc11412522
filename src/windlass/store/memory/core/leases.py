"""Rows of `leases`: the attempts in force."""

from collections.abc import Sequence

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.matching.claim_planning import Demand
from windlass.domain.rows.records import JobFacts, Lease, Ticket
from windlass.domain.values.ids import AttemptNo, LeaseNo, WorkerId, next_attempt
from windlass.ports.store import Marked
from windlass.store.memory.core.places import pick_ready
from windlass.store.memory.tables import Tables
from windlass.wire.sync import Assignment

ASSIGNED = State.ASSIGNED.code
RUNNING = State.RUNNING.code


class MemoryLeases:
    """`LeasesWrite` over the tables. Jobs without a lease are passed over."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._leases = tables.leases

    async def grant(
        self,
        given: Sequence[tuple[Ticket, Demand]],
        state: int,
        now: int,
        slack_ms: int,
        least_attempt: int = 0,
    ) -> list[Assignment]:
        granted: list[Assignment] = []
        name = str(STATE_BY_CODE[state])
        for ticket, demand in given:
            pick_ready(self._tables, ticket)
            job = self._tables.jobs[ticket.job]
            (number,) = self._tables.number("lease")
            attempt = next_attempt(ticket.attempt, least_attempt)
            deadline_at = first_deadline(job.facts, state, now, slack_ms)
            lease = Lease(
                job=ticket.job,
                attempt=AttemptNo(attempt),
                lease=LeaseNo(number),
                worker=WorkerId(demand.worker),
                incarnation=demand.incarnation,
                state=state,
                assigned_at=now,
                started_at=now if state == RUNNING else None,
                activity_at=None,  # until the first `touch`
                deadline_at=deadline_at,
                timeout_ms=job.facts.timeout_ms,
                idle_ms=job.facts.idle_ms,
                limit=ticket.limit,
                reason=None,
            )
            self._leases.insert(ticket.job, lease)
            granted.append(
                Assignment(
                    lease.job,
                    attempt,
                    number,
                    name,
                    lease.timeout_ms,
                    lease.idle_ms,
                    msgspec.Raw(job.spec),
                    handed_back=job.facts.handed_back,
                )
            )
        return granted

    async def read(self, jobs: Sequence[int]) -> dict[int, Lease]:
        return {job: self._leases[job] for job in sorted(jobs) if job in self._leases}

    async def lock(self, jobs: Sequence[int]) -> dict[int, Lease]:
        """Transactions run one after another: there is nothing to lock."""
        return await self.read(jobs)

    async def of_workers(self, workers: Sequence[int]) -> list[Lease]:
        held = (self._leases.between((worker,), (worker + 1,)) for worker in sorted(set(workers)))
        return sorted((lease for leases in held for lease in leases), key=lambda row: row.lease)

    async def count(self, workers: Sequence[int]) -> dict[int, int]:
        held: dict[int, int] = {}
        for lease in await self.of_workers(workers):
            held[lease.worker] = held.get(lease.worker, 0) + 1
        return held

    async def marked(self, workers: Sequence[int]) -> list[Marked]:
        return [
            Marked(
                row.worker, row.incarnation, row.job, row.attempt, row.state, row.reason,
                row.suspicion,
            )
            for row in await self.of_workers(workers)
            if row.reason is not None or row.suspicion
        ]  # fmt: skip

    async def overdue(self, now: int, count: int) -> list[Lease]:
        """Returns the earliest deadline first, equal ones by job."""
        late = [
            (row.deadline_at, row.job)
            for row in self._leases
            if row.state in (ASSIGNED, RUNNING)
            and row.deadline_at is not None
            and row.deadline_at <= now
        ]
        return [self._leases[job] for _, job in sorted(late)[:count]]

    async def orphans(self, count: int) -> list[Lease]:
        """Returns them ascending by job."""
        return sorted(row for row in self._leases if self._is_orphan(row))[:count]

    async def start(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        for job, started_at, deadline_at in rows:
            row = self._leases.get(job)
            if row is not None and row.state == ASSIGNED:
                started = row._replace(
                    state=RUNNING, started_at=started_at, deadline_at=deadline_at
                )
                self._leases.put(job, started)

    async def mark(self, jobs: Sequence[int], state: int, reason: str) -> None:
        for job in jobs:
            row = self._leases.get(job)
            if row is not None:
                self._leases.put(job, row._replace(state=state, reason=reason))

    async def suspect(self, jobs: Sequence[int], suspicion: int) -> None:
        for job in jobs:
            row = self._leases.get(job)
            if row is not None:
                self._leases.put(job, row._replace(suspicion=suspicion))

    async def touch(self, rows: Sequence[tuple[int, int, int | None]]) -> None:
        for job, activity_at, deadline_at in rows:
            row = self._leases.get(job)
            if row is not None:
                touched = row._replace(activity_at=activity_at, deadline_at=deadline_at)
                self._leases.put(job, touched)

    async def allow(self, rows: Sequence[tuple[int, int | None, int | None]]) -> None:
        for job, timeout_ms, deadline_at in rows:
            row = self._leases.get(job)
            if row is not None:
                allowed = row._replace(timeout_ms=timeout_ms, deadline_at=deadline_at)
                self._leases.put(job, allowed)

    async def drop(self, jobs: Sequence[int]) -> None:
        for job in jobs:
            self._leases.pop(job)

    def _is_orphan(self, lease: Lease) -> bool:
        worker = self._tables.workers.get(lease.worker)
        return worker is None or worker.incarnation > lease.incarnation


def first_deadline(job: JobFacts, state: int, now: int, slack_ms: int) -> int | None:
    """Returns when a new lease is overdue, or None if it may run for ever."""
    if state != RUNNING:
        return now + slack_ms
    limits = [limit for limit in (job.idle_ms, job.timeout_ms) if limit is not None]
    return now + min(limits) + slack_ms if limits else None
