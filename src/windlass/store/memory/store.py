"""The store in memory: dictionaries, transactions that run in one step, nothing on disk.

It is the reference for what the port means, the store of most tests and of the
simulator, where several engines work on the same data through a handle each.
"""

from collections.abc import Awaitable, Callable
from typing import NamedTuple, TypeVar

from windlass.domain.values.errors import StoreUnavailable
from windlass.ports.clock import Clock
from windlass.ports.loop_time import give_way_if_long
from windlass.ports.store import News, ReadTx, Snapshot, WriteTx
from windlass.store.inline import drive
from windlass.store.memory.core.flow import MemoryFlow
from windlass.store.memory.core.jobs import MemoryJobs
from windlass.store.memory.core.leases import MemoryLeases
from windlass.store.memory.core.limits import MemoryLimits
from windlass.store.memory.core.log import MemoryLog
from windlass.store.memory.core.places import MemoryPlaces
from windlass.store.memory.core.steps import MemorySteps
from windlass.store.memory.core.workflows import MemoryWorkflows
from windlass.store.memory.fleet.access import MemoryAccess
from windlass.store.memory.fleet.catalog import MemoryCatalog
from windlass.store.memory.fleet.placement import MemoryPlacement
from windlass.store.memory.fleet.pools import MemoryPools
from windlass.store.memory.fleet.workers import MemoryWorkers
from windlass.store.memory.records.audit import MemoryAudit
from windlass.store.memory.records.files import MemoryFiles
from windlass.store.memory.records.inbox import MemoryInbox
from windlass.store.memory.records.retention import MemoryRetention
from windlass.store.memory.records.schedules import (
    MemoryReactions,
    MemorySchedules,
    MemoryTemplates,
)
from windlass.store.memory.records.series import MemorySeries
from windlass.store.memory.records.snapshot import take_snapshot
from windlass.store.memory.records.statistics import MemoryDeadlines, MemoryStatistics
from windlass.store.memory.records.views import MemoryViews
from windlass.store.memory.tables import Tables

T = TypeVar("T")


class MemoryTx(NamedTuple):
    """One transaction: the roles, and the moment it takes place."""

    now: int
    jobs: MemoryJobs
    places: MemoryPlaces
    leases: MemoryLeases
    workers: MemoryWorkers
    workflows: MemoryWorkflows
    limits: MemoryLimits
    catalog: MemoryCatalog
    log: MemoryLog
    flow: MemoryFlow
    access: MemoryAccess
    audit: MemoryAudit
    files: MemoryFiles
    views: MemoryViews
    retention: MemoryRetention
    templates: MemoryTemplates
    schedules: MemorySchedules
    reactions: MemoryReactions
    placement: MemoryPlacement
    statistics: MemoryStatistics
    series: MemorySeries
    deadlines: MemoryDeadlines
    steps: MemorySteps
    pools: MemoryPools
    inbox: MemoryInbox


class Shared:
    """What all handles on one memory store have in common."""

    def __init__(self, clock: Clock) -> None:
        self.tables = Tables()
        self.handles: list[MemoryStore] = []
        self.subscribers: dict[object, tuple[MemoryStore, Callable[[News], None]]] = {}
        self._clock = clock
        self._now = 0

    def tell_time(self) -> int:
        """Returns the clock's time, but never earlier than it was told before."""
        self._now = max(self._now, self._clock.now_ms())
        return self._now


class MemoryStore:
    """One engine's handle on data in memory; `attach` makes one for another engine."""

    def __init__(
        self, clock: Clock, server: str = "s1", shared: bool = False, data: Shared | None = None
    ) -> None:
        self._clock = clock
        self._shared = shared
        self._is_open = True
        self._data = data or Shared(clock)
        self._data.handles.append(self)
        self._tx = _transaction(self._data.tables, server)

    def attach(self, server: str) -> "MemoryStore":
        """Returns a handle on the same data with counters, subscribers and an end of its own."""
        return MemoryStore(self._clock, server, shared=True, data=self._data)

    @property
    def shared(self) -> bool:
        return self._shared or len(self._data.handles) > 1

    @property
    def inline(self) -> bool:
        return True

    async def transact(self, work: Callable[[WriteTx], Awaitable[T]], rows: int = 0) -> T:
        del rows  # this store is for tests
        return self._run(work, keep=True)

    async def read(self, work: Callable[[ReadTx], Awaitable[T]]) -> T:
        await give_way_if_long()
        return self._run(work, keep=False)

    async def snapshot(self) -> Snapshot:
        self._check_open()
        return take_snapshot(self._data.tables)

    async def read_beside(self, work: Callable[[ReadTx, Snapshot], Awaitable[T]]) -> T:
        tables = self._data.tables
        return self._run(lambda tx: work(tx, take_snapshot(tables)), keep=False)

    async def announce(self, news: News) -> None:
        for owner, hear in list(self._data.subscribers.values()):
            if owner is not self:
                hear(news)

    def subscribe(self, hear: Callable[[News], None]) -> Callable[[], None]:
        subscription = object()
        self._data.subscribers[subscription] = (self, hear)

        def stop() -> None:
            self._data.subscribers.pop(subscription, None)

        return stop

    async def close(self) -> None:
        """Ends this handle; the data stays for the others, and for those that attach later."""
        if not self._is_open:
            return
        self._is_open = False
        self._data.handles.remove(self)
        for subscription, (owner, _) in list(self._data.subscribers.items()):
            if owner is self:
                del self._data.subscribers[subscription]

    def _run(self, work: Callable[[WriteTx], Awaitable[T]], keep: bool) -> T:
        self._check_open()
        journal = self._data.tables.journal
        journal.begin()
        try:
            result = drive(work(self._tx._replace(now=self._data.tell_time())))
            if keep:
                journal.commit()
            return result
        finally:
            # After a commit there is nothing left to take back.
            journal.roll_back()

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreUnavailable("this handle on the memory store was closed", False)


def _transaction(tables: Tables, server: str) -> MemoryTx:
    """Returns the roles over these tables, for transactions that set `now` when they begin."""
    jobs, places = MemoryJobs(tables), MemoryPlaces(tables)
    leases, log = MemoryLeases(tables), MemoryLog(tables, server)
    files = MemoryFiles(tables)
    return MemoryTx(
        now=0,
        jobs=jobs,
        places=places,
        leases=leases,
        workers=MemoryWorkers(tables),
        workflows=MemoryWorkflows(tables),
        limits=MemoryLimits(tables),
        catalog=MemoryCatalog(tables),
        log=log,
        flow=MemoryFlow(jobs, places, leases, log),
        access=MemoryAccess(tables),
        audit=MemoryAudit(tables),
        files=files,
        views=MemoryViews(tables, jobs, leases, log, files),
        retention=MemoryRetention(tables),
        templates=MemoryTemplates(tables),
        schedules=MemorySchedules(tables),
        reactions=MemoryReactions(tables),
        placement=MemoryPlacement(tables),
        statistics=MemoryStatistics(tables),
        series=MemorySeries(tables),
        deadlines=MemoryDeadlines(tables),
        steps=MemorySteps(tables),
        pools=MemoryPools(tables),
        inbox=MemoryInbox(tables),
    )
