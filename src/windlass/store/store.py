"""A store, and what engines on one store tell each other."""

from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

from windlass.domain.rows.gaps import Mark
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx, WriteTx

T = TypeVar("T")


class News(NamedTuple):
    """What other engines on the same store should know about a commit.

    `arrivals` are new ready jobs, `pokes` workers whose sync has something to answer, `due_at` the
    earliest new entry in `due` (0: none), `catalog` whether queues, shapes or workers' metadata
    changed, `ended` and `ended_workflows` jobs and workflows that have ended, if the store reports
    them, `inbox` whether a user's transaction submitted jobs, `stacks` attempts whose workers are
    asked for their stacks.
    """

    arrivals: tuple[tuple[int, int, int, int], ...] = ()  # shape, rank, job, how many
    pokes: tuple[int, ...] = ()
    due_at: int = 0
    catalog: bool = False
    ended: tuple[int, ...] = ()
    ended_workflows: tuple[int, ...] = ()
    inbox: bool = False
    stacks: tuple[tuple[int, int, int, int, int], ...] = ()  # see `engine/sync/stacks.py`


class Hearers:
    """The callbacks that hear the news of other engines."""

    def __init__(self) -> None:
        self._hearers: dict[object, Callable[[News], None]] = {}

    def __len__(self) -> int:
        return len(self._hearers)

    def add(self, hear: Callable[[News], None]) -> Callable[[], None]:
        """Calls `hear` for each piece of news, until the returned function is called."""
        key = object()
        self._hearers[key] = hear

        def stop() -> None:
            self._hearers.pop(key, None)

        return stop

    def tell(self, news: News) -> None:
        """Tells all of them."""
        for hear in list(self._hearers.values()):
            hear(news)

    def clear(self) -> None:
        """Tells them nothing more."""
        self._hearers.clear()


class Store(Protocol):
    """A place where jobs live. `shared` says that other engines may work on it too."""

    @property
    def shared(self) -> bool: ...

    @property
    def inline(self) -> bool:
        """Returns whether transactions run to their end without suspending, one after another."""

    async def transact(self, work: Callable[[WriteTx], Awaitable[T]], rows: int = 0) -> T:
        """Runs `work` in one transaction and commit, or change nothing and raise.

        `rows` is about how many it changes, if they may be many: a store that would hold the loop
        meanwhile runs it in a thread.

        Raises `StoreUnavailable`; its `outcome_unknown` tells whether the commit may
        have happened. `work` may run more than once (serialization failures), so it
        must not change anything but through the transaction.
        """

    async def now(self) -> int:
        """Returns the store's time."""

    async def read(self, work: Callable[[ReadTx], Awaitable[T]], rows: int = 0) -> T:
        """Runs `work` against one consistent snapshot. One of many `rows` holds no event loop."""

    async def snapshot(self) -> Snapshot: ...

    async def read_beside(self, work: Callable[[ReadTx, Snapshot], Awaitable[T]]) -> T:
        """Runs `work` against one consistent snapshot, with all of its rows but the events."""

    def announce(self, news: News) -> None:
        """Tells the other engines on this store, after a commit. May be lost."""

    def subscribe(self, hear: Callable[[News], None]) -> Callable[[], None]:
        """Calls `hear` for other engines' news, until the returned function is called."""

    async def close(self) -> None: ...


class Follower(Protocol):
    """An engine that sees a database first when it was started again, or another took its place."""

    async def follow(self, tx: WriteTx, marks: Sequence[Mark]) -> None:
        """Writes what follows from it. `marks` are commits that were answered to this engine."""

    async def followed(self, tx: ReadTx) -> None:
        """Drops what was remembered of the database before, and reads it again."""


@runtime_checkable
class Followed(Protocol):
    """A store on a database that may go on without its last commits."""

    async def be_followed(self, follower: Follower) -> None: ...


@runtime_checkable
class Marking(Protocol):
    """A store that outlives its processes, and knows what it has committed."""

    @property
    def newest_mark(self) -> Mark | None:
        """Returns the newest event of which it is certain that it was committed, if known."""
