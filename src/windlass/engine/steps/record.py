"""What the function of a running attempt stores and waits for, fenced by its lease."""

from typing import NamedTuple

from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import Lease
from windlass.domain.rows.steps import StepKind, StepRow, StepState
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.engine.attempts.attempt_files import Apply, lease_lost
from windlass.engine.fleet.epochs import first_incarnation
from windlass.engine.steps.joins import check_children, look_at_children
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.gateway import Holder

STOPPED = (State.CANCELING.code, State.TIMED_OUT.code)


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
