"""Explains why a job is waiting: reads one snapshot and puts it into words.

Nothing here decides. Clauses, statuses, limits and exclusions are judged by the functions that
claims use. If a dependency is waiting too, we follow it to the root cause.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final
from urllib.parse import quote

from msgspec.structs import replace

from windlass.domain.access.rights import Action as Permission
from windlass.domain.config import Config
from windlass.domain.explain.explanation import (
    Cause,
    Explanation,
    Matrix,
    Request,
    Step,
    Waiting,
)
from windlass.domain.explain.forecast import Line, estimate_of, forecast
from windlass.domain.explain.reasons import Group, entries, list_names, matrix_of
from windlass.domain.explain.smallest_change import change_of, nearest, steps_for
from windlass.domain.lifecycle.states import BLOCKED, QUEUED, RETRYING, STATE_BY_CODE, SUSPENDED
from windlass.domain.matching.functions import MISSING
from windlass.domain.matching.shapes import NAMESPACES, Shape
from windlass.domain.rows.records import JobFacts, JobRecord, QueueRow
from windlass.domain.values.quantities import counted, format_moment, readable_duration
from windlass.engine.explain.fleet import Fleet
from windlass.engine.explain.forecast import PROFILES, line_before, mix_of
from windlass.engine.explain.notes import (
    deadlines_and_holds,
    pools_for,
    rejection,
    run_time,
    workers_starting,
)
from windlass.engine.explain.reasons import (
    Expected,
    Reasons,
    Sees,
    after_restore,
    asked_of,
    limited,
    operator_asked,
    together,
    visible_job,
    way_to_root,
    what_blocks,
    what_it_waits_for,
)
from windlass.engine.history.statistics import Kinds
from windlass.engine.transaction.catalog import Catalog
from windlass.store.sql.transaction import ReadTx

COUNTED: Final = 10_000  # jobs ahead that we count; then we say "more than"
REASONS: Final = 3  # distinct reasons of workers that are listed
NEEDS: Final = 10  # unfinished dependencies that we follow to their cause


class Explainer:
    """Makes one explanation; reads shared data once."""

    def __init__(self, tx: ReadTx, catalog: Catalog, config: Config, sees: Sees) -> None:
        self._tx = tx
        self._catalog = catalog
        self._config = config
        self._sees = sees
        self._fleet: Fleet | None = None

    async def explain(self, job: int) -> Explanation:
        """Explains why this job is in its state."""
        view, shape = await visible_job(self._tx, self._catalog, job, self._sees)
        state = str(STATE_BY_CODE[view.state])
        if not view.facts.is_open or view.lease is not None:
            notes = await run_time(self._tx, self._catalog, view)
            return Explanation(job=job, state=state, summary=_no_wait(view, state), notes=notes)
        reasons = await self._reasons(view, shape)
        ahead, start = 0, None
        if reasons.expected is not None:  # Only the line before it holds it back.
            line, own = reasons.expected
            ahead, start = line.ahead, forecast(line, own).start
        return Explanation(
            job=job,
            state=state,
            summary=f"{state}: {_sum_up(reasons)}",
            waiting_for=reasons.waiting,
            workers=entries(reasons.groups),
            limits=reasons.limits,
            ahead=min(ahead, COUNTED),
            ahead_more=ahead > COUNTED,
            estimated_start=estimate_of(self._tx.now, start),
            smallest_change=change_of([self._limited(step) for step in reasons.steps]),
            notes=await self._notes(view, shape, reasons.groups),
        )

    def _limited(self, step: Step) -> Step:
        """Hides from a step which other namespaces a worker serves."""
        if all(self._sees(name) for name in (step.metadata or {}).get(NAMESPACES, ())):
            return step
        return replace(step, metadata=None, command=None, request=None)

    async def matrix(self, job: int) -> Matrix:
        """Returns which workers meet which of the job's clauses; no rows unless it waits."""
        view, shape = await visible_job(self._tx, self._catalog, job, self._sees)
        if not view.facts.is_open or view.lease is not None:
            return Matrix(job=job, columns=(), rows=())
        asked, per_worker = asked_of(shape, await self._queue(shape.queue))
        fleet = await self._read_fleet()
        groups = await fleet.groups(asked, view.facts, per_worker)
        return matrix_of(job, asked, groups, fleet.metadata_of)

    async def _notes(
        self, view: JobRecord, shape: Shape, groups: Sequence[Group]
    ) -> tuple[str, ...]:
        fleet = await self._read_fleet()
        notes = await deadlines_and_holds(self._tx, view, fleet)
        if view.state == QUEUED and not any(group.capable for group in groups):
            notes.append(await rejection(self._tx, self._config, view, shape, fleet))
        elif view.state == QUEUED and all(group.away for group in groups if group.capable):
            doing = await pools_for(self._tx, shape)
            notes += [] if doing is None else [doing]
        return tuple(notes)

    async def _shape_of(self, facts: JobFacts) -> Shape:
        await self._catalog.know(self._tx, [facts.shape])
        return self._catalog.shapes[facts.shape]

    async def _reasons(self, view: JobRecord, shape: Shape) -> Reasons:
        """Returns everything that keeps an open job from starting."""
        queue = await self._queue(shape.queue)
        parts = [
            await self._blocked(view),
            await self._waits_inside(view),
            self._not_yet(view),
            await after_restore(self._tx),
            _paused(queue),
            await limited(self._tx, view, shape, queue),
        ]
        free = not any(part.waiting for part in parts)
        return together([*parts, await self._placed(view, *asked_of(shape, queue), free)])

    # Dependencies, and why they wait

    async def _blocked(self, view: JobRecord) -> Reasons:
        if view.state != BLOCKED:
            return Reasons()
        job = view.facts.id
        found = await what_blocks(self._tx, job)
        parts = [await self._need(fact) for fact in found.needs[:NEEDS]]
        if len(found.needs) > NEEDS:
            more = len(found.needs) - NEEDS
            text = counted(more, "more unfinished job")
            parts.append(Reasons(waiting=(Waiting(kind="dependency", text=text),)))
        if found.manual:
            shape = await self._shape_of(view.facts)
            parts.append(operator_asked(job, shape.namespace))
        return together(parts)

    async def _need(self, fact: JobFacts) -> Reasons:
        """Explains one unfinished dependency, with the path to its cause."""
        way = await way_to_root(self._tx, fact.id)
        root = await self._tx.views.job(way[-1])
        if root is None:
            return Reasons()
        because = [f"job {a} waits for job {b}" for a, b in pairwise(way)]
        reasons = Reasons()
        if root.facts.is_open and root.lease is None:
            reasons = await self._root_reasons(root)
            if not reasons.steps and not reasons.waiting:
                because.append(f"job {way[-1]} is {STATE_BY_CODE[root.state]}")
            because += [f"job {way[-1]} waits for {one.text}" for one in reasons.waiting]
        else:
            because.append(f"job {way[-1]} is {_doing(root)}")
        waiting = Waiting(
            kind="dependency", text=f"job {fact.id} to end", job=fact.id, because=tuple(because)
        )
        return Reasons((waiting,), reasons.steps)

    async def _root_reasons(self, root: JobRecord) -> Reasons:
        """Explains a job that no other job blocks, or that is too far away to follow."""
        shape = await self._shape_of(root.facts)
        if root.state == BLOCKED:
            job = root.facts.id
            found = await what_blocks(self._tx, job)
            if not found.manual or found.needs:
                return Reasons()
            return operator_asked(job, shape.namespace)
        return await self._reasons(root, shape)

    # Time, queues, limits

    async def _waits_inside(self, view: JobRecord) -> Reasons:
        if view.state != SUSPENDED:
            return Reasons()
        return await what_it_waits_for(self._tx, view.facts.id, view.facts.attempt)

    def _not_yet(self, view: JobRecord) -> Reasons:
        if view.not_before is None or view.not_before <= self._tx.now or view.state == SUSPENDED:
            return Reasons()
        left = view.not_before - self._tx.now
        until = format_moment(view.not_before)
        backing_off = view.state == RETRYING
        kind: Cause = "backoff" if backing_off else "not_before"
        what = "its backoff after a failure" if backing_off else "its start time"
        text = f"{what}: {readable_duration(left)} left, until {until}"
        step = Step(action="wait", text=f"wait until {until}", until=until)
        failed = view.attempts[-1].message if backing_off and view.attempts else None
        because = () if failed is None else (failed,)
        return Reasons((Waiting(kind=kind, text=text, until=until, because=because),), (step,))

    async def _queue(self, name: str) -> QueueRow | None:
        rows = await self._tx.catalog.queues()
        return next((row for row in rows if row.name == name), None)

    # Workers, and the line before them

    async def _read_fleet(self) -> Fleet:
        if self._fleet is None:
            self._fleet = await Fleet.read(self._tx, self._catalog)
        return self._fleet

    async def _placed(self, view: JobRecord, shape: Shape, per_worker: int, free: bool) -> Reasons:
        """Explains who could run the job and, if nothing else holds it back, which jobs come
        first.
        """
        fleet = await self._read_fleet()
        facts = view.facts
        groups = tuple(await fleet.groups(shape, facts, per_worker))
        able = [group for group in groups if group.capable]
        taking = [group for group in able if not group.away]
        if not taking:
            coming = await self._coming(able)
            if coming is not None:
                return coming._replace(groups=groups)
            best = nearest(groups)
            waiting = Waiting(kind="no_worker", text=_nobody(len(fleet), able, best, groups))
            return Reasons((waiting,), tuple(steps_for(shape, best)), (), groups)
        if not free:
            return Reasons(groups=groups)
        expected = await self._line(view, fleet, taking)
        ahead = expected.line.ahead
        waits = [Waiting(kind="ahead", text=_ahead_text(ahead))] if ahead else []
        if any(not group.obstacles for group in taking):
            return Reasons(tuple(waits), (), (), groups, expected)
        names = list_names([name for group in taking for name in group.names])
        waits.insert(0, Waiting(kind="busy", text=f"a worker with room for it: {names}"))
        steps = steps_for(shape, nearest(taking))
        return Reasons(tuple(waits), tuple(steps), (), groups, expected)

    async def _coming(self, able: Sequence[Group]) -> Reasons | None:
        """Explains that a pool is starting a worker which can run it; None if there is none."""
        starting = await workers_starting(self._tx)
        names = [
            name
            for group in able
            for worker, name in zip(group.ids, group.names, strict=True)
            if worker in starting
        ]
        if not names:
            return None
        text = f"worker {list_names(names)} to start: its pool has asked for it"
        step = Step(action="wait", text=f"wait until worker {names[0]} has started")
        return Reasons((Waiting(kind="no_worker", text=text),), (step,))

    async def _line(self, view: JobRecord, fleet: Fleet, taking: Sequence[Group]) -> Expected:
        """Returns the jobs ahead of it on the workers that could take it."""
        facts = view.facts
        workers = [worker for group in taking for worker in group.ids]
        heads = await self._tx.places.heads()
        await self._catalog.know(self._tx, (head.shape for head in heads))
        profiles = fleet.profiles(workers[:PROFILES])
        parts = await line_before(self._tx, self._catalog, facts, heads, profiles)
        kinds = Kinds(self._tx, self._catalog)
        own = await kinds.of_job(facts.shape, view.spec)
        mix = await mix_of(self._tx, kinds, parts, own, {})
        slots, free = fleet.slots(workers)
        return Expected(Line(slots, free, sum(count for _, count in parts), mix), own)


def _paused(queue: QueueRow | None) -> Reasons:
    if queue is None or not queue.paused:
        return Reasons()
    step = Step(
        action="resume_queue", text=f"resume queue {queue.name}", queue=queue.name,
        command=f"windlass queues resume {queue.name}",
        request=Request(
            method="POST", path=f"/api/v1/queues/{quote(queue.name, safe='')}/resume",
            needs=Permission.MANAGE_QUEUES,
        ),
    )  # fmt: skip
    return Reasons((Waiting(kind="paused", text=f"queue {queue.name}, which is paused"),), (step,))


def _nobody(
    workers: int, able: Sequence[Group], best: Group | None, groups: Sequence[Group]
) -> str:
    if best is None:
        return "a worker: none is known"
    if able:
        names = list_names([name for group in able for name in group.names])
        return f"a worker that takes jobs: those that could run it take none ({names})"
    name, found = best.names[0], best.obstacles[0]
    if found.key == MISSING:
        return f"a worker with {found.needs}: {_tried(groups)}"
    if workers == 1:
        return f"a worker that can run it: {found.about(name)}"
    return f"a worker that can run it: none of {workers:,} can; closest match: {found.about(name)}"


def _tried(groups: Sequence[Group]) -> str:
    """Returns which workers lack a function, and why."""
    told: dict[str, list[str]] = {}
    for group in groups:
        for found in group.obstacles:
            if found.key == MISSING:
                told.setdefault(found.has, []).extend(group.names)
    texts = [
        f"worker{'s' * (len(names) != 1)} {list_names(names)} tried and got {has}"
        for has, names in list(told.items())[:REASONS]
    ]
    return "; ".join([*texts, "a worker tries again when it is restarted"])


def _ahead_text(ahead: int) -> str:
    if ahead > COUNTED:
        return f"more than {COUNTED:,} jobs ahead of it"
    return f"{counted(ahead, 'job')} ahead of it"


def _doing(view: JobRecord) -> str:
    state = str(STATE_BY_CODE[view.state])
    return f"{state} on worker {view.worker}" if view.worker else state


def _no_wait(view: JobRecord, state: str) -> str:
    """Describes a job that has ended or that a worker holds."""
    if view.lease is not None:
        started = view.lease.started_at or view.lease.assigned_at
        return f"{_doing(view)} since {format_moment(started)}"
    ended = "" if view.finished_at is None else f" at {format_moment(view.finished_at)}"
    reason = f": {view.reason}" if view.reason else ""
    return f"{state}{ended}{reason}"


def _sum_up(reasons: Reasons) -> str:
    if not reasons.waiting:
        return "it starts as soon as a free worker asks for it"
    causes = [one for one in reasons.waiting if one.kind == "dependency"]
    texts = [f"waits for {one.text}" for one in reasons.waiting[:3]]
    if len(reasons.waiting) > 3:
        texts.append(counted(len(reasons.waiting) - 3, "more reason"))
    root = causes[0].because[-1:] if causes else ()
    return "; ".join((*texts, *root))
