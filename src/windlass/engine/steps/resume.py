"""Ends waits, and continues suspended jobs: each once, by removing its row from `due`."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import Due
from windlass.domain.rows.steps import SignalRow, StepKind, StepRow, StepState
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound, TooManyRequests
from windlass.domain.values.json_schema import find_mismatch
from windlass.engine.jobs.enqueue import make_ready
from windlass.engine.transaction.unit_of_work import Work

SUSPENDED = State.SUSPENDED.code
QUEUED = State.QUEUED.code
TOLD: Final = 200  # waiting jobs that one transaction tells about a signal
LATER_MS: Final = 60_000


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
    facts = (await work.tx.jobs.lock([job])).get(job)
    if facts is None:
        raise NotFound("job", job)
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
