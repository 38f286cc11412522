"""The way of jobs with no ties, in bulk."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from windlass.domain.rows.events import Moves
from windlass.domain.rows.records import Completed, Freed, JobColumns, Waited, Worker
from windlass.messages.sync import Finished
from windlass.store.sql.session import Role


class Flow(Role, ABC):
    """The way of jobs with no ties, in bulk: what most of the work of a store is."""

    __slots__ = ()

    @abstractmethod
    async def enter(self, jobs: Sequence[JobColumns]) -> None:
        """Inserts jobs that are ready at once, into `jobs` and `ready`; ids ascend."""

    @abstractmethod
    async def block(self, jobs: Sequence[JobColumns], unmet: Sequence[int]) -> None:
        """Lets jobs that this transaction has inserted wait for so many others each; ids ascend.

        They wait for nothing else: no manual condition, no time.
        """

    @abstractmethod
    async def free(self, met: Mapping[int, int], now: int, young_from: int) -> Freed:
        """Lowers `unmet` as `Places.meet` does; what reaches 0 becomes ready at once.

        That is: if the job may start by now, has no limit, keeps no wait while it runs, and
        its age counts from `young_from` or later. The others that reach 0 are told as `meet`
        tells them, and stand nowhere. Both come ascending by job.
        """

    @abstractmethod
    async def complete(self, now: int, done: Sequence[tuple[Worker, Finished]]) -> list[int]:
        """Completes those of these attempts whose jobs have no dependents, limits or workflow.

        That is: the lease is running and the worker's, and the job has no workflow,
        limit, dependents or kept wait. Their rows in `jobs` are locked, ascending, leases removed
        and ends written; their ids are answered, ascending. The others are left as they
        are, locked. `result` is what to store: the value as JSON, in bytes, or None.
        """

    @abstractmethod
    async def complete_tied(
        self, now: int, done: Sequence[tuple[Worker, Finished]]
    ) -> list[Completed]:
        """Completes all of these attempts, also of jobs with a workflow or dependents; ascending.

        If only one of them has a limit or keeps a wait, or its lease is not the worker's or
        not running, nothing happens. Nobody is told: that is the caller's.
        """

    @abstractmethod
    async def end_waiting(
        self, jobs: Sequence[int], state: int, now: int, reason: str, *, queued: bool
    ) -> list[Waited]:
        """Ends those of these jobs that stand in `waits`, or if `queued` in `ready`; ascending.

        The caller has locked them. A job that runs while it keeps a wait is left alone, as
        are those that stand elsewhere. Nobody is told: that is the caller's.
        """

    @abstractmethod
    async def log(self, moves: Moves) -> None:
        """Appends the events of `moves`, as `Log.append` would."""
