"""What the engine asks of a store: set-based row operations, split by role.

A store only reads and writes; every decision is the engine's. All operations of a
transaction are `async` so that one engine drives every store, but those of the memory
and SQLite stores never suspend (see docs/decisions/001).

Locks, where a store has them, are taken in one order: workers, jobs, places and
leases, limits, workflows, then the log; ascending by id within each. Each method says
which rows it locks; the engine calls them in that order.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

from windlass.domain.matching.workers import PastMetadata
from windlass.domain.rows.events import Event
from windlass.domain.rows.records import (
    Attempt,
    Due,
    Grant,
    Granted,
    JobColumns,
    JobEnd,
    JobFacts,
    JobTry,
    KeyRow,
    Lease,
    LimitRow,
    Ticket,
    Wait,
    Worker,
)
from windlass.ports.snapshot import Snapshot as Snapshot  # noqa: PLC0414 - part of this port
from windlass.ports.store_access import AccessTx
from windlass.ports.store_catalog import CatalogTx
from windlass.ports.store_files import FilesTx
from windlass.ports.store_flow import FlowTx
from windlass.ports.store_placement import PlacementTx
from windlass.ports.store_pools import PoolsTx
from windlass.ports.store_retention import RetentionTx
from windlass.ports.store_schedules import ReactionsTx, SchedulesTx, TemplatesTx
from windlass.ports.store_statistics import DeadlinesTx, StatisticsTx
from windlass.ports.store_views import ViewsTx
from windlass.ports.store_workflows import WorkflowsTx

T = TypeVar("T")


class Probe(NamedTuple):
    """Look for at most `most` ready jobs of `shape` from (rank, job) upward."""

    shape: int
    rank: int
    job: int
    most: int


class Head(NamedTuple):
    """The best ready job of a shape."""

    shape: int
    rank: int
    job: int


class Stopped(NamedTuple):
    """A lease whose worker is to stop the process."""

    worker: int
    incarnation: int
    job: int
    attempt: int
    state: int
    reason: str | None


class News(NamedTuple):
    """What other engines on the same store should hear of a commit.

    `arrivals` are new ready jobs, `pokes` workers whose sync has something to answer,
    `due_at` the earliest new entry in `due` (0: none), `catalog` whether queues,
    shapes or workers' metadata changed, `ended` and `ended_workflows` what has ended, where
    the store passes that on.
    """

    arrivals: tuple[tuple[int, int, int, int], ...] = ()  # shape, rank, job, how many
    pokes: tuple[int, ...] = ()
    due_at: int = 0
    catalog: bool = False
    ended: tuple[int, ...] = ()
    ended_workflows: tuple[int, ...] = ()


class JobsTx(Protocol):
    """Rows of `jobs`, and what hangs on them: attempts, dependents, keys."""

    async def allocate(self, count: int) -> Sequence[int]:
        """`count` rising ids that were never given before."""
        ...

    async def insert(self, rows: Sequence[JobColumns]) -> None: ...

    async def lock(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        """Lock these rows against every other writer, ascending; unknown ids are absent."""
        ...

    async def hold(self, ids: Sequence[int]) -> None:
        """Lock these rows as `lock` does, and tell nothing."""
        ...

    async def share(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        """Lock these rows against writers only, ascending; unknown ids are absent."""
        ...

    async def read(self, ids: Sequence[int]) -> dict[int, JobFacts]:
        """Read these rows without locking them."""
        ...

    async def specs(self, ids: Sequence[int]) -> dict[int, bytes]: ...

    async def note_tries(self, rows: Sequence[JobTry]) -> None: ...

    async def end(self, rows: Sequence[JobEnd]) -> None: ...

    async def record_attempts(self, rows: Sequence[Attempt]) -> None: ...

    async def attempts(self, ids: Sequence[int]) -> dict[int, list[Attempt]]:
        """The recorded attempts of each job, ascending by number."""
        ...

    async def set_priority(
        self, job: int, adjustment: int, age_from: int, rank: int, flags: int
    ) -> None:
        """Where the job stands in the order; an ended job keeps its flags."""
        ...

    async def set_superseded(self, old: int, new: int) -> None: ...

    async def add_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        """Append edges (dependent × 2 + any) to each job's list, 1,000 to a chunk."""
        ...

    async def start_dependents(self, edges: Mapping[int, Sequence[int]]) -> None:
        """The same for jobs that this transaction has inserted, and that have none yet."""
        ...

    async def dependents(self, ids: Sequence[int], chunk: int) -> dict[int, tuple[int, ...]]:
        """The edges in chunk number `chunk` of each job that has one."""
        ...

    async def claim_keys(self, rows: Sequence[KeyRow]) -> dict[tuple[str, str], KeyRow]:
        """Insert keys that are new; answer what now stands for each (namespace, key)."""
        ...

    async def point_key(self, namespace: str, key: str, job: int) -> None: ...


class PlacesTx(Protocol):
    """The places where open jobs wait: waits, due, parked, ready."""

    async def add_ready(self, tickets: Sequence[Ticket]) -> None: ...

    async def add_waits(self, rows: Sequence[Wait]) -> None: ...

    async def add_due(self, rows: Sequence[Due]) -> None: ...

    async def add_parked(self, tickets: Sequence[Ticket]) -> None: ...

    async def meet(self, met: Mapping[int, int], manual: bool = False) -> list[Wait]:
        """Lower `unmet` of each waiting job by the given number, ascending by job.

        Those that reach 0 are removed and returned, ascending by job; with `manual` the
        manual condition is the one met. Jobs that do not wait are passed over.
        """
        ...

    async def waiting(self, ids: Sequence[int]) -> dict[int, Wait]:
        """Lock and read these jobs' rows in `waits`."""
        ...

    async def hold(self, ids: Sequence[int]) -> None:
        """Lock these jobs' rows in `waits`, ascending, and tell nothing."""
        ...

    async def take_waits(self, ids: Sequence[int]) -> list[Wait]: ...

    async def take_due(self, ids: Sequence[int]) -> list[Due]: ...

    async def take_parked(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        """Remove these jobs from `parked`, where they stand by limit, shape and rank."""
        ...

    async def take_ready(self, facts: Sequence[JobFacts]) -> list[Ticket]:
        """Remove these jobs from `ready`, where they stand by shape and rank."""
        ...

    async def pull_due(self, now: int, count: int) -> list[Due]:
        """Remove and return up to `count` entries with `at <= now`, earliest first.

        Entries another transaction is moving are passed over.
        """
        ...

    async def next_due(self) -> int:
        """The earliest `at` in `due`, or 0 if it is empty."""
        ...

    async def peek(self, probes: Sequence[Probe]) -> list[Ticket]:
        """Ready jobs of each probe, locked; ascending by (rank, job) within a shape.

        Jobs another transaction holds are passed over.
        """
        ...

    async def park(self, tickets: Sequence[Ticket]) -> None:
        """Move jobs that `peek` has locked from `ready` to `parked`."""
        ...

    async def heads(self) -> list[Head]:
        """The best ready job of every shape that has one."""
        ...

    async def count_ready(self, limit: int, shape: int) -> int:
        """How many jobs of this limit and shape stand in `ready`."""
        ...

    async def best_parked(self, limit: int, count: int) -> list[Ticket]:
        """Lock and read the best `count` parked jobs of each shape under this limit.

        Rows another transaction holds are passed over: waiting for one here, with the
        limit locked, could end in a deadlock.
        """
        ...

    async def worst_ready(self, limit: int, shape: int) -> Ticket | None:
        """Lock and read the last ready job under this limit; ones that others hold do not count."""
        ...

    async def unpark(self, tickets: Sequence[Ticket]) -> None:
        """Remove exactly these rows from `parked`."""
        ...


class LeasesTx(Protocol):
    """Rows of `leases`: the attempts in force."""

    async def grant(
        self, grants: Sequence[Grant], state: int, now: int, slack_ms: int
    ) -> list[Granted]:
        """Turn ready jobs, locked by `peek`, into leases in `state`.

        `started_at` is `now` when the state is running, else 0. `deadline_at` is, when
        running, now + the smaller of the job's two timeouts that are not 0 + `slack_ms`
        (0 if both are 0); when assigned, now + `slack_ms`.
        """
        ...

    async def lock(self, jobs: Sequence[int]) -> dict[int, Lease]:
        """Lock and read the leases of these jobs, ascending by job."""
        ...

    async def of_workers(self, workers: Sequence[int]) -> list[Lease]:
        """All leases of these workers, ascending by lease number, not locked."""
        ...

    async def count(self, workers: Sequence[int]) -> dict[int, int]:
        """How many leases each of these workers holds; those without any are absent."""
        ...

    async def stopped(self, workers: Sequence[int]) -> list[Stopped]:
        """Leases of these workers that they are told to stop."""
        ...

    async def overdue(self, now: int, count: int) -> list[Lease]:
        """Assigned and running leases with `deadline_at <= now`, not locked."""
        ...

    async def orphans(self, count: int) -> list[Lease]:
        """Leases whose worker is unknown or has a newer incarnation, not locked."""
        ...

    async def start(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """(job, started_at, deadline_at): assigned leases become running."""
        ...

    async def mark(self, jobs: Sequence[int], state: int, reason: str) -> None:
        """Tell these leases' workers to stop: state canceling or timed_out."""
        ...

    async def touch(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """(job, activity_at, deadline_at)."""
        ...

    async def allow(self, rows: Sequence[tuple[int, int, int]]) -> None:
        """(job, timeout_ms, deadline_at): these attempts may take another time."""
        ...

    async def drop(self, jobs: Sequence[int]) -> None: ...


class WorkersTx(Protocol):
    """Rows of `workers`."""

    async def lock(self, ids: Sequence[int]) -> dict[int, Worker]:
        """Lock and read, ascending; unknown ids are absent."""
        ...

    async def lock_name(self, name: str) -> Worker | None: ...

    async def insert(self, row: Worker) -> int:
        """Insert with a fresh id (the row's own `id` is ignored) and answer it.

        0 if another transaction has just inserted a worker of this name.
        """
        ...

    async def update(self, rows: Sequence[Worker]) -> None:
        """Write every column of these rows."""
        ...

    async def beat(self, rows: Sequence[tuple[int, int, int, int]]) -> None:
        """(worker, seq, last_seen, last_lease): what a sync changes, without the metadata."""
        ...

    async def remove(self, worker: int) -> None: ...

    async def all(self) -> list[Worker]: ...

    async def note_past(self, row: PastMetadata, since: int) -> None:
        """Keep what a worker reported until now; of each worker the newest `KEPT_METADATA`.

        What it reported until before `since` is forgotten.
        """
        ...

    async def past(self, since: int) -> list[PastMetadata]:
        """What workers reported until `since` or later, ascending by worker and digest."""
        ...

    async def silent_since(self, cutoff: int, statuses: Sequence[int]) -> list[Worker]:
        """Workers in one of `statuses` last seen before `cutoff`, not locked."""
        ...


class LimitsTx(Protocol):
    """Rows of `limits`: concurrency keys."""

    async def intern(self, rows: Sequence[tuple[str, str, int]]) -> dict[tuple[str, str], int]:
        """(namespace, key, max) → id; `max` of an existing key is set to the new one."""
        ...

    async def lock(self, ids: Sequence[int]) -> dict[int, LimitRow]: ...

    async def lock_free(self, ids: Sequence[int]) -> dict[int, LimitRow]:
        """The same without waiting: limits another transaction holds are absent."""
        ...

    async def parked(self) -> list[int]:
        """The limits under which jobs are parked."""
        ...

    async def bump(self, deltas: Mapping[int, int]) -> None:
        """Add to `leased` of these limits, which the caller has locked."""
        ...


class LogTx(Protocol):
    """The event log and the counters beside it."""

    async def append(self, events: Sequence[Event]) -> None:
        """Number and write these events, in order. The last statement of a transaction."""
        ...

    async def read(self, after: int, count: int) -> list[Event]: ...

    async def newest(self) -> int:
        """The number of the newest event, 0 before the first."""
        ...

    async def of_job(self, job: int) -> list[Event]: ...

    async def bump(self, deltas: Mapping[str, int]) -> None:
        """Add to this engine's shard of the named counters."""
        ...

    async def counters(self) -> dict[str, int]:
        """Every counter, summed over the shards."""
        ...


class Tx(Protocol):
    """One transaction: the roles, and the moment it takes place."""

    @property
    def now(self) -> int:
        """The store's time, the same throughout the transaction."""
        ...

    @property
    def jobs(self) -> JobsTx: ...
    @property
    def places(self) -> PlacesTx: ...
    @property
    def leases(self) -> LeasesTx: ...
    @property
    def workers(self) -> WorkersTx: ...
    @property
    def workflows(self) -> WorkflowsTx: ...
    @property
    def limits(self) -> LimitsTx: ...
    @property
    def catalog(self) -> CatalogTx: ...
    @property
    def log(self) -> LogTx: ...
    @property
    def flow(self) -> FlowTx: ...
    @property
    def access(self) -> AccessTx: ...
    @property
    def files(self) -> FilesTx: ...
    @property
    def views(self) -> ViewsTx: ...
    @property
    def retention(self) -> RetentionTx: ...
    @property
    def templates(self) -> TemplatesTx: ...
    @property
    def schedules(self) -> SchedulesTx: ...
    @property
    def reactions(self) -> ReactionsTx: ...
    @property
    def placement(self) -> PlacementTx: ...
    @property
    def statistics(self) -> StatisticsTx: ...
    @property
    def deadlines(self) -> DeadlinesTx: ...
    @property
    def pools(self) -> PoolsTx: ...


class Store(Protocol):
    """A place where jobs live. `shared` says that other engines may work on it too."""

    @property
    def shared(self) -> bool: ...

    @property
    def inline(self) -> bool:
        """Whether transactions run to their end without suspending, one after another."""
        ...

    async def transact(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` in one transaction and commit, or change nothing and raise.

        Raises `StoreUnavailable`; its `outcome_unknown` tells whether the commit may
        have happened. `work` may run more than once (serialization failures), so it
        must not change anything but through the transaction.
        """
        ...

    async def read(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` against one consistent snapshot; it must not write."""
        ...

    async def snapshot(self) -> Snapshot: ...

    async def announce(self, news: News) -> None:
        """Tell the other engines on this store, after a commit. May be lost."""
        ...

    def subscribe(self, hear: Callable[[News], None]) -> Callable[[], None]:
        """Call `hear` for other engines' news; answers how to stop."""
        ...

    async def close(self) -> None: ...
