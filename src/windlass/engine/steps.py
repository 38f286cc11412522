"""Durable steps: stores what functions have done, and continues jobs whose waits are over.

What a running attempt stores and waits for is fenced by its lease. A job is suspended by its
worker's report (`engine/attempts/reports.py`), not here; it continues once, when its row is removed
from `due`. In a wait for jobs, retries are followed: the newest successor of a job counts. A commit
that ends such a job starts `end_joins` for its waiters; the scheduling loop finds what was missed.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.states import QUEUED, SUSPENDED, State
from windlass.domain.rows.records import Due, Lease
from windlass.domain.rows.steps import SignalRow, StepKind, StepRow, StepState
from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    TooManyRequests,
    existing,
)
from windlass.domain.values.json_schema import find_mismatch
from windlass.engine.attempts.writes import Apply, lease_lost
from windlass.engine.fleet.epochs import first_incarnation
from windlass.engine.jobs.dependents import newest_of
from windlass.engine.jobs.places import make_ready
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.gateway import Holder
from windlass.store.sql.transaction import ReadTx

STOPPED = (State.CANCELING.code, State.TIMED_OUT.code)
TOLD: Final = 200  # waiting jobs that one transaction tells about a signal
LATER_MS: Final = 60_000
_encode = msgspec.json.Encoder().encode


class WaitSpec(NamedTuple):
    """What a function waits for: a time, a signal by `name`, an answer to `body`, or its jobs."""

    key: str
    kind: StepKind
    wait_ms: int | None = None  # None: however long it takes
    name: str | None = None
    body: bytes | None = None


def find_step(key: str, kind: StepKind) -> Apply:
    """Returns a read of a stored step; raises if the attempt may not continue."""

    async def apply(work: Work, holder: Holder, lease: Lease | None) -> StepRow | None:
        check_lease(work, holder, lease)
        return _same(await work.tx.steps.find(holder.job, key), kind, None)

    return apply


def store_step(key: str, value: bytes) -> Apply:
    """Returns an update that stores the result of a step; the first one stays."""

    async def apply(work: Work, holder: Holder, lease: Lease | None) -> StepRow:
        check_lease(work, holder, lease)
        known = _same(await work.tx.steps.find(holder.job, key), StepKind.CALL, None)
        if known is not None:
            return known
        await _check_count(work, holder.job)
        row = StepRow(
            holder.job, key, int(StepKind.CALL), int(StepState.DONE), holder.attempt, work.now,
            None, work.now, value=value,
        )  # fmt: skip
        await work.tx.steps.put(row)
        return row

    return apply


def begin_wait(wait: WaitSpec) -> Apply:
    """Returns an update that begins a wait, or reports how an earlier one ended."""

    async def apply(work: Work, holder: Holder, lease: Lease | None) -> StepRow:
        check_lease(work, holder, lease)
        steps, job = work.tx.steps, holder.job
        facts = (await work.tx.jobs.read([job]))[job]
        await work.catalog.know(work.tx, [facts.shape])
        namespace = work.catalog.shapes[facts.shape].namespace
        if wait.name is not None:
            await steps.lock_name(namespace, wait.name)
        row = _same(await steps.lock_step(job, wait.key), wait.kind, wait.name)
        if row is None:
            await _check_count(work, job)
            row = _new(work, holder, wait, namespace)
            if wait.kind is StepKind.JOBS:
                await check_children(work.tx, row)
        elif row.state != StepState.PENDING:
            return row
        row = await _look(work, row, facts.created_at)
        row = row._replace(attempt=holder.attempt)
        await steps.put(row)
        return row

    return apply


def check_lease(work: Work, holder: Holder, lease: Lease | None) -> None:
    """Raises unless the holder runs the attempt, in this epoch, and may continue."""
    if lease is None or holder.incarnation < first_incarnation(work):
        raise lease_lost(holder)
    if lease.state in STOPPED:
        raise Conflict("lease_lost", f"job {holder.job} was told to stop: it stores nothing more")


def _new(work: Work, holder: Holder, wait: WaitSpec, namespace: str) -> StepRow:
    until = None if wait.wait_ms is None else work.now + wait.wait_ms
    return StepRow(
        holder.job, wait.key, int(wait.kind), int(StepState.PENDING), holder.attempt, work.now,
        until, None, namespace, wait.name, body=wait.body,
    )  # fmt: skip


async def _look(work: Work, row: StepRow, created_at: int) -> StepRow:
    """Ends a pending step whose time is up, or whose signal has come."""
    if row.name is not None:
        row = await _take_signal(work, row, row.name, created_at)
    if row.kind == StepKind.JOBS:
        row = await look_at_children(work.tx, row)
    if row.state != StepState.PENDING or work.now < row.due_at:
        return row
    slept = row.kind == StepKind.SLEEP
    state = StepState.DONE if slept else StepState.TIMED_OUT
    return row._replace(state=int(state), ended_at=row.due_at, value=b"null" if slept else None)


async def _take_signal(work: Work, row: StepRow, name: str, created_at: int) -> StepRow:
    """Ends the step with the oldest signal new to the job; records which ones it passed over."""
    steps, seen = work.tx.steps, row.signal
    if seen is None:
        earlier = (await steps.of_jobs([row.job])).get(row.job, ())
        seen = max((s.signal for s in earlier if s.name == name and s.signal), default=0)
    found = await steps.next_signal(
        row.namespace, name, after=seen, since=created_at, until=row.due_at
    )
    if found is None:
        return row._replace(signal=await steps.last_signal(row.namespace, name))
    return row._replace(
        state=int(StepState.DONE), ended_at=work.now, signal=found.id, actor=found.actor,
        value=found.payload,
    )  # fmt: skip


def _same(row: StepRow | None, kind: StepKind, name: str | None) -> StepRow | None:
    """Returns the row; raises if its key was used for something else."""
    if row is None or (row.kind == kind and row.name == name):
        return row
    was = StepKind(row.kind).name.lower()
    of = "" if row.name is None else f" for {row.name}"
    raise Conflict(
        "step_changed",
        f"the key {row.key!r} of job {row.job} belongs to another step ({was}{of}): "
        "give each step a key of its own",
    )


async def _check_count(work: Work, job: int) -> None:
    limit = work.config.steps_limit
    if await work.tx.steps.count(job) >= limit:
        raise InvalidInput("steps", f"at most {limit:,} steps of a job (steps_limit)", "one more")


class Sent(NamedTuple):
    """A signal that was sent; `applied` is False if it was sent before. `told` jobs waited for
    it.
    """

    signal: SignalRow
    applied: bool
    told: int = 0


async def send(work: Work, signal: SignalRow) -> Sent:
    """Stores a signal; `deliver` tells the jobs that wait for it, in separate transactions.

    Those lock the jobs first, and nobody may wait for a job's lock while holding the lock of a
    name.
    """
    steps, namespace = work.tx.steps, signal.namespace
    await steps.lock_name(namespace, signal.name)
    known = await steps.signal_of_key(namespace, signal.name, signal.key)
    if known is not None:
        return Sent(known, False)
    limit = work.config.signals_limit
    if await steps.count_signals(namespace, limit) >= limit:
        message = f"namespace {namespace} already keeps {limit:,} signals (signals_limit)"
        raise TooManyRequests(LATER_MS, message)
    signal = signal._replace(at=work.now, is_open=1)
    return Sent(signal._replace(id=await steps.add_signal(signal)), True)


async def deliver(work: Work, signal: SignalRow) -> Sent:
    """Tells some of the jobs that wait for this signal; the last call closes it.

    A wait that begins from now on finds it among the stored ones.
    """
    steps = work.tx.steps
    found = await steps.waiting(signal, TOLD)
    jobs = sorted({row.job for row in found})
    facts = await work.tx.jobs.lock(jobs)
    wanted = {(row.job, row.key) for row in found}
    rows = [row for row in await steps.lock_pending(jobs) if (row.job, row.key) in wanted]
    for row in rows:
        told = row._replace(state=int(StepState.DONE), ended_at=work.now, signal=signal.id)
        await steps.put(told._replace(actor=signal.actor, value=signal.payload))
    await resume(work, rows, f"Signal {signal.name} came", signal.actor)
    if len(found) < TOLD:
        await steps.close_signal(signal.id)
        signal = signal._replace(is_open=0)
    return Sent(signal, True, sum(facts[row.job].is_open for row in rows))


async def deliver_open(work: Work) -> int:
    """Delivers signals whose server stopped in between; returns how many it processed."""
    found = await work.tx.steps.open_signals(1)
    for signal in found:
        await deliver(work, signal)
    return len(found)


async def answer(work: Work, job: int, key: str | None, value: bytes, actor: str | None) -> StepRow:
    """Answers a question of a job; `key` may be omitted if it has asked only one."""
    facts = existing("job", job, (await work.tx.jobs.lock([job])).get(job))
    row = await _question(work, job, key)
    if not facts.is_open:
        raise Conflict("job_ended", f"job {job} has ended and takes no answers")
    if row.state == StepState.DONE:
        by = f" by {row.actor}" if row.actor else ""
        raise Conflict("answered", f"question {row.key!r} of job {job} was already answered{by}")
    if row.state == StepState.TIMED_OUT or row.due_at < work.now:
        raise Conflict("too_late", f"question {row.key!r} of job {job} is no longer waiting")
    schema = msgspec.json.decode(row.body or b"{}").get("schema")
    mismatch = find_mismatch(schema, msgspec.json.decode(value), "answer")
    if mismatch is not None:
        raise InvalidInput(mismatch.field, mismatch.expected, mismatch.got)
    done = row._replace(state=int(StepState.DONE), ended_at=work.now, actor=actor, value=value)
    await work.tx.steps.put(done)
    await resume(work, [row], "Its question was answered", actor)
    return done


async def _question(work: Work, job: int, key: str | None) -> StepRow:
    if key is not None:
        row = await work.tx.steps.lock_step(job, key)
        if row is None or row.kind != StepKind.QUESTION:
            raise NotFound("question", key)
        return row
    pending = await work.tx.steps.lock_pending([job])
    asked = [row for row in pending if row.kind == StepKind.QUESTION]
    if len(asked) > 1:
        keys = ", ".join(repr(row.key) for row in asked)
        raise InvalidInput("key", f"one of the questions of job {job} ({keys})", "nothing")
    if not asked:
        raise Conflict("no_question", f"job {job} has no open question")
    return asked[0]


async def resume(work: Work, ended: Sequence[StepRow], reason: str, actor: str | None) -> int:
    """Queues the jobs that were suspended in the attempts of these steps; returns how many.

    The caller has locked the jobs: without that, a job that is just being moved could be missed.
    """
    attempts: dict[int, set[int]] = {}
    for row in ended:
        attempts.setdefault(row.job, set()).add(row.attempt)
    if not attempts:
        return 0
    waiting: list[Due] = []
    others: list[Due] = []
    for due in await work.tx.places.take_due(sorted(attempts)):
        suspended = due.state == SUSPENDED and due.ticket.attempt in attempts[due.job]
        (waiting if suspended else others).append(due)
    if others:  # They back off, or wait for something else.
        await work.tx.places.add_due(others)
    await _queue(work, waiting, reason, actor)
    return len(waiting)


async def _queue(work: Work, waiting: Sequence[Due], reason: str, actor: str | None) -> None:
    await work.catalog.know(work.tx, [due.ticket.shape for due in waiting])
    for due in waiting:
        ticket = due.ticket
        work.move(
            due.job, ticket.shape, ticket.workflow, ticket.attempt, SUSPENDED, QUEUED, reason,
            actor=actor,
        )  # fmt: skip
    await make_ready(work, [due.ticket for due in waiting])


async def check_children(tx: ReadTx, row: StepRow) -> None:
    """Raises `InvalidInput` if a step waits for a job that its own job has not submitted."""
    parent, jobs = row.job, row.jobs
    specs = await tx.jobs.specs(sorted(set(jobs)))
    for job in jobs:
        if job not in specs or decode_spec(specs[job]).parent != parent:
            raise InvalidInput("jobs", f"jobs that job {parent} has submitted", job)


async def look_at_children(tx: ReadTx, row: StepRow) -> StepRow:
    """Returns the step of a wait for jobs; it is done, with their newest ids, if all have ended."""
    jobs = row.jobs
    newest = await newest_of(tx, jobs)
    found = [newest.get(job) for job in jobs]
    if any(facts is not None and facts.is_open for facts in found):
        return row
    ids = [job if facts is None else facts.id for job, facts in zip(jobs, found, strict=True)]
    return row._replace(state=int(StepState.DONE), ended_at=tx.now, value=_encode(ids))


async def end_joins(work: Work, parents: Sequence[int]) -> int:
    """Continues the jobs among these whose children have ended; returns how many."""
    await work.tx.jobs.lock(sorted(parents))
    ended: list[StepRow] = []
    for row in await work.tx.steps.lock_pending(sorted(parents)):
        if row.kind == StepKind.JOBS:
            row = await look_at_children(work.tx, row)
            if row.state == StepState.DONE:
                await work.tx.steps.put(row)
                ended.append(row)
    return await resume(work, ended, "The jobs it waits for have ended", None)


async def overdue_joins(tx: ReadTx, after: int, count: int) -> tuple[list[int], int]:
    """Returns jobs above an id whose children have ended, and the last job it checked.

    The second is 0 if there are no more.
    """
    rows = await tx.steps.joining(after, count)
    parents = [row.job for row in rows if (await look_at_children(tx, row)).state == StepState.DONE]
    return parents, rows[-1].job if len(rows) == count else 0
