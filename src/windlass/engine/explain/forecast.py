"""Forecasts for displayed jobs, from the line before each and past run times.

A line says how many ready jobs of each shape come first.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from windlass.domain.explain.forecast import Forecast, Line, forecast, mixture, remaining
from windlass.domain.lifecycle.states import BLOCKED
from windlass.domain.matching.workers import may_claim
from windlass.domain.rows.records import JobFacts, JobRecord
from windlass.domain.rows.statistics import Summary
from windlass.domain.rows.steps import FOREVER
from windlass.domain.rows.views import ReadySpan
from windlass.engine.fleet.epochs import HOLD
from windlass.engine.history.statistics import Kinds
from windlass.engine.jobs.priority import inherited_levels
from windlass.engine.transaction.catalog import Catalog, Profile
from windlass.store.sql.places import Head
from windlass.store.sql.transaction import ReadTx

COUNTED: Final = 10_001  # counting more jobs ahead does not improve a forecast
APART: Final = 8  # shapes ahead that are counted separately; the others are counted together
PROFILES: Final = 16  # distinct workers whose other work we check
FIRST: Final = (-(2**62), 0)  # before every rank and job
Parts = list[tuple[int, int]]  # shapes, and how many jobs of each
MAX_JOBS: Final = 100  # jobs of a list that get a forecast
MANY: Final = 500  # workers
LASTS_MS: Final = 2_000
ALIKE_MS: Final = 1_000  # jobs of a list submitted this close together share a line
SAMPLE: Final = 30  # jobs from each end of a shape whose kinds represent all


async def line_before(
    tx: ReadTx,
    catalog: Catalog,
    facts: JobFacts,
    heads: Sequence[Head],
    profiles: Iterable[Profile],
) -> Parts:
    """Returns (shape, number of ready jobs) before a job, as far as its workers take them."""
    return (await lines_before(tx, catalog, [(facts, profiles)], heads))[facts.id]


async def lines_before(
    tx: ReadTx,
    catalog: Catalog,
    jobs: Sequence[tuple[JobFacts, Iterable[Profile]]],
    heads: Sequence[Head],
) -> dict[int, Parts]:
    """Does the same for several jobs; no part of a line is counted twice."""
    shapes = {facts.id: _ahead(catalog, facts, heads, who) for facts, who in jobs}
    places: dict[int, set[tuple[int, int]]] = {}
    for facts, _ in jobs:
        for shape in shapes[facts.id][:APART]:
            places.setdefault(shape, set()).add((facts.rank, facts.id))
    counts = await _counts(tx, places)
    lines: dict[int, Parts] = {}
    for facts, _ in jobs:
        place, before = (facts.rank, facts.id), shapes[facts.id]
        line = [(shape, counts[shape, place]) for shape in before[:APART]]
        if len(before) > APART:
            rest = await tx.views.ready_before(before[APART:], *place, COUNTED)
            line.append((before[APART], rest))
        lines[facts.id] = line
    return lines


async def _counts(
    tx: ReadTx, places: Mapping[int, set[tuple[int, int]]]
) -> dict[tuple[int, tuple[int, int]], int]:
    """Counts the ready jobs of each shape before each of its places."""
    spans = [
        ReadySpan(shape, *start, *end)
        for shape, ends in places.items()
        for start, end in pairwise([FIRST, *sorted(ends)])
    ]
    counts: dict[tuple[int, tuple[int, int]], int] = {}
    found = await tx.views.ready_within(spans, COUNTED) if spans else []
    for span, count in zip(spans, found, strict=True):
        so_far = counts.get((span.shape, (span.since_rank, span.since_job)), 0)
        counts[span.shape, (span.rank, span.job)] = min(so_far + count, COUNTED)
    return counts


def _ahead(
    catalog: Catalog, facts: JobFacts, heads: Iterable[Head], profiles: Iterable[Profile]
) -> list[int]:
    """Returns the shapes with ready jobs before a job that its workers take."""
    distinct = list({profile.digest: profile for profile in profiles}.values())[:PROFILES]
    return [
        head.shape
        for head in heads
        if (head.rank, head.job) < (facts.rank, facts.id)
        and not catalog.paused(head.shape)
        and any(profile.runs(head.shape) for profile in distinct)
    ]


class Outlook(NamedTuple):
    """What we show beside a job: its forecast, and usual times of its kind."""

    now: int = 0
    forecast: Forecast = Forecast()
    known: Summary | None = None
    peak_memory: int | None = None  # estimate for its newest attempt
    inherited: float = 0.0


class ActiveWorker(NamedTuple):
    """A worker that takes jobs."""

    slots: int
    held: int
    profile: Profile


class ActiveWorkers:
    """The workers that take jobs, cached for a moment if there are many.

    Reading thousands of them for every displayed job would take longer than all the rest, and a
    fleet that large does not change much in two seconds.
    """

    def __init__(self) -> None:
        self._read_at = -LASTS_MS
        self._workers: list[ActiveWorker] = []

    async def workers(self, tx: ReadTx, catalog: Catalog) -> list[ActiveWorker]:
        """Returns those that take jobs, now or a moment ago."""
        if not len(self._workers) > MANY or not 0 <= tx.now - self._read_at < LASTS_MS:
            profile = catalog.profile_by
            self._workers = [
                ActiveWorker(slots, held, profile(static, dynamic))
                for _, _, status, slots, held, _, static, dynamic in await tx.views.fleet()
                if may_claim(status)
            ]
            self._read_at = tx.now
        return self._workers


class Forecaster:
    """Makes forecasts in one snapshot; reads shared data once."""

    def __init__(
        self, tx: ReadTx, catalog: Catalog, active: ActiveWorkers | None = None,
        kinds: Kinds | None = None,
    ) -> None:  # fmt: skip
        self._tx = tx
        self._catalog = catalog
        self._active = active or ActiveWorkers()
        self._kinds = kinds or Kinds(tx, catalog)
        self._mixes: dict[int, Summary | None] = {}
        self._lines: dict[tuple[int, int], Line] = {}
        self._held_until = 0  # no job is assigned before this, after a restore

    async def forecasts(self, views: Sequence[JobRecord]) -> dict[int, Forecast]:
        """Forecasts the jobs that run or wait for a worker; of many, only the first few."""
        wanted = [view for view in views if _has_future(view)][:MAX_JOBS]
        if not wanted:
            return {}
        await self._kinds.learn((view.facts.shape, view.spec) for view in wanted)
        waiting = [view for view in wanted if self._is_in_line(view)]
        if waiting:
            await self._stand_in_line(waiting)
        return {view.facts.id: self._of(view) for view in wanted}

    def _is_in_line(self, view: JobRecord) -> bool:
        """Returns False also for jobs that wait for an operator or for somebody's answer."""
        return not (
            view.lease is not None
            or self._catalog.paused(view.facts.shape)
            or (view.not_before is not None and view.not_before >= FOREVER)
        )

    async def _stand_in_line(self, views: Sequence[JobRecord]) -> None:
        """Finds the jobs ahead of these jobs; jobs of about the same rank share one line."""
        tx, catalog = self._tx, self._catalog
        self._held_until = (await tx.catalog.meta()).get(HOLD, 0)
        workers = await self._active.workers(tx, catalog)
        heads = await tx.places.heads()
        await catalog.know(tx, (head.shape for head in heads))
        firsts: dict[tuple[int, int], JobRecord] = {}
        for view in views:
            firsts.setdefault(_alike(view.facts), view)
        able = {
            shape: [one for one in workers if one.profile.runs(shape)]
            for shape in {shape for shape, _ in firsts}
        }
        jobs = [
            (first.facts, [one.profile for one in able[first.facts.shape]])
            for first in firsts.values()
        ]
        parts = await lines_before(tx, catalog, jobs, heads)
        for alike, first in firsts.items():
            before, takers = parts[first.facts.id], able[first.facts.shape]
            own = self._kinds.of(first.facts.shape, first.spec)
            self._lines[alike] = Line(
                slots=sum(one.slots for one in takers),
                free=sum(max(0, one.slots - one.held) for one in takers),
                ahead=sum(count for _, count in before),
                mix=await mix_of(tx, self._kinds, before, own, self._mixes),
            )

    def _of(self, view: JobRecord) -> Forecast:
        facts, now = view.facts, self._tx.now
        own = self._kinds.of(facts.shape, view.spec)
        if view.lease is not None:
            return remaining(own, now - (view.lease.started_at or now))
        line = self._lines.get(_alike(facts)) if self._is_in_line(view) else None
        if line is None:
            return Forecast()
        return forecast(line, own, max(0, max(view.not_before or 0, self._held_until) - now))


def _alike(facts: JobFacts) -> tuple[int, int]:
    return facts.shape, facts.rank // ALIKE_MS


async def outlooks(
    tx: ReadTx, catalog: Catalog, active: ActiveWorkers, views: Sequence[JobRecord]
) -> dict[int, Outlook]:
    """Returns the outlooks of these jobs."""
    facts = [view.facts for view in views]
    await catalog.know(tx, [fact.shape for fact in facts])
    kinds = Kinds(tx, catalog)
    await kinds.learn((view.facts.shape, view.spec) for view in views)
    expected = await Forecaster(tx, catalog, active, kinds).forecasts(views)
    used = await tx.statistics.usage([fact.id for fact in facts])
    return {
        fact.id: Outlook(
            tx.now,
            expected.get(fact.id, Forecast()),
            kinds.of(fact.shape, view.spec),
            used[fact.id].peak_memory if fact.id in used else None,
            inherited_levels(catalog, fact),
        )
        for fact, view in zip(facts, views, strict=True)
    }


async def mix_of(
    tx: ReadTx,
    kinds: Kinds,
    parts: Sequence[tuple[int, int]],
    own: Summary | None,
    known: dict[int, Summary | None],
) -> Summary | None:
    """Returns the mean run time of a line's jobs, from samples of each shape; fills `known`.

    If nothing is ahead, the running jobs are likely of the same kind as the job.
    """
    if not parts:
        return own
    for shape, _ in parts:
        if shape not in known:
            known[shape] = await typical(tx, kinds, shape, SAMPLE)
    return mixture((count, mix) for shape, count in parts if (mix := known[shape]) is not None)


async def typical(tx: ReadTx, kinds: Kinds, shape: int, most: int) -> Summary | None:
    """Returns the mean run time of a shape's ready jobs, from its first and last ones."""
    jobs = [(shape, one.spec) for one in await tx.views.ready_sample(shape, most)]
    await kinds.learn(jobs)
    return mixture((1, found) for job in jobs if (found := kinds.of(*job)) is not None)


def _has_future(view: JobRecord) -> bool:
    """Returns True if a forecast makes sense: not for blocked or ended jobs."""
    return view.facts.is_open and view.state != BLOCKED
