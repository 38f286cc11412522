"""Reconciles the rows of a pool with the machines that exist, and charges for them.

We trust only machines that a list has shown, and conclude nothing without a list. Charges follow
from the log: which jobs the machines held since the last time, by current attempts and those that
ended since. The pool and its workers are locked, so none of them can report meanwhile. How far we
read the log is written with the charges, so a server that dies in between charges nothing twice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.pools.costs import Held, charges
from windlass.domain.pools.pools import (
    CostRow,
    Lifecycle,
    Pool,
    PoolRow,
    PoolState,
    PoolWorkerRow,
    decode_pool,
)
from windlass.domain.rows.records import Worker
from windlass.engine.fleet.workers import remove
from windlass.engine.pools.steps import ACTOR, failed, move, say
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.provider import Machine
from windlass.store.sql.pools import Spell, position_name

MAX_EVENTS: Final = 1_000_000  # events read at once; older ones count as idle time


class ProviderRequests(NamedTuple):
    """What to ask of a provider after the commit."""

    launch: Sequence[PoolWorkerRow] = ()
    terminate: Sequence[Machine] = ()
    leaks: int = 0


class ProviderListing(NamedTuple):
    """What a provider listed; `settle_ms` is how long new machines may be missing.

    Without a list, the rows count: a machine exists until it was ended. With a `host`, the list
    shows only that host; without the turn, everything else is left to the server that has it.
    """

    machines: Mapping[str, Machine] | None
    settle_ms: int
    retry_ms: int  # an unanswered launch is repeated after this long
    host: str = ""
    turn: bool = True
    last_words: Callable[[str], str | None] = lambda _token: None  # of a worker that has ended

    def is_elsewhere(self, member: PoolWorkerRow) -> bool:
        """Returns True if its machine is on a host that this list does not cover."""
        host, colon, _ = (member.machine or "").rpartition(":")
        return bool(self.host and colon) and host != self.host

    def concerns(self, member: PoolWorkerRow) -> bool:
        """Returns True if this server is responsible for it."""
        return self.turn or bool(member.machine and not self.is_elsewhere(member))


async def reconcile(work: Work, pool_id: int, found: ProviderListing) -> ProviderRequests:
    """Updates a pool's rows to what exists, and returns what the provider must do."""
    row = await work.tx.pools.lock(pool_id)
    members = await work.tx.pools.living(pool_id)
    machines = found.machines
    if machines is None:
        machines = {m.token: Machine(m.token, m.machine) for m in members if m.machine}
    if row is None:
        return ProviderRequests(terminate=list(machines.values()), leaks=len(machines))
    workers = await work.tx.workers.lock(sorted(m.known_worker for m in members))
    held = await work.tx.leases.count(sorted(workers))
    step = _Reconciling(work, row, found, machines, workers, held)
    after = [step.advance(member) if found.concerns(member) else member for member in members]
    step.recover()
    await charge(work, pool_id, step.pool, members)
    await work.tx.pools.update_workers([m._replace(charged_until=work.now) for m in after])
    if step.row != row:
        await work.tx.pools.update(step.row._replace(updated_at=work.now))
    for was, now in zip(members, after, strict=True):
        if now.state == Lifecycle.GONE:
            await remove(work, was.known_worker, False, ACTOR)
    known = {member.token for member in members if not found.is_elsewhere(member)}
    leaks = [machine for token, machine in machines.items() if token not in known]
    for machine in leaks:
        say(work, row, f"found machine {machine.id}, which no pool requested", machine=machine.id)
    return ProviderRequests(step.launch, [*step.terminate, *leaks], len(leaks))


class _Reconciling:
    """One pool in one transaction: moves each of its workers as far as possible."""

    def __init__(
        self,
        work: Work,
        row: PoolRow,
        found: ProviderListing,
        machines: Mapping[str, Machine],
        workers: Mapping[int, Worker],
        held: Mapping[int, int],
    ) -> None:
        self._work = work
        self.row = row
        self.pool = decode_pool(row.body)
        self._found = found
        self._machines = machines
        self._workers = workers
        self._held = held
        self.launch: list[PoolWorkerRow] = []
        self.terminate: list[Machine] = []

    def recover(self) -> None:
        """Clears the last error once the provider has answered for a while."""
        row = self.row
        if row.message is not None and not row.failures and self._work.now >= row.next_at:
            self.row = row._replace(message=None)

    def advance(self, member: PoolWorkerRow) -> PoolWorkerRow:
        """Returns the worker's new state, and notes what it needs."""
        away = self._found.is_elsewhere(member)
        machine = self._presumed(member) if away else self._machines.get(member.token)
        if machine is not None and member.machine != machine.id:
            member = member._replace(machine=machine.id)
        member = {
            Lifecycle.REQUESTED: self._requested,
            Lifecycle.STARTING: self._starting,
            Lifecycle.ONLINE: self._online,
            Lifecycle.DRAINING: self._draining,
            Lifecycle.TERMINATING: self._terminating,
        }[Lifecycle(member.state)](member, machine)
        if member.state == Lifecycle.TERMINATING and machine is not None and not away:
            self.terminate.append(machine)
            return member._replace(tries=member.tries + 1)
        return member

    def _presumed(self, member: PoolWorkerRow) -> Machine | None:
        """Returns the assumed machine on another host, while its worker is alive or may still
        enrol.
        """
        worker = self._workers.get(member.known_worker)
        is_heard = worker is not None and worker.status != WorkerStatus.OFFLINE
        if is_heard or member.state in (Lifecycle.REQUESTED, Lifecycle.STARTING):
            return Machine(member.token, member.machine or "")
        return None

    def _requested(self, member: PoolWorkerRow, machine: Machine | None) -> PoolWorkerRow:
        if machine is not None:
            return self._starting(self._to(member, Lifecycle.STARTING, None), machine)
        if self.row.state == PoolState.DELETING and not member.tries:
            return self._to(member, Lifecycle.TERMINATING, "the pool is deleted")
        if not member.tries or self._work.now - member.changed_at >= self._found.retry_ms:
            again = member._replace(tries=member.tries + 1, changed_at=self._work.now)
            self.launch.append(again)
            return again
        return member

    def _starting(self, member: PoolWorkerRow, machine: Machine | None) -> PoolWorkerRow:
        worker = self._workers.get(member.known_worker)
        if worker is not None and worker.incarnation:
            self._learn(worker)
            online = self._to(member, Lifecycle.ONLINE, None)
            return self._online(online._replace(idle_since=self._work.now), machine)
        if worker is None:
            return self._to(member, Lifecycle.TERMINATING, "its worker was removed")
        waited = self._work.now - member.requested_at
        if machine is None and self._work.now - member.changed_at > self._found.settle_ms:
            words = self._found.last_words(member.token)
            why = "the machine went away before it came online"
            return self._fail(member, why if words is None else f"{why}: {words}")
        if waited > self.pool.start_timeout_ms:
            return self._fail(member, f"not online after {waited // 1000} s")
        return member

    def _online(self, member: PoolWorkerRow, machine: Machine | None) -> PoolWorkerRow:
        worker = self._workers.get(member.known_worker)
        if machine is None and self._work.now - member.changed_at > self._found.settle_ms:
            return self._to(member, Lifecycle.TERMINATING, "the machine is gone")
        if worker is None or worker.status == WorkerStatus.OFFLINE:
            return self._to(member, Lifecycle.TERMINATING, "it was lost")
        if worker.status == WorkerStatus.DRAINING:
            return self._draining(self._to(member, Lifecycle.DRAINING, worker.reason), machine)
        if self._held.get(worker.id) or worker.last_lease != member.last_lease:
            idle = None if self._held.get(worker.id) else self._work.now
            return member._replace(idle_since=idle, last_lease=worker.last_lease)
        return member._replace(idle_since=member.idle_since or self._work.now)

    def _draining(self, member: PoolWorkerRow, machine: Machine | None) -> PoolWorkerRow:
        worker = self._workers.get(member.known_worker)
        lost = worker is None or worker.status == WorkerStatus.OFFLINE
        if self._held.get(member.known_worker) and machine is not None and not lost:
            return member
        return self._to(member, Lifecycle.TERMINATING, member.reason)

    def _terminating(self, member: PoolWorkerRow, machine: Machine | None) -> PoolWorkerRow:
        # Its jobs are requeued when its lease ends, which is before its row is removed.
        if machine is not None or self._held.get(member.known_worker):
            return member
        return self._to(member, Lifecycle.GONE, member.reason)._replace(worker=None)

    def _fail(self, member: PoolWorkerRow, why: str) -> PoolWorkerRow:
        self.row = failed(self._work, self.row, self.pool, why)
        return self._to(member, Lifecycle.TERMINATING, why)

    def _learn(self, worker: Worker) -> None:
        if self.row.learned != worker.dynamic or self.row.failures:
            self.row = self.row._replace(
                learned=worker.dynamic, failures=0, next_at=0, message=None
            )

    def _to(self, member: PoolWorkerRow, state: Lifecycle, why: str | None) -> PoolWorkerRow:
        return move(self._work, self.row, member, state, why)


async def charge(work: Work, pool_id: int, pool: Pool, members: Iterable[PoolWorkerRow]) -> None:
    """Charges what each worker has cost since it was last charged."""
    charged = {member.known_worker: member for member in members}
    spells = await _spells(work, pool_id, sorted(charged))
    catalog = work.catalog
    await catalog.know(work.tx, {spell.shape for spell in spells})
    held: dict[int, list[Held]] = {}
    for worker, shape, since, until in spells:
        payer = catalog.namespace_of(shape), catalog.queue_of(shape)
        held.setdefault(worker, []).append(Held(since, until, payer))
    sums: dict[tuple[int, str, str], CostRow] = {}
    for worker, member in charged.items():
        for row in charges(pool, member.charged_until, work.now, held.get(worker, ())):
            old = sums.get(row[1:4])
            sums[row[1:4]] = row if old is None else _added(old, row)
    await work.tx.pools.charge([sums[key] for key in sorted(sums)])


def _added(one: CostRow, other: CostRow) -> CostRow:
    return one._replace(ms=one.ms + other.ms, micros=one.micros + other.micros)


async def _spells(work: Work, pool_id: int, workers: list[int]) -> list[Spell]:
    """Returns the jobs these workers hold, and those they held since the last charge."""
    name, newest = position_name(pool_id), await work.tx.log.newest()
    known = (await work.tx.catalog.meta()).get(name)
    after = newest if known is None else max(known, newest - MAX_EVENTS)
    ended = await work.tx.pools.spells(after, workers)
    if known != newest:
        await work.tx.catalog.set_meta(name, newest)
    load, mine = await work.tx.pools.load(1), frozenset(workers)
    return ended + [
        Spell(held.worker, held.shape, held.since, work.now)
        for held in load.leases
        if held.worker in mine
    ]
