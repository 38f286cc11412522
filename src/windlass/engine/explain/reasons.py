"""What a job waits for, cause by cause, each with the step that would end the wait.

Dependencies are followed until a job has another reason: the root cause.
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from windlass.domain.access.rights import Action
from windlass.domain.explain.explanation import LimitEntry, Request, Step, Waiting
from windlass.domain.explain.forecast import Line
from windlass.domain.explain.reasons import Group
from windlass.domain.job.dependency_graph import ids_in
from windlass.domain.job.job import decode_spec
from windlass.domain.lifecycle.states import QUEUED
from windlass.domain.matching.shapes import Shape, in_queue, opens_at, read_starts, room_in
from windlass.domain.rows.records import JobFacts, JobRecord, QueueRow
from windlass.domain.rows.statistics import Summary
from windlass.domain.rows.steps import StepKind, StepRow, StepState
from windlass.domain.values.errors import NotFound, existing
from windlass.domain.values.quantities import (
    counted,
    format_moment,
    readable_duration,
    shown_moment,
)
from windlass.engine.fleet.epochs import HOLD
from windlass.engine.jobs.dependents import newest_of
from windlass.engine.transaction.catalog import Catalog
from windlass.store.sql.places import Probe
from windlass.store.sql.transaction import ReadTx

HOLDERS: Final = 5  # jobs named as holding a limit
DEPTH: Final = 50  # maximum jobs followed in a row


Sees = Callable[[str], bool]  # which namespaces the caller may see


class Expected(NamedTuple):
    """The jobs ahead of a job, and the usual run time of its kind."""

    line: Line
    own: Summary | None


class Reasons(NamedTuple):
    """What a job waits for, and what would end the wait."""

    waiting: tuple[Waiting, ...] = ()
    steps: tuple[Step, ...] = ()
    limits: tuple[LimitEntry, ...] = ()
    groups: tuple[Group, ...] = ()
    expected: Expected | None = None


async def visible_job(
    tx: ReadTx, catalog: Catalog, job: int, sees: Sees
) -> tuple[JobRecord, Shape]:
    """Returns a job with its shape; raises `NotFound` if the caller may not see it."""
    view = existing("job", job, await tx.views.job(job))
    shape = (await catalog.know(tx, [view.facts.shape]))[view.facts.shape]
    if not sees(shape.namespace):
        raise NotFound("job", job)
    return view, shape


def asked_of(shape: Shape, queue: QueueRow | None) -> tuple[Shape, int]:
    """Returns what jobs of a shape ask of workers in this queue, and how many one may hold."""
    if queue is None:
        return shape, 0
    return in_queue(shape, queue.isolation), queue.max_per_worker


def together(parts: Sequence[Reasons]) -> Reasons:
    """Joins several reasons; a step that two of them need appears once."""
    steps = {step.text: step for part in parts for step in part.steps}
    return Reasons(
        tuple(one for part in parts for one in part.waiting),
        tuple(steps.values()),
        tuple(one for part in parts for one in part.limits),
        tuple(one for part in parts for one in part.groups),
        next((part.expected for part in parts if part.expected is not None), None),
    )


def operator_asked(job: int, namespace: str) -> Reasons:
    """Explains a job that waits for an operator."""
    request = Request(
        method="POST", path=f"/api/v1/jobs/{job}/unblock", body={}, needs=Action.UNBLOCK_JOBS,
        namespace=namespace,
    )  # fmt: skip
    step = Step(
        action="unblock", text=f"accept job {job}", job=job, command=f"windlass unblock {job}",
        request=request,
    )  # fmt: skip
    return Reasons((Waiting(kind="operator", text="an operator to accept it", job=job),), (step,))


def free_slot(holder: int) -> Step:
    """Returns the step that frees a slot: end the job that holds it."""
    return Step(
        action="free_slot", text=f"wait for job {holder} to end, or cancel it", job=holder,
        command=f"windlass cancel {holder}",
    )  # fmt: skip


async def after_restore(tx: ReadTx) -> Reasons:
    """Returns why no job at all is assigned now; empty if jobs are."""
    hold_until = (await tx.catalog.meta()).get(HOLD, 0)
    left = hold_until - tx.now
    if left <= 0:
        return Reasons()
    until = format_moment(hold_until)
    text = (
        "the grace period of the new epoch after a restore or a lossy failover, in which workers "
        f"end their old jobs: {readable_duration(left)} left, until {until}"
    )
    step = Step(action="wait", text=f"wait until {until}", until=until)
    return Reasons((Waiting(kind="restored", text=text, until=until),), (step,))


async def what_it_waits_for(tx: ReadTx, job: int, attempt: int) -> Reasons:
    """Returns the waits that the job's last attempt ended with."""
    steps = (await tx.steps.of_jobs([job])).get(job, ())
    pending = [s for s in steps if s.state == StepState.PENDING and s.attempt == attempt]
    return Reasons(
        tuple(_waiting(step) for step in pending), tuple(_helps(step) for step in pending)
    )


def _waiting(step: StepRow) -> Waiting:
    since = f"since {format_moment(step.asked_at)}"
    until = shown_moment(step.until)
    limit = "" if until is None else f", at most until {until}"
    if step.kind == StepKind.SLEEP:
        return Waiting(kind="sleep", text=f"the end of its sleep at {until}", until=until)
    if step.kind == StepKind.SIGNAL:
        text = f"signal {step.name} {since}{limit}"
        return Waiting(kind="signal", text=text, until=until)
    if step.kind == StepKind.JOBS:
        text = f"the end of {_jobs(step)} {since}{limit}"
        return Waiting(kind="jobs", text=text, until=until)
    text = f"an answer to {_question(step)!r} {since}{limit}"
    return Waiting(kind="question", text=text, until=until)


def _helps(step: StepRow) -> Step:
    if step.kind == StepKind.SLEEP and step.until is not None:
        until = format_moment(step.until)
        return Step(action="wait", text=f"wait until {until}", until=until)
    if step.kind == StepKind.SIGNAL:
        command = f"windlass send {step.name}"
        return Step(action="send_signal", text=f"send signal {step.name}", command=command)
    if step.kind == StepKind.JOBS:
        return Step(action="wait", text=f"wait for {_jobs(step)}", until=None)
    command = f"windlass answer {step.job}"
    return Step(action="answer", text=f"answer its question {_question(step)!r}", command=command)


def _jobs(step: StepRow) -> str:
    first, *others = step.jobs
    return f"job {first}" + (f" and {counted(len(others), 'other')}" if others else "")


def _question(step: StepRow) -> str:
    return str(msgspec.json.decode(step.body or b"{}").get("question", ""))


async def limited(tx: ReadTx, view: JobRecord, shape: Shape, queue: QueueRow | None) -> Reasons:
    """Returns all limits of this job, and as reasons those that hold it back."""
    return together(
        [await _by_key(tx, view), await _by_queue(tx, queue), await _by_rate(tx, shape)]
    )


async def limits_of_shape(tx: ReadTx, shape: Shape, queue: QueueRow | None) -> list[LimitEntry]:
    """Returns the limits that apply to every job of this shape."""
    return [*(await _by_queue(tx, queue)).limits, *(await _by_rate(tx, shape)).limits]


async def _by_key(tx: ReadTx, view: JobRecord) -> Reasons:
    """Explains the limit of its concurrency key."""
    facts = view.facts
    row = (await tx.limits.read([facts.limit])).get(facts.limit) if facts.limit else None
    if row is None:
        return Reasons()
    holders = tuple(await tx.views.holders(row.id, HOLDERS))
    binding = row.leased >= row.max or await _is_parked(tx, view)
    entry = LimitEntry(
        kind="key", name=row.key, max=row.max, used=row.leased, binding=binding, holders=holders
    )
    if not binding:
        return Reasons(limits=(entry,))
    waiting = Waiting(kind="limit", text=entry.text)
    return Reasons((waiting,), tuple(map(free_slot, holders[:1])), (entry,))


async def _is_parked(tx: ReadTx, view: JobRecord) -> bool:
    """Returns True if earlier jobs of the same key take all slots."""
    facts = view.facts
    if view.state != QUEUED or view.not_before:
        return False
    found = await tx.places.ready([Probe(facts.shape, facts.rank, facts.id, 1)])
    return [ticket.job for ticket in found] != [facts.id]


async def _by_queue(tx: ReadTx, queue: QueueRow | None) -> Reasons:
    """Explains how many jobs of its queue may run at once."""
    if queue is None or not queue.max_running or queue.limit is None:
        return Reasons()
    row = (await tx.limits.read([queue.limit])).get(queue.limit)
    if row is None:
        return Reasons()
    entry = LimitEntry(
        kind="queue", name=queue.name, max=row.max, used=row.leased,
        binding=row.leased >= row.max,
    )  # fmt: skip
    if not entry.binding:
        return Reasons(limits=(entry,))
    most = row.leased + 1
    step = Step(
        action="raise_queue_limit",
        text=f"wait for a job of queue {queue.name} to end, or let {most} run at once",
        queue=queue.name, max=most,
        command=f"windlass queues limit {queue.name} --max-running {most}",
        request=Request(
            method="POST", path=f"/api/v1/queues/{quote(queue.name, safe='')}/limits",
            body={"max_running": most}, needs=Action.MANAGE_QUEUES,
        ),
    )  # fmt: skip
    return Reasons((Waiting(kind="queue_limit", text=entry.text),), (step,), (entry,))


async def _by_rate(tx: ReadTx, shape: Shape) -> Reasons:
    """Explains how many jobs with its rate's key may start in a period."""
    rate = shape.rate
    if rate is None:
        return Reasons()
    row = await tx.views.rate(shape.namespace, rate.key)
    starts = [] if row is None else read_starts(row.starts)
    room = room_in(rate, starts, tx.now)
    entry = LimitEntry(
        kind="rate", name=f"{rate.key}, {rate.max} in {readable_duration(rate.per_ms)}",
        max=rate.max, used=rate.max - room, binding=room == 0,
    )  # fmt: skip
    if room:
        return Reasons(limits=(entry,))
    until = format_moment(opens_at(rate, starts))
    left = readable_duration(opens_at(rate, starts) - tx.now)
    text = f"the rate {entry.name}: the next job may start in {left}"
    step = Step(action="wait", text=f"wait until {until}", until=until)
    return Reasons((Waiting(kind="rate", text=text, until=until),), (step,), (entry,))


class Blocked(NamedTuple):
    """A blocked job: the unfinished jobs it waits for, and whether it waits for an operator too."""

    needs: tuple[JobFacts, ...]
    manual: bool


async def what_blocks(tx: ReadTx, job: int) -> Blocked:
    """Returns what this job, which is in `waits`, waits for."""
    wait = (await tx.places.waits([job])).get(job)
    body = (await tx.jobs.specs([job])).get(job)
    if body is None:
        return Blocked((), False)
    spec = decode_spec(body)
    named = ids_in(spec)
    newest = await newest_of(tx, named)
    needs = {fact.id: fact for fact in newest.values() if fact.is_open}
    manual = wait is not None and wait.needs_operator
    return Blocked(tuple(needs[job] for job in sorted(needs)), manual)


async def way_to_root(tx: ReadTx, job: int) -> list[int]:
    """Returns the path from this open job to the root cause: the first not blocked by another."""
    way = [job]
    while len(way) < DEPTH:
        if not await _blocked_among(tx, way[-1:]):
            return way
        needs = [fact.id for fact in (await what_blocks(tx, way[-1])).needs]
        if not needs:
            return way
        blocked = await _blocked_among(tx, needs)
        free = [need for need in needs if need not in blocked]
        way.append(free[0] if free else needs[0])
    return way


async def _blocked_among(tx: ReadTx, jobs: Sequence[int]) -> set[int]:
    """Returns the open jobs among these that are blocked and not running."""
    waits = await tx.places.waits(jobs)
    return {job for job, wait in waits.items() if not wait.is_running}
