"""Workers: enrolment and incarnations, draining, enabling, removal, and loss."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.states import ASSIGNED
from windlass.domain.matching.matching import ALLOWLIST, DENYLIST
from windlass.domain.matching.suspects import NOBODY, Company
from windlass.domain.matching.workers import (
    LEASED,
    LEAVING,
    STOPPED,
    WorkerStatus,
    asked_from,
    gives_way,
    offline,
    status_after_enrolment,
)
from windlass.domain.pools.pools import decode_pool
from windlass.domain.rows.records import Lease, Worker
from windlass.domain.tasks.worker_lists import BUILT_IN, check_tasks, names_in
from windlass.domain.values.errors import Conflict, NotFound, existing
from windlass.domain.values.ids import WorkerId
from windlass.domain.values.quantities import counted, readable_duration
from windlass.engine.fleet.capability import note_past
from windlass.engine.fleet.enrolment import ANYONE, Enrolment, set_credentials
from windlass.engine.fleet.epochs import first_incarnation
from windlass.engine.jobs.close import Closing, Failure, lock_attempts
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.sync import EnrolReply
from windlass.store.sql.transaction import ReadTx

_encode = msgspec.json.Encoder(order="deterministic").encode

Change = Callable[[Mapping[str, object]], Mapping[str, object]]


# What the log says about workers that enrol and get no jobs.
_STANDING = {WorkerStatus.PENDING_APPROVAL: "pending", WorkerStatus.DRAINING: "draining"}
MAX_PENDING = 200  # workers that wait for approval
MAX_DIGITS = 19  # of an id; a longer number is none


class Enrolled(NamedTuple):
    """The worker's id and the number of its new incarnation."""

    worker: int
    incarnation: int
    status: int = int(WorkerStatus.ONLINE)
    epoch: int = 0

    def reply(self, config: Config, log_limit: int, token: str | None = None) -> EnrolReply:
        """Returns what the worker is told: who it is, and the rules it has to follow."""
        return EnrolReply(
            worker=self.worker,
            incarnation=self.incarnation,
            status=WorkerStatus(self.status).name.lower(),
            token=token,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            lease_ms=config.heartbeat_timeout_ms,
            term_grace_ms=config.term_grace_ms,
            log_limit=log_limit,
            epoch=self.epoch,
            drain_limit_ms=config.drain_limit_ms,
            result_limit=config.result_limit,
        )


async def find_worker(tx: ReadTx, worker: int | str) -> Worker:
    """Returns the worker with this id or name; raises `NotFound`.

    A number is always an id: anybody may enrol a worker named "7", and must not get what an
    operator does with worker 7.
    """
    text = str(worker)
    if not (text.isascii() and text.isdigit()):
        row = await tx.workers.read_name(text)
    elif len(text) < MAX_DIGITS:
        number = WorkerId(int(text))
        row = (await tx.workers.read([number])).get(number)
    else:
        row = None
    if row is None:
        raise NotFound("worker", worker)
    return row


async def enrol(work: Work, enrolment: Enrolment) -> Enrolled:
    """Begins a new incarnation; an older one must have ended or be provably dead."""
    worker = await _begin_incarnation(work, enrolment)
    await set_credentials(work, worker, enrolment)
    return Enrolled(worker.id, worker.incarnation, worker.status, work.catalog.epoch)


async def _begin_incarnation(work: Work, enrolment: Enrolment) -> Worker:
    dynamic = _encode(enrolment.metadata).decode()
    worker = await work.tx.workers.lock_name(enrolment.name)
    if worker is None:
        if not enrolment.approved:
            await _make_room(work, asked_from(enrolment.source))
        status = WorkerStatus.ONLINE if enrolment.approved else WorkerStatus.PENDING_APPROVAL
        first = first_incarnation(work)
        row = Worker(
            WorkerId(0), enrolment.name, first, 0, int(status), work.now, 0, enrolment.slots,
            "{}", dynamic, None, None if enrolment.approved else asked_from(enrolment.source),
            work.now,
        )  # fmt: skip
        worker = row._replace(id=WorkerId(await work.tx.workers.insert(row)))
        if not worker.id:  # A concurrent enrolment of this name was faster, and is now visible.
            return await _begin_incarnation(work, enrolment)
    else:
        if enrolment.holder not in (ANYONE, worker.id):
            raise Conflict(
                "name_taken",
                f"worker {worker.name} has enrolled before: present its token, or a new code",
            )
        await _end_incarnation(work, worker, enrolment)
        await note_past(work, worker, worker._replace(dynamic=dynamic))
        status = status_after_enrolment(worker, enrolment.approved)
        worker = worker._replace(
            incarnation=max(worker.incarnation + 1, first_incarnation(work)),
            seq=0,
            status=int(status),
            reason=None if status is WorkerStatus.ONLINE else worker.reason,
            last_seen=work.now,
            last_lease=0,
            slots=enrolment.slots,
            dynamic=dynamic,
            troubles=None,
        )
        await work.tx.workers.update([worker])
    work.effects.catalog = True
    standing = _STANDING.get(WorkerStatus(worker.status))
    waits: dict[str, Any] = {} if standing is None else {standing: True}
    work.say_of(
        worker, f"Worker {worker.name} enrolled", name=worker.name, status="enrolled",
        slots=worker.slots, metadata=dynamic, **waits,
    )  # fmt: skip
    return worker


async def _make_room(work: Work, reason: str) -> None:
    """Limits how many workers wait for approval, since anyone may ask; raises if none gives way.

    A worker that is removed although it lives asks again, and is listed once there is room.
    """
    status = int(WorkerStatus.PENDING_APPROVAL)
    pending = await work.tx.workers.silent_since(work.now + 1, [status])
    if len(pending) < MAX_PENDING:
        return
    going = gives_way(pending, reason, work.now - work.config.heartbeat_timeout_ms)
    if going is None:
        raise Conflict(
            "too_many_pending",
            f"{len(pending)} workers are waiting for approval, which is the limit: approve or "
            "remove some (`windlass workers`), or enrol with a code (`windlass workers code`)",
            work.config.heartbeat_timeout_ms,
        )
    locked = (await work.tx.workers.lock([going.id])).get(going.id)
    if locked is not None and locked.status == status:  # nobody has approved it meanwhile
        await _remove(work, locked, f"Worker {going.name} made room for other requests", None)


async def _end_incarnation(work: Work, worker: Worker, enrolment: Enrolment) -> None:
    """Ends the old incarnation's leases, or refuses while it may still be alive."""
    left = worker.last_seen + work.config.heartbeat_timeout_ms - work.now
    shown = readable_duration(left)
    if worker.status in LEASED and left > 0 and not enrolment.proven:
        raise Conflict(
            "name_in_use",
            f"worker {worker.name} is alive: choose another name, present the token in its "
            "state directory or a code with takeover, or wait until it was silent for "
            f"{shown}",
            left,
        )
    leases = await work.tx.leases.of_workers([worker.id])
    if not leases:
        return
    lives = worker.status != WorkerStatus.OFFLINE and left > 0
    if lives and not enrolment.proves_dead(worker.incarnation):
        raise Conflict(
            "name_in_use",
            f"worker {worker.name} still holds {counted(len(leases), 'job')}; "
            f"its lease runs out in {shown} unless the old process is proven dead",
            left,
        )
    reasons = {worker.id: f"Worker {worker.name} was restarted"}
    await end_leases(work, leases, reasons, restarted=True)
    started = sum(lease.state != ASSIGNED for lease in leases)
    if started:
        work.effects.count("orphans", started)


async def leave(work: Work, worker_id: int, incarnation: int) -> bool:
    """Marks a worker offline whose process says that it is exiting, without blame.

    A status set by an operator stays: a drained worker is still drained when it comes back. If it
    still holds jobs, only its silence decides.
    """
    worker = (await work.tx.workers.lock([worker_id])).get(worker_id)
    if worker is None or worker.incarnation != incarnation or worker.status not in LEASED:
        return False
    if await work.tx.leases.of_workers([worker_id]):
        return False
    await work.tx.workers.update([offline(worker, STOPPED)])
    work.say_of(worker, "has stopped", name=worker.name, status="offline")
    return True


async def end_leases(
    work: Work, leases: Sequence[Lease], reasons: Mapping[WorkerId, str], restarted: bool = False
) -> int:
    """Ends attempts whose worker is gone, with the reason given for each worker.

    The caller has locked the workers that still exist. Leases that changed since they were read are
    left alone. If the agent was `restarted`, unstarted attempts are only handed back.
    """
    jobs = sorted(lease.job for lease in leases)
    facts, present = await lock_attempts(work, jobs)
    closing = Closing(work)
    await closing.learn(jobs)
    ended = 0
    company = await _company(work, leases, restarted)
    for lease in sorted(leases):
        now_leased = present.get(lease.job)
        if now_leased is None or now_leased.lease != lease.lease:
            continue
        ended += 1
        if restarted and now_leased.state == ASSIGNED:
            closing.hand_back(facts[lease.job], now_leased, None)
        else:
            beside = company[lease.worker, lease.incarnation]
            why = reasons[lease.worker]
            lost = Failure(FailureClass.WORKER_LOST, why, company=beside, gone=True)
            closing.fail(facts[lease.job], now_leased, lost)
    await closing.write()
    return ended


async def _company(
    work: Work, leases: Sequence[Lease], restarted: bool
) -> dict[tuple[WorkerId, int], Company]:
    """Returns what each lost incarnation held that may have killed it."""
    workers = sorted({lease.worker for lease in leases})
    found = {(lease.worker, lease.incarnation): NOBODY for lease in leases}
    for lease in await work.tx.leases.of_workers(workers):
        if not (restarted and lease.state == ASSIGNED):
            key = lease.worker, lease.incarnation
            found[key] = found.get(key, NOBODY).joined_by(lease.suspicion)
    return found


async def set_status(
    work: Work, worker_id: int, status: WorkerStatus, reason: str | None, actor: str | None
) -> bool:
    """Drains, enables or disables a worker; returns True if that changed anything."""
    worker = existing("worker", worker_id, (await work.tx.workers.lock([worker_id])).get(worker_id))
    # An operator's drain outlasts the process; a drain by a stopping process does not.
    if worker.status == status and worker.reason != LEAVING:
        return False
    changed = worker._replace(status=int(status), reason=reason, troubles=None)
    await work.tx.workers.update([changed])
    work.effects.pokes.append(worker_id)
    state = status.name.lower()
    work.say_of(worker, f"Worker {worker.name} is {state}", actor, status=state)
    return True


async def set_static(work: Work, worker_id: int, change: Change, actor: str | None) -> bool:
    """Sets the metadata of operators, which overrides the agent's.

    `change` computes it from the old value.
    """
    worker = existing("worker", worker_id, (await work.tx.workers.lock([worker_id])).get(worker_id))
    static = change(msgspec.json.decode(worker.static))
    text = _encode(static).decode()
    if text == worker.static:
        return False
    await work.tx.workers.update([worker._replace(static=text)])
    work.effects.pokes.append(worker_id)
    work.say_of(worker, f"Worker {worker.name} has new metadata", actor, static=dict(static))
    return True


async def remove(work: Work, worker_id: int, force: bool, actor: str | None) -> bool:
    """Removes a worker. Refuses while it holds jobs, unless forced: then they become orphans."""
    worker = (await work.tx.workers.lock([worker_id])).get(worker_id)
    if worker is None:
        return False
    leases = await work.tx.leases.of_workers([worker_id])
    if leases and not force:
        held = counted(len(leases), "job")
        raise Conflict("worker_busy", f"worker {worker.name} holds {held}: drain it")
    await _remove(work, worker, f"Worker {worker.name} removed", actor)
    return True


async def _remove(work: Work, worker: Worker, message: str, actor: str | None) -> None:
    await work.tx.workers.remove(worker.id)
    await work.tx.access.remove_of_worker(worker.id)
    work.effects.pokes.append(worker.id)  # its open sync is answered: the worker is gone
    work.say_of(worker, message, actor, status="removed")


async def expect_known_tasks(work: Work, metadata: Mapping[str, object]) -> None:
    """Raises `InvalidInput` if the lists in this metadata name tasks that nobody knows.

    Known tasks come with Windlass, are named by a worker or an operator, or belong to jobs.
    """
    if DENYLIST not in metadata and ALLOWLIST not in metadata:
        return
    await work.catalog.refresh(work.tx)
    known = {*BUILT_IN, *(shape.task for shape in work.catalog.shapes.values())}
    for worker in await work.tx.workers.all():
        known |= _tasks_in(msgspec.json.decode(worker.dynamic))
        known |= _tasks_in(msgspec.json.decode(worker.static))
    for pool in await work.tx.pools.all():
        known |= _tasks_in(decode_pool(pool.body).metadata)
    check_tasks(metadata, known, "metadata")


def _tasks_in(metadata: Mapping[str, object]) -> set[str]:
    return {*names_in(metadata, DENYLIST), *names_in(metadata, ALLOWLIST)}
