"""The role that keeps the steps of jobs and the signals they wait for."""

from collections.abc import Sequence
from typing import Protocol

from windlass.domain.rows.steps import SignalRow, StepRow


class StepsRead(Protocol):
    """Reads steps and signals."""

    async def find(self, job: int, key: str) -> StepRow | None: ...

    async def count(self, job: int) -> int:
        """Returns how many steps a job has."""
        ...

    async def of_jobs(self, jobs: Sequence[int]) -> dict[int, list[StepRow]]:
        """Returns the steps of these jobs without their values, in the order they were begun."""
        ...

    async def questions(self, after: int, count: int) -> list[StepRow]:
        """Returns pending questions of suspended jobs above an id, ascending by job and key."""
        ...

    async def joining(self, after: int, count: int) -> list[StepRow]:
        """Returns pending waits for jobs, of jobs above an id, ascending by job and key."""
        ...

    async def next_signal(
        self, namespace: str, name: str, *, after: int, since: int, until: int
    ) -> SignalRow | None:
        """Returns the oldest signal above the number `after`, sent from `since` to `until`."""
        ...

    async def signal_of_key(self, namespace: str, name: str, key: str) -> SignalRow | None: ...

    async def last_signal(self, namespace: str, name: str) -> int:
        """Returns the highest number of a signal with this name, or 0."""
        ...

    async def count_signals(self, namespace: str, most: int) -> int:
        """Returns how many signals are kept in a namespace; counts up to `most`."""
        ...

    async def waiting(self, signal: SignalRow, count: int) -> list[StepRow]:
        """Returns pending steps that wait for this signal.

        Those that began to wait after it, or ended before it, are not among them.
        """
        ...

    async def open_signals(self, count: int) -> list[SignalRow]:
        """Returns signals that some waiting jobs may not have been told of, oldest first."""
        ...


class StepsWrite(StepsRead, Protocol):
    """Writes steps and signals."""

    async def put(self, row: StepRow) -> None:
        """Writes a step, new or changed."""
        ...

    async def lock_pending(self, jobs: Sequence[int]) -> list[StepRow]:
        """Locks and reads the pending steps of these jobs."""
        ...

    async def lock_step(self, job: int, key: str) -> StepRow | None:
        """Locks and reads one step."""
        ...

    async def lock_name(self, namespace: str, name: str) -> None:
        """Keeps others from sending this signal, or from beginning to wait for it."""
        ...

    async def add_signal(self, row: SignalRow) -> int:
        """Writes a signal, whose id is drawn here, and returns the id."""
        ...

    async def close_signal(self, signal: int) -> None:
        """Notes that all who waited for it have been told."""
        ...

    async def drop_signals(self, before: int, count: int) -> int:
        """Removes up to `count` signals that were sent before a time; returns how many."""
        ...
