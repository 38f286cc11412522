"""The steps of pools, each one transaction: what exists is taken note of, then acted upon.

Every row changes under its pool's lock. Nothing is asked of a provider before the row that
says so is committed, and nothing is believed of a machine that no list has shown.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.events import EventKind
from windlass.domain.moments import month_of
from windlass.domain.pool_sizing import Verdict, after_failure, leavers, size
from windlass.domain.pools import (
    CostRow,
    Lifecycle,
    Pool,
    PoolRow,
    PoolState,
    PoolWorkerRow,
    cost_micros,
)
from windlass.domain.records import Worker
from windlass.domain.workers import WorkerStatus
from windlass.engine.pool_fleet import MOST_COUNTED, Seen, decode_pool, look
from windlass.engine.work import Work
from windlass.engine.workers import remove, set_status
from windlass.ports.provider import Machine

ACTOR: Final = "pools"
GONE_KEPT_MS: Final = 7 * 86_400_000

_encode = msgspec.json.Encoder(order="deterministic").encode


class Todo(NamedTuple):
    """What is to be asked of a provider after a commit."""

    launch: Sequence[PoolWorkerRow] = ()
    terminate: Sequence[Machine] = ()
    leaks: int = 0


class Found(NamedTuple):
    """What a provider's list showed; `settle_ms` is how long new machines may be missing.

    Where there is no list, the rows say what there is: a machine until it was ended.
    """

    machines: Mapping[str, Machine] | None
    settle_ms: int
    retry_ms: int  # after this long an unanswered launch is asked for again


async def reconcile(work: Work, pool_id: int, found: Found) -> Todo:
    """Bring a pool's rows in line with what exists, and say what the provider is to do."""
    row = await work.tx.pools.lock(pool_id)
    members = [member for member in await work.tx.pools.living() if member.pool == pool_id]
    machines = found.machines
    if machines is None:
        machines = {m.token: Machine(m.token, m.machine) for m in members if m.machine}
    if row is None:
        return Todo(terminate=list(machines.values()), leaks=len(machines))
    workers = await work.tx.workers.lock(sorted(m.worker for m in members))
    held = await work.tx.leases.count(sorted(workers))
    step = _Reconciling(work, row, found, machines, workers, held)
    changed = [step.advance(member) for member in members]
    await _charge(work, step.pool, members)
    charged = [member._replace(charged_until=work.now) for member in changed]
    await work.tx.pools.update_workers(charged)
    if step.row != row:
        await work.tx.pools.update(step.row._replace(updated_at=work.now))
    for member in charged:
        if member.state == Lifecycle.GONE:
            await remove(work, next(m.worker for m in members if m.id == member.id), False, ACTOR)
    known = {member.token for member in members}
    leaks = [machine for token, machine in machines.items() if token not in known]
    for machine in leaks:
        _say(work, row, f"found {machine.id}, which nobody asked for", machine=machine.id)
    return Todo(step.launch, [*step.terminate, *leaks], len(leaks))


class _Reconciling:
    """One pool in one transaction: each of its workers goes on as far as it can."""

    def __init__(
        self,
        work: Work,
        row: PoolRow,
        found: Found,
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

    def advance(self, member: PoolWorkerRow) -> PoolWorkerRow:
        """Where this worker stands now; what it needs is noted."""
        machine = self._machines.get(member.token)
        if machine is not None and member.machine != machine.id:
            member = member._replace(machine=machine.id)
        member = {
            Lifecycle.REQUESTED: self._requested,
            Lifecycle.STARTING: self._starting,
            Lifecycle.ONLINE: self._online,
            Lifecycle.DRAINING: self._draining,
            Lifecycle.TERMINATING: self._terminating,
        }[Lifecycle(member.state)](member, machine)
        if member.state == Lifecycle.TERMINATING and machine is not None:
            self.terminate.append(machine)
            return member._replace(tries=member.tries + 1)
        return member

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
        worker = self._workers.get(member.worker)
        if worker is not None and worker.incarnation:
            self._learn(worker)
            online = self._to(member, Lifecycle.ONLINE, None)
            return self._online(online._replace(idle_since=self._work.now), machine)
        waited = self._work.now - member.requested_at
        if machine is None and self._work.now - member.changed_at > self._found.settle_ms:
            return self._fail(member, "the machine went away before it came online")
        if waited > self.pool.start_timeout_ms:
            return self._fail(member, f"not online after {waited // 1000} s")
        return member

    def _online(self, member: PoolWorkerRow, machine: Machine | None) -> PoolWorkerRow:
        worker = self._workers.get(member.worker)
        if machine is None and self._work.now - member.changed_at > self._found.settle_ms:
            return self._to(member, Lifecycle.TERMINATING, "the machine is gone")
        if worker is None or worker.status == WorkerStatus.OFFLINE:
            return self._to(member, Lifecycle.TERMINATING, "it was lost")
        if worker.status == WorkerStatus.DRAINING:
            return self._draining(self._to(member, Lifecycle.DRAINING, worker.reason), machine)
        if self._held.get(worker.id) or worker.last_lease != member.last_lease:
            idle = 0 if self._held.get(worker.id) else self._work.now
            return member._replace(idle_since=idle, last_lease=worker.last_lease)
        return member._replace(idle_since=member.idle_since or self._work.now)

    def _draining(self, member: PoolWorkerRow, machine: Machine | None) -> PoolWorkerRow:
        worker = self._workers.get(member.worker)
        lost = worker is None or worker.status == WorkerStatus.OFFLINE
        if self._held.get(member.worker) and machine is not None and not lost:
            return member
        return self._to(member, Lifecycle.TERMINATING, member.reason)

    def _terminating(self, member: PoolWorkerRow, machine: Machine | None) -> PoolWorkerRow:
        # Its jobs are given away when its lease ends, which is before it is forgotten.
        if machine is not None or self._held.get(member.worker):
            return member
        return self._to(member, Lifecycle.GONE, member.reason)._replace(worker=0)

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


def move(
    work: Work, row: PoolRow, member: PoolWorkerRow, state: Lifecycle, why: str | None
) -> PoolWorkerRow:
    """One step of a worker's life, with its event."""
    text = f"Worker {member.token} of pool {row.name} is {state.name.lower()}"
    _say(work, row, f"{text}: {why}" if why else text, token=member.token, state=state.name.lower())
    tries = 0 if state != Lifecycle.REQUESTED else member.tries
    return member._replace(
        state=int(state), changed_at=work.now, reason=why, idle_since=0, tries=tries
    )


def failed(work: Work, row: PoolRow, pool: Pool, why: str) -> PoolRow:
    """A launch came to nothing: the next one waits, the longer the more often that happens."""
    failures = row.failures + 1
    _say(work, row, f"Pool {row.name}: {why}", failures=failures)
    return row._replace(
        failures=failures, next_at=after_failure(pool, failures, work.now), message=why[:500]
    )


async def _charge(work: Work, pool: Pool, members: Iterable[PoolWorkerRow]) -> None:
    """What the time since the last look has cost, by what each worker holds now."""
    load = await work.tx.pools.load(1)
    await work.catalog.know(work.tx, {shape for _, shape, _ in load.leases})
    doing: dict[int, list[tuple[str, str]]] = {}
    for worker, number, _ in load.leases:
        shape = work.catalog.shapes[number]
        doing.setdefault(worker, []).append((shape.namespace, shape.queue))
    sums: dict[tuple[str, str], int] = {}
    for member in members:
        shares = doing.get(member.worker) or [("", "")]
        whole, rest = divmod(max(work.now - member.charged_until, 0), len(shares))
        for n, share in enumerate(shares):
            sums[share] = sums.get(share, 0) + whole + (n < rest)
    month = month_of(work.now)
    await work.tx.pools.charge(
        [
            CostRow(pool.name, month, namespace, queue, ms, cost_micros(pool, ms))
            for (namespace, queue), ms in sorted(sums.items())
            if ms
        ]
    )


async def decide(work: Work, expected: Mapping[int, int], tokens: Sequence[str]) -> list[Verdict]:
    """Ask for the workers that are missing, and send away those that are not needed."""
    for row in sorted(await work.tx.pools.all()):
        await work.tx.pools.lock(row.id)
    seen = await look(work, expected)
    verdicts = size(seen.fleet)
    left = list(tokens)
    rows = {known.pool.name: known.row for known in seen.pools}
    for verdict in verdicts:
        count = min(verdict.start, len(left))
        if count:
            names, left = [f"{verdict.pool}-{one}" for one in left[:count]], left[count:]
            known = next(k for k in seen.pools if k.pool.name == verdict.pool)
            await _request(work, rows[verdict.pool], known.pool, names)
    await _send_away(work, seen)
    await _end_pools(work, seen)
    return verdicts


async def _request(work: Work, row: PoolRow, pool: Pool, tokens: Sequence[str]) -> None:
    """Write down who is to be: the worker with what it will be known by, and the intent."""
    static = _encode(pool.template()).decode()
    fresh: list[PoolWorkerRow] = []
    for token in tokens:
        worker = Worker(
            0, token, 0, 0, int(WorkerStatus.OFFLINE), work.now, 0, pool.slots, static, "{}",
            None, "requested by its pool", work.now,
        )  # fmt: skip
        number = await work.tx.workers.insert(worker)
        work.say(
            EventKind.WORKER, f"Worker {token} is asked for by pool {pool.name}", worker=number,
            actor=ACTOR, data={"name": token, "status": "offline", "static": pool.template()},
        )  # fmt: skip
        row_of = PoolWorkerRow(
            0, row.id, int(Lifecycle.REQUESTED), number, 0, work.now, work.now, 0, work.now, 0,
            int(pool.spot), token, None, None,
        )  # fmt: skip
        fresh.append(row_of)
    await work.tx.pools.add_workers(fresh)
    await work.tx.pools.update(row._replace(started_at=work.now, updated_at=work.now))
    _say(work, row, f"Pool {pool.name} asks for {len(fresh)} workers", tokens=list(tokens))


async def _send_away(work: Work, seen: Seen) -> None:
    """Drain those that should leave; one that has just got a job stays, unless all go."""
    for known, now in zip(seen.pools, seen.fleet.pools, strict=True):
        going = leavers(now, seen.members_of(known), work.now)
        for member in known.members:
            if member.id not in going:
                continue
            worker = (await work.tx.workers.lock([member.worker])).get(member.worker)
            held = await work.tx.leases.count([member.worker])
            idles = worker is not None and worker.last_lease == member.last_lease and not held
            if worker is None or (member.idle_since and not idles):
                continue
            why = going[member.id]
            await set_status(work, member.worker, WorkerStatus.DRAINING, why, ACTOR)
            draining = move(work, known.row, member, Lifecycle.DRAINING, why)
            await work.tx.pools.update_workers([draining])


async def _end_pools(work: Work, seen: Seen) -> None:
    """A deleted pool goes with its last worker; what was asked for in vain is forgotten."""
    for known in seen.pools:
        if known.row.state == PoolState.DELETING and not known.members:
            await work.tx.pools.remove(known.row.id)
            _say(work, known.row, f"Pool {known.row.name} is gone")
    await work.tx.pools.trim_gone(work.now - GONE_KEPT_MS, work.config.chunk_rows)


async def note_launch(work: Work, member: PoolWorkerRow, machine: Machine) -> None:
    """The provider has started a machine."""
    await _note(work, member, Lifecycle.STARTING, None, machine.id)


async def note_refusal(work: Work, member: PoolWorkerRow, why: str) -> None:
    """The provider refused or did not answer: whatever it made all the same is to go."""
    row = await _note(work, member, Lifecycle.TERMINATING, why, None)
    if row is not None:
        await work.tx.pools.update(failed(work, row, decode_pool(row.body), why))


async def _note(
    work: Work, member: PoolWorkerRow, state: Lifecycle, why: str | None, machine: str | None
) -> PoolRow | None:
    """Take a worker from `requested` on; None if it has moved on meanwhile."""
    row = await work.tx.pools.lock(member.pool)
    now = next((m for m in await work.tx.pools.living() if m.id == member.id), None)
    if row is None or now is None or now.state != Lifecycle.REQUESTED:
        return None
    moved = move(work, row, now, state, why)
    await work.tx.pools.update_workers([moved._replace(machine=machine or moved.machine)])
    return row


async def note_ended(work: Work, pool_id: int, tokens: Sequence[str]) -> None:
    """Machines of a provider without lists were ended."""
    await work.tx.pools.lock(pool_id)
    living = await work.tx.pools.living()
    ended = [m._replace(machine=None) for m in living if m.pool == pool_id and m.token in tokens]
    await work.tx.pools.update_workers(ended)


async def note_fault(work: Work, pool_id: int, why: str) -> None:
    """A provider could not be asked what there is; nothing is concluded from that."""
    row = await work.tx.pools.lock(pool_id)
    if row is not None and row.message != why[:500]:
        await work.tx.pools.update(row._replace(message=why[:500], updated_at=work.now))
        _say(work, row, f"Pool {row.name}: {why}")


def _say(work: Work, row: PoolRow, reason: str, **data: object) -> None:
    work.say(EventKind.POOL, reason, actor=ACTOR, data={"pool": row.name, **data})


async def waiting_shapes(work: Work) -> list[int]:
    """The shapes of what waits and runs, whose runtimes are to be looked up."""
    load = await work.tx.pools.load(MOST_COUNTED)
    return sorted({shape for shape, _ in load.ready} | {shape for _, shape, _ in load.leases})
