"""Figures over time: depths, throughput, waits, workers and failures."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from windlass.domain.access.rights import Action, sees
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.series import (
    HOUR,
    Figures,
    SeriesKind,
    SeriesRow,
    read_counts,
    read_figures,
    slot_of,
)
from windlass.domain.values.quantities import format_moment
from windlass.engine.history.series import Depths, read_counted
from windlass.messages.overview import AttentionList, Overview, QueueFigures
from windlass.operations.attention import Attention
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes
from windlass.operations.parse import moment_since, namespace_of
from windlass.operations.past import PastPoint, Span, depths_at, find_point, span_of
from windlass.operations.queues import RUNNING
from windlass.store.sql.transaction import ReadTx

routes = Routes("/api/v1", "overview")


@routes.get("/overview", needs=Action.READ_JOBS)
async def overview(
    call: Call,
    namespace: str | None = None,
    since: str | None = None,
    until: str | None = None,
    as_of: str | None = None,
) -> Overview:
    """Returns depths, throughput, waits, run times, workers and failures over time.

    `since` and `until` are times, or how long ago; without them it is the last hour. `as_of` shows
    it as it was at a time.
    """
    only = None if namespace is None else namespace_of(namespace, call.who)

    def shown(name: str) -> bool:
        return only == name if only is not None else sees(call.who, name)

    async def read(tx: ReadTx) -> Overview:
        point = None if as_of is None else await find_point(tx, as_of)
        now = tx.now if point is None else point.at
        end = now if until is None else min(now, moment_since(until, now, "until"))
        start = end - HOUR if since is None else moment_since(since, now)
        return await _read(call, tx, start, end, point, shown)

    return await call.services.engine.store.read(read)


@routes.get("/attention", needs=Action.READ_JOBS, costly=True)
async def attention(call: Call, namespace: str | None = None) -> AttentionList:
    """Returns what a person should look at: each with its reason, and what would help."""
    services = call.services
    found = Attention(services.engine, services.pools)
    return await found.show(call.who, namespace)


BUSIEST: Final = 12  # queues that are shown each by itself
FOLLOWING: Final = 20  # events that are looked at for the first that is not counted yet


class _Fleet(NamedTuple):
    """Workers by state, now and over time, and those of pools."""

    now: dict[str, int]
    workers: dict[str, list[int | None]]
    pools: dict[str, list[int | None]]


async def _read(
    call: Call,
    tx: ReadTx,
    start: int,
    end: int,
    point: PastPoint | None,
    shown: Callable[[str], bool],
) -> Overview:
    current, totals = await read_counted(tx)
    depths = (
        await call.services.depths.read(tx, current, totals)
        if point is None
        else await depths_at(tx, call.services.engine.catalog, point)
    )
    detail = call.services.engine.config.series_detail_ms
    span = span_of(start, end, tx.now, detail, len(depths))
    # A slot that ends after the requested moment contains later figures.
    until = span.end if point is None else slot_of(point.at, span.step)
    kinds = (SeriesKind.WORK, SeriesKind.WORKERS, SeriesKind.POOL)
    rows = await tx.series.between(kinds, span.step, span.start, until)
    mine = [row for row in rows if row.kind == SeriesKind.WORK and shown(row.namespace)]
    now = {pair: depth for pair, depth in depths.items() if shown(pair[0])}
    sampled = min(current.until, until) if current is not None else span.start
    table = Table(span, sampled, mine, now)
    fleet = await _fleet(tx, span, rows, point)
    return Overview(
        since=format_moment(start),
        until=format_moment(end),
        step=span.step // 1_000,
        times=[slot // 1_000 for slot in span.slots],
        counted_until=format_moment(min(await _counted_until(tx), end)),
        as_of=None if point is None else format_moment(point.at),
        total=table.show(None, table.queues()),
        queues=[table.show(queue, [queue]) for queue in table.queues()[:BUSIEST]],
        others=table.show(None, rest) if (rest := table.queues()[BUSIEST:]) else None,
        failures=table.failures(),
        workers_now=fleet.now,
        workers=fleet.workers,
        pools=fleet.pools,
    )


async def _fleet(
    tx: ReadTx, span: Span, rows: Sequence[SeriesRow], point: PastPoint | None
) -> _Fleet:
    workers, pools = _sums(rows, SeriesKind.WORKERS), _sums(rows, SeriesKind.POOL)
    if point is None:
        counts = await tx.series.workers_by_status()
        now = {WorkerStatus(code).name.lower(): count for code, count in counts.items()}
    else:
        last = {name: at[max(at)] for name, at in workers.items()}
        now = {name: count for name, count in last.items() if count}
    return _Fleet(
        now,
        {n: [at.get(s) for s in span.slots] for n, at in workers.items()},
        {n: [at.get(s) for s in span.slots] for n, at in pools.items()},
    )


async def _counted_until(tx: ReadTx) -> int:
    """Returns the time before which all is counted: that of the first transition that is not."""
    _, following = await tx.series.moves(await tx.series.position(), tx.now, FOLLOWING)
    return following[0].at if following else tx.now


def _sums(rows: Iterable[SeriesRow], kind: SeriesKind) -> dict[str, dict[int, int]]:
    """Returns the sum of the counts of each name and time."""
    found: dict[str, dict[int, int]] = {}
    for row in rows:
        if row.kind == kind:
            found.setdefault(row.name, {})[row.at] = sum(read_counts(row).values())
    return found


class Table:
    """Figures by queue and slot."""

    def __init__(self, span: Span, sampled: int, rows: Iterable[SeriesRow], now: Depths) -> None:
        self._slots = span.slots
        self._step = span.step
        self._sampled = sampled
        self._now = _by_queue(now)
        self._cells: dict[str, dict[int, Figures]] = {}
        for row in rows:
            cells = self._cells.setdefault(row.name, {})
            found = read_figures(row)
            if row.at in cells:
                cells[row.at].merge(found)
            else:
                cells[row.at] = found
        self._order = self._by_work()

    def queues(self) -> list[str]:
        """Returns the queues, the busiest first."""
        return self._order

    def _by_work(self) -> list[str]:
        names = set(self._cells) | {queue for queue, d in self._now.items() if any(d.values())}

        def work(name: str) -> tuple[int, str]:
            cells = self._cells.get(name, {}).values()
            events = sum(cell.submitted + cell.completed + cell.failed for cell in cells)
            return -events - sum(self._now.get(name, {}).values()), name

        return sorted(names, key=work)

    def failures(self) -> dict[str, list[int]]:
        """Returns failed jobs by class, where there were any."""
        found: dict[str, list[int]] = {}
        for cells in self._cells.values():
            for place, slot in enumerate(self._slots):
                cell = cells.get(slot)
                for code, count in (cell.failures if cell else {}).items():
                    failure = FAILURE_BY_CODE[code]
                    name = "unknown" if failure is None else failure.value
                    found.setdefault(name, [0] * len(self._slots))[place] += count
        return dict(sorted(found.items()))

    def show(self, name: str | None, queues: Sequence[str]) -> QueueFigures:
        """Returns the figures of some queues together."""
        merged = self._merged(queues)
        cells = [merged.get(slot) or Figures() for slot in self._slots]
        known = [slot < self._sampled for slot in self._slots]

        def depth(*states: State) -> list[int | None]:
            return [
                sum(cell.depth.get(state.code, 0) for state in states) if told else None
                for cell, told in zip(cells, known, strict=True)
            ]

        return QueueFigures(
            queue=name,
            now=self._now_of(queues),
            submitted=[cell.submitted for cell in cells],
            started=[cell.started for cell in cells],
            completed=[cell.completed for cell in cells],
            failed=[cell.failed for cell in cells],
            stopped=[cell.stopped for cell in cells],
            rejected=[cell.rejected for cell in cells],
            canceled=[cell.canceled for cell in cells],
            retried=[cell.retried for cell in cells],
            lost=[cell.lost for cell in cells],
            queued=depth(State.QUEUED, State.RETRYING),
            blocked=depth(State.BLOCKED, State.SUSPENDED),
            running=depth(*RUNNING),
            wait_p50=[_seconds(cell.wait.quantile(0.5)) for cell in cells],
            wait_p90=[_seconds(cell.wait.quantile(0.9)) for cell in cells],
            run_p50=[_seconds(cell.run.quantile(0.5)) for cell in cells],
            run_p90=[_seconds(cell.run.quantile(0.9)) for cell in cells],
        )

    def _merged(self, queues: Sequence[str]) -> Mapping[int, Figures]:
        """Returns the figures of these queues together, by slot."""
        if len(queues) == 1:
            return self._cells.get(queues[0], {})
        merged: dict[int, Figures] = {}
        for queue in queues:
            for slot, cell in self._cells.get(queue, {}).items():
                merged.setdefault(slot, Figures()).merge(cell)
        return merged

    def _now_of(self, queues: Sequence[str]) -> dict[str, int]:
        counts: dict[int, int] = {}
        for queue in queues:
            for code, count in self._now.get(queue, {}).items():
                counts[code] = counts.get(code, 0) + count
        return {str(STATE_BY_CODE[code]): counts[code] for code in sorted(counts) if counts[code]}


def _by_queue(depths: Depths) -> dict[str, dict[int, int]]:
    """Returns jobs by state of each queue, over all namespaces."""
    found: dict[str, dict[int, int]] = {}
    for (_, queue), depth in depths.items():
        counts = found.setdefault(queue, {})
        for code, count in depth.items():
            counts[code] = counts.get(code, 0) + count
    return found


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1_000
