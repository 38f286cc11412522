"""The way of jobs with no ties, in bulk: here in terms of the other roles."""

from collections.abc import Sequence

from windlass.domain.events import Moves, expand
from windlass.domain.records import Completion, JobEnd, JobFacts, Lease, NewJob, Ticket
from windlass.domain.states import State
from windlass.store.memory.jobs import MemoryJobs
from windlass.store.memory.leases import MemoryLeases
from windlass.store.memory.log import MemoryLog
from windlass.store.memory.places import MemoryPlaces

RUNNING = State.RUNNING.code
COMPLETED = State.COMPLETED.code


class MemoryFlow:
    """`FlowTx` over the other roles."""

    def __init__(
        self, jobs: MemoryJobs, places: MemoryPlaces, leases: MemoryLeases, log: MemoryLog
    ) -> None:
        self._jobs = jobs
        self._places = places
        self._leases = leases
        self._log = log

    async def enter(self, rows: Sequence[NewJob]) -> None:
        await self._jobs.insert(rows)
        await self._places.add_ready(
            [Ticket(r.shape, r.rank, r.id, 0, r.workflow, r.limit, None) for r in rows]
        )

    async def complete(self, now: int, done: Sequence[Completion]) -> list[int]:
        jobs = sorted(item.job for item in done)
        facts = await self._jobs.lock(jobs)
        leases = await self._leases.lock(jobs)
        tied = {*await self._jobs.dependents(jobs, 0), *await self._places.waiting(jobs)}
        ends = [
            _end(facts[item.job], leases[item.job], item, now)
            for item in sorted(done)
            if item.job in leases
            and item.job not in tied
            and _is_plain(facts[item.job], leases[item.job], item)
        ]
        ended = [end.job for end in ends]
        await self._leases.drop(ended)
        await self._jobs.end(ends)
        return ended

    async def log(self, moves: Moves) -> None:
        await self._log.append(list(expand(moves)))


def _is_plain(facts: JobFacts, lease: Lease, item: Completion) -> bool:
    held = lease.attempt, lease.worker, lease.incarnation, lease.state
    mine = item.attempt, item.worker, item.incarnation, RUNNING
    return held == mine and not facts.workflow and not lease.limit


def _end(facts: JobFacts, lease: Lease, item: Completion, now: int) -> JobEnd:
    return JobEnd(
        facts.id, COMPLETED, facts.flags, lease.attempt, facts.failed, facts.lost, lease.worker,
        lease.incarnation, lease.assigned_at, lease.started_at, now, 0, item.exit_code, None, None,
        item.result,
    )  # fmt: skip
