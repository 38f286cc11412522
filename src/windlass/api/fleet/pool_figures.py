"""Shows what a pool had and wanted over time, from the figures that the pools loop writes."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

from windlass.api.fleet.spells import Machine
from windlass.api.lists.slots import MAX_SLOTS, Span, span_of
from windlass.domain.pools.pools import MICROS
from windlass.domain.rows.series import HOUR, PlanFigures, SeriesKind, read_plan, slot_of
from windlass.domain.values.quantities import format_moment
from windlass.ports.store import ReadTx
from windlass.wire.fleet.history import PoolFigures, PoolReason

MAX_REASONS: Final = 100

T = TypeVar("T", int, float)


class PoolPast(NamedTuple):
    """What is kept of a pool, by slot."""

    span: Span
    plans: dict[int, PlanFigures]


async def read_past(
    tx: ReadTx, name: str, begin: int, end: int, detail_ms: int, pools: int
) -> PoolPast:
    """Reads the figures of a pool between two times, as far back as one answer may show."""
    span = span_of(max(begin, end - MAX_SLOTS * HOUR), end, tx.now, detail_ms, pools)
    rows = await tx.series.between([SeriesKind.PLAN], span.step, span.start, span.end)
    return PoolPast(span, {row.at: read_plan(row) for row in rows if row.name == name})


def show_figures(past: PoolPast, machines: Sequence[Machine], known_from: int) -> PoolFigures:
    """Renders the figures, with the machines that came and went since `known_from`."""
    span, plans = past

    def each(value: Callable[[PlanFigures], T | None]) -> list[T | None]:
        return [None if (plan := plans.get(at)) is None else value(plan) for at in span.slots]

    return PoolFigures(
        step=span.step // 1000,
        times=[at // 1000 for at in span.slots],
        machines=each(lambda plan: plan.machines),
        ready=each(lambda plan: plan.ready),
        wanted=each(lambda plan: plan.wanted),
        most=each(lambda plan: plan.most),
        latency_seconds=each(lambda plan: _seconds(plan.latency_ms, unknown=-1)),
        target_seconds=each(lambda plan: _seconds(plan.target_ms)),
        used_seconds=each(lambda plan: _seconds(plan.used_ms)),
        used_money=each(lambda plan: plan.used_micros / MICROS),
        budget_seconds=each(lambda plan: _seconds(plan.budget_ms, unknown=0)),
        started=_counted(span, known_from, (one.requested_at for one in machines)),
        ended=_counted(span, known_from, (one.gone_at for one in machines)),
    )


def show_reasons(past: PoolPast) -> list[PoolReason]:
    """Returns the reasons of the plan, newest first; each from when on it was given."""
    found: list[PoolReason] = []
    for at, plan in sorted(past.plans.items()):
        if not found or found[-1].reason != plan.reason:
            found.append(PoolReason(at=format_moment(at), reason=plan.reason))
    return found[-MAX_REASONS:][::-1]


def _counted(span: Span, known_from: int, times: Iterable[int | None]) -> list[int | None]:
    counts: dict[int, int] = {}
    for at in times:
        if at is not None:
            slot = slot_of(at, span.step)
            counts[slot] = counts.get(slot, 0) + 1
    known = slot_of(known_from, span.step)
    return [counts.get(at, 0) if at >= known else None for at in span.slots]


def _seconds(ms: int, unknown: int | None = None) -> float | None:
    return None if ms == unknown else ms / 1000
