"""Submit and sync in one round trip: what a store may offer beside its transactions.

The fast path handles the common case only. In any other case it writes nothing and answers None,
and the engine runs its normal path: the rules stay there, and a test proves both equal.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

from windlass.domain.rows.records import JobColumns
from windlass.messages.sync import Assignment, Finished
from windlass.store.store import Store

Place = tuple[int, int]  # rank, job


class PlainKey(NamedTuple):
    """The key of a submission: its jobs are `jobs` many from place `first` on."""

    namespace: str
    key: str
    digest: str
    first: int
    jobs: int


class Arrival(NamedTuple):
    """Jobs of one shape and rank (relative to the moment), the first of them at a place."""

    shape: int
    rank: int
    first: int
    jobs: int


class PlainSubmit(NamedTuple):
    """Jobs without ties whose shapes are known.

    The rows' ids are places in the list, their ranks and times relative to the moment.
    """

    rows: Sequence[JobColumns]
    depths: Mapping[str, int]  # counter → by how much it rises
    keys: Sequence[PlainKey]
    arrivals: Sequence[Arrival]


class PlainSubmitted(NamedTuple):
    """`told`: other engines have heard of it with the commit."""

    now: int
    ids: Sequence[int]
    told: bool


class FastPathProbe(NamedTuple):
    """Where to look for jobs of a shape, and the counter of its queue's depth."""

    shape: int
    rank: int
    job: int
    most: int
    depth: str


class PlainClaim(NamedTuple):
    """How many jobs a worker wants, where they may be found, and how they are given.

    `following` is the best place among shapes that are not probed, `refreshed_at` when
    nothing was overlooked for the last time.
    """

    want: int
    probes: Sequence[FastPathProbe] = ()
    following: Place | None = None
    refreshed_at: int = 0
    state: int = 0
    slack_ms: int = 0
    least_attempt: int = 0


class Limited(NamedTuple):
    """A shape that is probed, and the limit of its queue."""

    shape: int
    limit: int


class PlainSync(NamedTuple):
    """One worker's sync with nothing but plain completions and a claim.

    `described` is the SHA-256 of the static and the dynamic metadata, a line each, by which
    the probes were chosen.
    """

    worker: int
    incarnation: int
    seq: int
    again: bool
    received: int
    described: bytes
    done: Sequence[Finished]  # as `Flow.complete` takes them
    claim: PlainClaim
    holds: int | None = None  # leases that the worker has at most; None: unknown
    limited: Sequence[Limited] | None = None  # None: nothing of it has gates


class PlainSynced(NamedTuple):
    """`asked` is what was wanted and had room, `held` how many leases the worker has now at most.

    `looked` says that nothing is overlooked by the probes, and how many ms it took to find out.
    A cursor for each probe says from where there may be more (None: there is none), `left` are
    jobs (shape, rank, job) that were locked and not given.
    """

    now: int
    asked: int
    looked: int | None
    granted: list[Assignment]
    cursors: list[Place | None]
    left: list[tuple[int, int, int]]
    held: int | None
    shapes: Sequence[int] = ()  # of what was granted, where something had gates
    freed: Sequence[int] = ()  # limits of queues under which completed jobs ran


class FastPathRules(NamedTuple):
    """Numbers that are the same in every call, in milliseconds."""

    beat_ms: int  # `last_seen` is written when it is so old
    bound_ttl_ms: int  # probes are trusted so long
    refresh_ms: int  # and so long if they do not suffice


class FastCommands(Protocol):
    """Runs the common case of submit and sync."""

    async def submit(self, asked: PlainSubmit) -> PlainSubmitted | None: ...

    async def sync(self, asked: PlainSync, rules: FastPathRules) -> PlainSynced | None: ...


@runtime_checkable
class FastPathStore(Protocol):
    """A store that may offer a fast path."""

    @property
    def fast_path(self) -> FastCommands | None: ...


def fast_path_of(store: Store) -> FastCommands | None:
    """Returns the fast path of a store, if it has one."""
    return store.fast_path if isinstance(store, FastPathStore) else None
