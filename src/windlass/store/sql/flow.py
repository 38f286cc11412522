"""Moves jobs in bulk, most of them plain: without dependents, limits or a workflow."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from windlass.domain.rows.events import Moves
from windlass.domain.rows.records import Completed, Freed, JobColumns, Waited, Worker
from windlass.messages.sync import Finished
from windlass.store.sql.session import Role


class Flow(Role, ABC):
    """Moves plain jobs in bulk; this is most of a store's work."""

    __slots__ = ()

    @abstractmethod
    async def enter(self, jobs: Sequence[JobColumns]) -> None:
        """Inserts jobs that are ready at once, into `jobs` and `ready`; ids ascend."""

    @abstractmethod
    async def block(self, jobs: Sequence[JobColumns], unmet: Sequence[int]) -> None:
        """Blocks each job that this transaction has inserted on its number of dependencies; ids
        ascend.

        They have no manual condition and no start time.
        """

    @abstractmethod
    async def free(self, met: Mapping[int, int], now: int, young_from: int) -> Freed:
        """Lowers `unmet` as `Places.meet` does, and makes jobs that reach 0 ready at once.

        This applies to jobs that may start now, have no limit, keep no wait while they run, and
        whose age counts from `young_from` or later. The others that reach 0 are returned as `meet`
        returns them, and are in no place. Both lists ascend by job.
        """

    @abstractmethod
    async def complete(self, now: int, done: Sequence[tuple[Worker, Finished]]) -> list[int]:
        """Completes attempts of plain jobs and returns their ids, ascending.

        A job is plain if the worker holds its running lease, and it has no workflow, limit,
        dependents or kept wait. Locks all rows in `jobs`, ascending; removes the leases of plain
        jobs and writes their ends. The other jobs stay unchanged, and locked. `result` is the value
        to store, as JSON in bytes, or None.
        """

    @abstractmethod
    async def complete_tied(
        self, now: int, done: Sequence[tuple[Worker, Finished]]
    ) -> list[Completed]:
        """Completes all of these attempts, even of jobs with a workflow or dependents; the answer
        ascends by job.

        Changes nothing if any of them has a limit or keeps a wait, or if the worker does not hold
        its running lease. The caller notifies dependents.
        """

    @abstractmethod
    async def end_waiting(
        self, jobs: Sequence[int], state: int, now: int, reason: str, *, queued: bool
    ) -> list[Waited]:
        """Ends the jobs that are in `waits` or, if `queued`, in `ready`; the answer ascends by job.

        The caller has locked them. Jobs in other places stay unchanged, and so does a job that runs
        while it keeps a wait. The caller notifies dependents.
        """

    @abstractmethod
    async def log(self, moves: Moves) -> None:
        """Appends the events of `moves`, as `Log.append` would."""
