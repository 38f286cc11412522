"""The way of jobs with no ties, in bulk: here in terms of the other roles."""

from collections.abc import Mapping, Sequence

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import Moves, expand
from windlass.domain.rows.records import (
    Completed,
    Completion,
    Freed,
    JobColumns,
    JobEnd,
    JobFacts,
    Lease,
    NewJob,
    Ticket,
    Wait,
    Waited,
)
from windlass.store.complete_jobs import complete_tied
from windlass.store.end_waiting import end_waiting
from windlass.store.free_jobs import free
from windlass.store.memory.core.jobs import MemoryJobs
from windlass.store.memory.core.leases import MemoryLeases
from windlass.store.memory.core.log import MemoryLog
from windlass.store.memory.core.places import MemoryPlaces

RUNNING = State.RUNNING.code
COMPLETED = State.COMPLETED.code


class MemoryFlow:
    """`FlowWrite` over the other roles."""

    def __init__(
        self, jobs: MemoryJobs, places: MemoryPlaces, leases: MemoryLeases, log: MemoryLog
    ) -> None:
        self._jobs = jobs
        self._places = places
        self._leases = leases
        self._log = log

    async def enter(self, jobs: Sequence[JobColumns]) -> None:
        rows = [NewJob(*columns) for columns in jobs]
        await self._jobs.insert(rows)
        await self._places.add_ready(
            [Ticket(r.shape, r.rank, r.id, 0, r.workflow, r.limit, None) for r in rows]
        )

    async def block(self, jobs: Sequence[JobColumns], unmet: Sequence[int]) -> None:
        rows = zip(map(NewJob._make, jobs), unmet, strict=True)
        await self._places.add_waits(
            [
                Wait(r.id, left, 0, 0, r.age_from,
                     Ticket(r.shape, r.rank, r.id, 0, r.workflow, r.limit, None))
                for r, left in rows
            ]
        )  # fmt: skip

    async def free(self, met: Mapping[int, int], now: int, young_from: int) -> Freed:
        return await free(self._places, met, now, young_from)

    async def complete(self, now: int, done: Sequence[Completion]) -> list[int]:
        jobs = sorted(item[0] for item in done)
        facts = await self._jobs.lock(jobs)
        leases = await self._leases.lock(jobs)
        tied = {*await self._jobs.dependents(jobs, 0), *await self._places.waiting(jobs)}
        ends = [
            _end(facts[item[0]], leases[item[0]], item, now)
            for item in sorted(done)
            if item[0] in leases
            and item[0] not in tied
            and _is_plain(facts[item[0]], leases[item[0]], item)
        ]
        ended = [end.job for end in ends]
        await self._leases.drop(ended)
        await self._jobs.end(ends)
        return ended

    async def complete_tied(self, now: int, done: Sequence[Completion]) -> list[Completed]:
        return await complete_tied(self._jobs, self._places, self._leases, now, done)

    async def end_waiting(
        self, jobs: Sequence[int], state: int, now: int, reason: str, *, queued: bool
    ) -> list[Waited]:
        return await end_waiting(self._jobs, self._places, jobs, state, now, reason, queued=queued)

    async def log(self, moves: Moves) -> None:
        await self._log.append(list(expand(moves)))


def _is_plain(facts: JobFacts, lease: Lease, item: Completion) -> bool:
    held = lease.attempt, lease.worker, lease.incarnation, lease.state
    mine = *item[1:4], RUNNING
    return held == mine and not facts.workflow and not lease.limit and not lease.queue_limit


def _end(facts: JobFacts, lease: Lease, item: Completion, now: int) -> JobEnd:
    *_, exit_code, result = item
    return JobEnd(
        facts.id, COMPLETED, facts.flags, lease.attempt, facts.failed, facts.lost, lease.worker,
        lease.incarnation, lease.assigned_at, lease.started_at, now, 0, exit_code, None, None,
        result,
    )  # fmt: skip
