"""The attempts of a workflow as bars in lanes, few enough to draw, and the idle gaps."""

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE

MAX_BARS: Final = 2_000
COLUMNS: Final = 1_500  # bars shorter than this part of the visible time are merged
MAX_GAPS: Final = 100
MIN_GAP_MS: Final = 1_000
GAP_SHARE: Final = 0.02  # minimum part of the whole time


class Run(NamedTuple):
    """One attempt that ran: its job, its worker, and how it ended (or its state now)."""

    job: int
    attempt: int
    lane: str  # what lanes are named by: its worker, or the name of its job
    start: int
    end: int
    state: int


class TimelineBar(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt, or `runs` short ones in a row; `job` is then the job of the first."""

    start: int
    end: int
    job: int
    attempt: int
    runs: int
    states: dict[str, int]


class TimelineLane(msgspec.Struct, frozen=True, kw_only=True):
    """Attempts that did not overlap; `row` numbers the lanes of one worker or name."""

    name: str
    row: int
    bars: list[TimelineBar]


class TimelineGap(msgspec.Struct, frozen=True, kw_only=True):
    """A period in which nothing ran."""

    start: int
    end: int


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """When attempts ran. Times are milliseconds since 1970.

    `lanes` begin with number `first` of `lanes_total`. No attempt ran in a gap, so it can be drawn
    short.
    """

    start: int
    end: int
    shown_from: int
    shown_until: int
    lanes: list[TimelineLane]
    first: int
    lanes_total: int
    runs: int
    gaps: list[TimelineGap]
    gaps_left_out: int


class Window(NamedTuple):
    """What to show: a range of time (0: all of it), and some of the lanes."""

    start: int = 0
    end: int = 0
    first: int = 0
    most: int = 100


def lay_out(runs: Iterable[Run], window: Window) -> Timeline:
    """Returns the lanes of a window of time."""
    ordered = sorted(runs, key=attrgetter("start"))
    start = ordered[0].start if ordered else 0
    end = max((run.end for run in ordered), default=0)
    shown_from, shown_until = window.start or start, window.end or end
    gaps = idle_gaps(ordered)
    kept = sorted(sorted(gaps, key=lambda gap: gap[0] - gap[1])[:MAX_GAPS])
    lanes = _lanes(ordered)
    some = lanes[window.first : window.first + window.most]
    bars = _few_bars([rows for _, _, rows in some], shown_from, shown_until)
    return Timeline(
        start=start,
        end=end,
        shown_from=shown_from,
        shown_until=shown_until,
        lanes=[
            TimelineLane(name=name, row=row, bars=own)
            for (name, row, _), own in zip(some, bars, strict=True)
        ],
        first=window.first,
        lanes_total=len(lanes),
        runs=len(ordered),
        gaps=[TimelineGap(start=start, end=end) for start, end in kept],
        gaps_left_out=len(gaps) - len(kept),
    )


def idle_gaps(ordered: Sequence[Run]) -> list[tuple[int, int]]:
    """Returns the long periods without any attempt, between the first and the last."""
    if not ordered:
        return []
    end = max(run.end for run in ordered)
    shortest = max(MIN_GAP_MS, (end - ordered[0].start) * GAP_SHARE)
    gaps: list[tuple[int, int]] = []
    busy_until = ordered[0].end
    for run in ordered:
        if run.start - busy_until > shortest:
            gaps.append((busy_until, run.start))
        busy_until = max(busy_until, run.end)
    return gaps


def _lanes(ordered: Sequence[Run]) -> list[tuple[str, int, list[Run]]]:
    """Puts runs into rows without overlap, as few as possible for each name."""
    busy: dict[str, list[tuple[int, int]]] = {}
    rows: dict[str, list[list[Run]]] = {}
    for run in ordered:
        ends, own = busy.setdefault(run.lane, []), rows.setdefault(run.lane, [])
        if ends and ends[0][0] <= run.start:
            _, row = heappop(ends)
        else:
            row = len(own)
            own.append([])
        own[row].append(run)
        heappush(ends, (run.end, row))
    return [(name, row, rows[name][row]) for name in sorted(rows) for row in range(len(rows[name]))]


def _few_bars(lanes: Sequence[Sequence[Run]], start: int, end: int) -> list[list[TimelineBar]]:
    finest = max(1, (end - start) // COLUMNS)
    while True:
        found = [_join(lane, start, end, finest) for lane in lanes]
        if sum(map(len, found)) <= max(MAX_BARS, len(lanes)):
            return found
        finest *= 2


def _join(lane: Sequence[Run], start: int, end: int, finest: int) -> list[TimelineBar]:
    """Returns the bars of a lane in a window; bars that are too close together are merged."""
    bars: list[TimelineBar] = []
    states: Counter[str] = Counter()
    for run in lane:
        if run.end < start or run.start > end:
            continue
        last = bars[-1] if bars else None
        if last is not None and run.start - last.end < finest and (
            run.end - run.start < finest or last.end - last.start < finest
        ):  # fmt: skip
            states[str(STATE_BY_CODE[run.state])] += 1
            bars[-1] = msgspec.structs.replace(
                last, end=max(last.end, run.end), runs=last.runs + 1, states=dict(states)
            )
            continue
        states = Counter([str(STATE_BY_CODE[run.state])])
        bars.append(
            TimelineBar(start=run.start, end=run.end, job=run.job, attempt=run.attempt, runs=1,
                        states=dict(states))
        )  # fmt: skip
    return bars
