"""Assigns suspects: jobs that lost a worker which also ran other jobs.

Suspects are kept apart (`domain/matching/suspects.py`). A suspect that must be alone would starve
on workers that are never empty: the first worker that has to refuse it is reserved for it, and
takes nothing that ranks behind it until it is empty.
"""

from collections.abc import Sequence
from itertools import groupby

from windlass.domain.matching.claim_planning import Demand, assign, excludes
from windlass.domain.matching.suspects import ALONE, suspicion_of
from windlass.domain.rows.records import Reservation, Ticket
from windlass.domain.values.ids import WorkerId
from windlass.engine.claim.gates import Gates
from windlass.engine.transaction.unit_of_work import Work

Given = list[tuple[Ticket, Demand]]


def is_suspect(ticket: Ticket) -> bool:
    """Returns True if the job must be kept apart from others."""
    return ticket.excluded is not None and suspicion_of(ticket.excluded) > 0


class SuspectSearch:
    """Assigns jobs, some of which are suspects, on behalf of one search."""

    def __init__(self, work: Work, demands: Sequence[Demand], gates: Gates | None) -> None:
        self._work = work
        self._gates = gates
        self._demands = demands
        self._left = {demand.worker: demand.want for demand in demands}
        self._company = {demand.worker: demand.company for demand in demands}
        self._given: Given = []
        self.closed: set[int] = set()  # workers that get nothing more in this claim

    async def assign(self, tickets: Sequence[Ticket]) -> Given:
        """Gives each ticket, best first, to a worker that may have it."""
        for suspects, alike in groupby(tickets, key=is_suspect):
            if suspects:
                for ticket in alike:
                    await self._assign_suspect(ticket)
            else:
                demands = [d._replace(want=self._left[d.worker]) for d in self._demands]
                for ticket, demand in assign(demands, list(alike), self._work.now, self._gates):
                    self._give(ticket, demand)
        return self._given

    async def _assign_suspect(self, ticket: Ticket) -> None:
        able = [demand for demand in self._demands if self._may_have(demand, ticket)]
        suspicion = suspicion_of(ticket.excluded)
        for demand in able:
            if self._company[demand.worker].admits(suspicion):
                if self._gates is not None:
                    self._gates.take(demand.worker, ticket.shape, 1)
                self._give(ticket, demand)
                if suspicion == ALONE:
                    self._close(demand.worker)
                return
        self._work.effects.refused += [(demand.worker, ticket.shape) for demand in able]
        if suspicion == ALONE and able:
            await self._hold_back(ticket, [demand.worker for demand in able])

    def _may_have(self, demand: Demand, ticket: Ticket) -> bool:
        return (
            self._left[demand.worker] > 0
            and demand.runs(ticket.shape)
            and not excludes(ticket.excluded, demand.worker, self._work.now)
            and (self._gates is None or self._gates.room(demand.worker, ticket.shape) > 0)
        )

    def _give(self, ticket: Ticket, demand: Demand) -> None:
        self._given.append((ticket, demand))
        self._left[demand.worker] -= 1
        company = self._company[demand.worker]
        self._company[demand.worker] = company.joined_by(suspicion_of(ticket.excluded))

    def _close(self, worker: int) -> None:
        self._left[worker] = 0
        self.closed.add(worker)

    async def _hold_back(self, ticket: Ticket, workers: Sequence[int]) -> None:
        """Keeps one worker from taking what ranks behind this ticket, until it is empty."""
        work = self._work
        reserved = work.catalog.reserved
        holders = [worker for worker, row in reserved.items() if row.job == ticket.job]
        if not holders and work.config.reservation_after_ms:
            for worker in workers:
                row = Reservation(WorkerId(worker), ticket.job, ticket.shape, work.now)
                if worker not in reserved and await work.tx.placement.reserve(row):
                    work.effects.catalog = True
                    holders = [worker]
                    break
        for worker in holders:
            if worker in workers:
                self._close(worker)


async def mark_suspects(work: Work, given: Given) -> None:
    """Marks the suspects on the leases of these jobs, which were just granted."""
    levels: dict[int, list[int]] = {}
    for ticket, _ in given:
        if is_suspect(ticket):
            levels.setdefault(suspicion_of(ticket.excluded), []).append(ticket.job)
    for level, jobs in levels.items():
        await work.tx.leases.suspect(jobs, level)
