"""The way of jobs with no ties, in bulk: here in terms of the other roles."""

from collections.abc import Mapping, Sequence

from windlass.domain.rows.events import Moves, expand
from windlass.domain.rows.records import (
    Completed,
    Freed,
    JobColumns,
    NewJob,
    Ticket,
    Wait,
    Waited,
    Worker,
)
from windlass.domain.values.ids import AttemptNo
from windlass.store.complete_jobs import complete_tied, is_free_of_limits
from windlass.store.end_waiting import end_waiting
from windlass.store.free_jobs import free
from windlass.store.memory.core.jobs import MemoryJobs
from windlass.store.memory.core.leases import MemoryLeases
from windlass.store.memory.core.log import MemoryLog
from windlass.store.memory.core.places import MemoryPlaces
from windlass.wire.sync import Finished


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
        rows = list(map(NewJob._make, jobs))
        await self._jobs.insert(rows)
        await self._places.add_ready(
            [Ticket(r.shape, r.rank, r.id, AttemptNo(0), r.workflow, r.limit, None) for r in rows]
        )

    async def block(self, jobs: Sequence[JobColumns], unmet: Sequence[int]) -> None:
        rows = zip(map(NewJob._make, jobs), unmet, strict=True)
        await self._places.add_waits(
            [
                Wait(r.id, left, 0, None, r.age_from,
                     Ticket(r.shape, r.rank, r.id, AttemptNo(0), r.workflow, r.limit, None))
                for r, left in rows
            ]
        )  # fmt: skip

    async def free(self, met: Mapping[int, int], now: int, young_from: int) -> Freed:
        return await free(self._places, met, now, young_from)

    async def complete(self, now: int, done: Sequence[tuple[Worker, Finished]]) -> list[int]:
        jobs = sorted(item.job for _, item in done)
        facts = await self._jobs.lock(jobs)
        leases = await self._leases.lock(jobs)
        tied = {*await self._jobs.dependents(jobs, 0), *await self._places.waiting(jobs)}
        plain = {
            item.job: item
            for worker, item in done
            if item.job in leases
            and item.job not in tied
            and facts[item.job].workflow is None
            and is_free_of_limits(leases[item.job], worker, item)
        }
        ended = sorted(plain)
        await self._leases.drop(ended)
        for job in ended:
            self._jobs.complete(leases[job], plain[job], now)
        return ended

    async def complete_tied(
        self, now: int, done: Sequence[tuple[Worker, Finished]]
    ) -> list[Completed]:
        return await complete_tied(self._jobs, self._places, self._leases, now, done)

    async def end_waiting(
        self, jobs: Sequence[int], state: int, now: int, reason: str, *, queued: bool
    ) -> list[Waited]:
        return await end_waiting(self._jobs, self._places, jobs, state, now, reason, queued=queued)

    async def log(self, moves: Moves) -> None:
        await self._log.append(list(expand(moves)))
