"""What lists of jobs need of a store: reads that each store does its own way."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from windlass.domain.rows.records import JobRecord, Lease, ShapeRow
from windlass.domain.rows.views import Place
from windlass.store.job_filters import Candidate, Source, Standing
from windlass.store.job_search import JobText


class Stretch(NamedTuple):
    """Rows of jobs to look at from an id on: `most` of them, or until `width` pass."""

    start: int
    most: int
    width: int
    down: bool


class Seen(NamedTuple):
    """The candidates of a stretch that pass: `looked` rows were looked at, the last is `at`.

    `at` is 0 if there were none, and `ended` tells that nothing is behind them. If the store read
    the texts as well, `texts` has them.
    """

    rows: Sequence[Candidate]
    looked: int
    at: int
    ended: bool
    texts: Mapping[int, JobText] | None = None


class JobReads(ABC):
    """The reads. Answers by id leave out unknown ids."""

    @abstractmethod
    async def _views(self, ids: Sequence[int]) -> list[JobRecord]:
        """Returns these jobs in this order."""

    @abstractmethod
    async def _scan(
        self, source: Source, below: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        """Returns the next jobs of a source below an id, descending."""

    @abstractmethod
    async def _scan_up(
        self, source: Source, above: int, count: int, workflow: int | None
    ) -> list[Candidate]:
        """Returns the next jobs of a source above an id, ascending."""

    @abstractmethod
    async def _light(self, ids: Sequence[int]) -> list[Candidate]:
        """Returns these jobs, descending."""

    @abstractmethod
    async def _few_queued(self, most: int) -> list[int] | None:
        """Returns the queued jobs in any order; None if there may be more than `most`."""

    @abstractmethod
    async def _leases_by_start(self, after: Place, count: int) -> list[Place]:
        """Returns when leases started, or were assigned, with their jobs, ascending."""

    @abstractmethod
    async def _ready_first(self, shapes: Sequence[int], after: Place, count: int) -> list[Place]:
        """Returns the ranks of ready jobs of some shapes with the jobs, ascending.

        They are the first `count` at least, if there are so many.
        """

    @abstractmethod
    async def _ends_between(self, start: int, below: int, count: int) -> list[Place]:
        """Returns the last events from number `start` on that ended jobs, with the jobs."""

    @abstractmethod
    async def _event_bounds(self) -> tuple[int, int]:
        """Returns the numbers of the oldest and the newest event; (1, 0) without any."""

    @abstractmethod
    async def _event_time(self, number: int) -> int | None:
        """Returns when the first event from this number on happened."""

    @abstractmethod
    async def _created_up_to(self, job: int) -> int | None:
        """Returns when the newest job up to this id was created."""

    @abstractmethod
    async def _newest_job(self) -> int: ...

    @abstractmethod
    async def _oldest_job(self) -> int: ...

    @abstractmethod
    async def _jobs_of_key(self, namespaces: Sequence[str], key: str) -> list[int]: ...

    @abstractmethod
    async def _shapes(self) -> Iterable[ShapeRow]: ...

    @abstractmethod
    async def _specs(self, ids: Sequence[int]) -> Mapping[int, bytes]: ...

    @abstractmethod
    async def _records(self, ids: Sequence[int]) -> Mapping[int, JobRecord]: ...

    @abstractmethod
    async def _job_texts(self, ids: Sequence[int]) -> list[JobText]: ...

    @abstractmethod
    async def _leases(self, ids: Sequence[int]) -> Mapping[int, Lease]: ...

    @abstractmethod
    async def _standings(self, ids: Sequence[int]) -> Iterable[Standing]:
        """Returns where those of these jobs stand that are in `waits` or `due`."""

    @abstractmethod
    async def _counters(self) -> Mapping[str, int]: ...
