"""The commands about queues: pause, resume, and limit how much of them may run.

A paused queue keeps its jobs queued, and so does one at its limit. A row of `limits` counts the
running jobs of a limited queue, and claims are made under its lock. A lease names the row it counts
in, so its end frees the slot even on a server that does not know the limit.
"""

from collections.abc import Awaitable, Callable

from windlass.domain.job.forms import NONE, TIMEOUT, milliseconds
from windlass.domain.lifecycle.rank import queue_weight
from windlass.domain.matching.isolation import check_mode
from windlass.domain.rows.events import EventKind
from windlass.domain.rows.records import QueueRow
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import check_name
from windlass.engine.transaction.arguments import check_text
from windlass.engine.transaction.group_commit import RunStep
from windlass.engine.transaction.unit_of_work import Work
from windlass.messages.workers import QueueLimits

MAX_LIMIT = 1_000_000  # maximum of any limit
HEAVIEST = 1_000
DEFAULT = "default"  # the timeout of a queue without its own


def check_limits(limits: QueueLimits) -> None:
    """Raises `InvalidInput` for an invalid limit."""
    for name, value in (
        ("max_running", limits.max_running),
        ("max_per_worker", limits.max_per_worker),
    ):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if value is not None and not (whole and 0 <= value <= MAX_LIMIT):
            raise InvalidInput(name, f"an integer from 1 to {MAX_LIMIT}, or 0 for no limit", value)
    check_mode(limits.isolation, "isolation")
    _timeout_ms(limits.timeout, None)


def _timeout_ms(asked: float | str | None, before: int | None) -> int | None:
    """Returns the timeout of a queue (0: none, None: the server's), or raises `InvalidInput`."""
    if asked is None:
        return before
    if isinstance(asked, str) and asked.strip().lower() == DEFAULT:
        return None
    try:
        wanted = TIMEOUT.canonical(asked, "timeout")
    except InvalidInput as error:
        raise InvalidInput("timeout", f"{error.expected}, or {DEFAULT}", asked) from None
    return 0 if wanted == NONE else milliseconds(wanted)


def check_weight(weight: object) -> None:
    """Raises `InvalidInput` for an invalid weight."""
    whole = isinstance(weight, int) and not isinstance(weight, bool)
    if not (whole and isinstance(weight, int) and 1 <= weight <= HEAVIEST):
        raise InvalidInput("weight", f"an integer from 1 to {HEAVIEST}", weight)


class Queues:
    """`engine.queues`: pauses, resumes and limits queues, and sets the shares of namespaces."""

    def __init__(self, *, run: RunStep, refresh: Callable[[], Awaitable[None]]) -> None:
        self._run = run
        self._refresh = refresh

    async def pause(self, queue: str, actor: str | None = None) -> bool:
        """Stops assigning jobs of a queue; returns whether that changed anything."""
        return await self._set_paused(queue, True, actor)

    async def resume(self, queue: str, actor: str | None = None) -> bool:
        """Resumes assigning jobs of a queue; returns whether that changed anything."""
        return await self._set_paused(queue, False, actor)

    async def set_limits(self, queue: str, limits: QueueLimits, actor: str | None = None) -> bool:
        """Sets how many jobs of a queue may run; returns whether that changed anything."""
        check_name("queue", queue)
        check_text("actor", actor)
        check_limits(limits)
        done = await self._run(lambda work: set_limits(work, queue, limits, actor))
        await self._refresh()
        return done

    async def set_namespace_weight(
        self, namespace: str, weight: int, actor: str | None = None
    ) -> bool:
        """Sets a namespace's share of the running jobs, where `fair_share` is on."""
        check_name("namespace", namespace)
        check_text("actor", actor)
        check_weight(weight)
        return await self._run(lambda work: set_namespace_weight(work, namespace, weight, actor))

    async def _set_paused(self, queue: str, paused: bool, actor: str | None) -> bool:
        check_name("queue", queue)
        check_text("actor", actor)
        done = await self._run(lambda work: set_paused(work, queue, paused, actor))
        await self._refresh()
        return done


async def set_paused(work: Work, queue: str, paused: bool, actor: str | None) -> bool:
    """Pauses or resumes a queue; returns True if that changed anything."""
    row = await _row(work, queue)
    if bool(row.paused) == paused:
        return False
    await _put(work, row._replace(paused=int(paused)))
    word = "paused" if paused else "resumed"
    data = {"queue": queue, "paused": paused}
    work.say(EventKind.QUEUE, f"Queue {queue} {word}", actor=actor, data=data)
    return True


async def set_limits(work: Work, queue: str, limits: QueueLimits, actor: str | None) -> bool:
    """Limits how much of a queue may run; running jobs are counted and continue.

    Returns True if that changed anything.
    """
    row = await _row(work, queue)
    changed = row._replace(
        max_running=row.max_running if limits.max_running is None else limits.max_running,
        max_per_worker=(
            row.max_per_worker if limits.max_per_worker is None else limits.max_per_worker
        ),
        preempts=row.preempts if limits.preempts is None else int(limits.preempts),
        isolation=row.isolation if limits.isolation is None else limits.isolation,
        timeout_ms=_timeout_ms(limits.timeout, row.timeout_ms),
    )
    if changed == row:
        return False
    if changed.max_running:
        uncounted = await _uncounted(work, queue)  # lock leases before limits
        name = ("", f"queue:{queue}")
        ids = await work.tx.limits.intern([(*name, changed.max_running)])
        changed = changed._replace(limit=ids[name])
        await _count(work, uncounted, ids[name])
    await _put(work, changed)
    data = {
        "queue": queue, "max_running": changed.max_running,
        "max_per_worker": changed.max_per_worker, "preempts": bool(changed.preempts),
        "limit": changed.limit, "isolation": changed.isolation, "timeout_ms": changed.timeout_ms,
    }  # fmt: skip
    work.say(EventKind.QUEUE, f"Queue {queue} has new limits", actor=actor, data=data)
    return True


async def set_namespace_weight(work: Work, namespace: str, weight: int, actor: str | None) -> bool:
    """Sets the weight of a namespace; returns True if that changed anything."""
    if (await work.tx.placement.namespace_weights()).get(namespace) == weight:
        return False
    await work.tx.placement.set_namespace_weight(namespace, weight)
    data = {"namespace": namespace, "weight": weight}
    work.say(EventKind.QUEUE, f"Namespace {namespace} has weight {weight}", actor=actor, data=data)
    work.effects.catalog = True
    return True


async def adopt_leases(work: Work) -> int:
    """Counts leases made by servers that did not know of a limit yet."""
    adopted = 0
    for queue, row in sorted(work.catalog.queues.items()):
        if row.max_running and row.limit:
            jobs = await _uncounted(work, queue)
            await _count(work, jobs, row.limit)
            adopted += len(jobs)
    return adopted


async def _put(work: Work, row: QueueRow) -> None:
    """Writes a queue; this engine applies the change right after the commit."""
    await work.tx.catalog.put_queue(row)
    work.effects.queues.append(row)
    work.effects.catalog = True


async def _row(work: Work, queue: str) -> QueueRow:
    rows = {row.name: row for row in await work.tx.catalog.queues()}
    return rows.get(queue, QueueRow(queue, queue_weight(queue), 0))


async def _uncounted(work: Work, queue: str) -> list[int]:
    """Returns the jobs, locked, whose leases do not count against their queue's limit."""
    await work.catalog.refresh(work.tx)  # jobs of a shape unknown to this server may run as well
    return await work.tx.placement.unbound(work.catalog.shapes_in(queue))


async def _count(work: Work, jobs: list[int], limit: int) -> None:
    """Counts these leases against the limit of their queue."""
    if jobs:
        await work.tx.limits.lock([limit])
        await work.tx.placement.bind(jobs, limit)
        await work.tx.limits.bump({limit: len(jobs)})
