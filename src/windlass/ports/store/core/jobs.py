"""The role that keeps rows of `jobs`: their attempts, dependents and keys too."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from windlass.domain.rows.records import (
    Attempt,
    JobColumns,
    JobEnd,
    JobFacts,
    JobTry,
    KeyRow,
)


class JobsRead(Protocol):
    """Reads rows of `jobs`, their attempts, dependents and keys."""

    async def read(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        """Reads these rows without locking them."""
        ...

    async def specs(self, ids: Sequence[int]) -> dict[int, bytes]: ...

    async def results(self, ids: Sequence[int]) -> dict[int, bytes]:
        """Returns the results of those of these jobs that have one, as JSON."""
        ...

    async def attempts(self, ids: Sequence[int]) -> dict[int, list[Attempt]]:
        """Returns the recorded attempts of each job, ascending by number."""
        ...

    async def dependents(self, ids: Sequence[int], chunk: int) -> dict[int, tuple[int, ...]]:
        """Returns the edges in chunk number `chunk` of each job that has one."""
        ...


class JobsWrite(JobsRead, Protocol):
    """Reads and writes rows of `jobs`, their attempts, dependents and keys."""

    async def allocate(self, count: int) -> Sequence[int]:
        """Returns `count` rising ids that were never given before."""
        ...

    async def insert(self, rows: Sequence[JobColumns]) -> None: ...

    async def lock(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        """Locks these rows against every other writer, ascending; unknown ids are absent."""
        ...

    async def hold(self, ids: Sequence[int]) -> None:
        """Locks these rows as `lock` does and returns nothing."""
        ...

    async def share(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        """Locks these rows against writers only, ascending; unknown ids are absent."""
        ...

    async def note_tries(self, rows: Sequence[JobTry]) -> None: ...

    async def end(self, rows: Sequence[JobEnd]) -> None: ...

    async def record_attempts(self, rows: Sequence[Attempt]) -> None: ...

    async def set_priority(
        self, job: int, adjustment: int, age_from: int, rank: int, flags: int
    ) -> None:
        """Sets where the job comes in the order; an ended job keeps its flags."""
        ...

    async def set_timeouts(self, rows: Sequence[tuple[int, int | None]]) -> None:
        """Changes how long attempts of jobs may take, given as (job, timeout_ms); locked jobs."""
        ...

    async def set_superseded(self, old: int, new: int) -> None: ...

    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        """Appends edges (dependent × 2 + any) to each job's list, 1,000 to a chunk."""
        ...

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        """Does the same for jobs that this transaction inserted and that have no dependents yet."""
        ...

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        """Inserts keys that are new; returns what now stands for each (namespace, key)."""
        ...

    async def retake_keys(
        self, rows: Sequence[KeyRow], instead_of: Sequence[int]
    ) -> dict[tuple[str, str], KeyRow]:
        """Rewrites keys that still stand for the job in `instead_of`; returns what now stands."""
        ...
