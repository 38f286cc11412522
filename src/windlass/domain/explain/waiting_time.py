"""Says where a job's time went: each moment since its submission has exactly one cause.

The job's own transitions say which state it was in. Other events say why it was queued. If several
causes applied at once, the first one in `QUEUED_CAUSES` counts.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, get_args

from msgspec import Struct

from windlass.domain.lifecycle.states import TERMINAL_CODES, State

Cause = Literal[
    "dependencies", "operator", "not_before", "backoff", "restored", "paused", "limits",
    "no_worker", "busy", "unknown", "assigned", "running", "stopping", "suspended",
]  # fmt: skip
CAUSES: Final[tuple[Cause, ...]] = get_args(Cause)
WAITS: Final[frozenset[Cause]] = frozenset(CAUSES) - {"running", "stopping"}

# The first of these causes that applies to a queued job counts.
QUEUED_CAUSES: Final[tuple[Cause, ...]] = (
    "not_before", "backoff", "restored", "paused", "limits", "no_worker", "unknown",
)  # fmt: skip

TEXTS: Final[Mapping[Cause, str]] = {
    "dependencies": "waiting for other jobs",
    "operator": "waiting for an operator",
    "not_before": "before its start time",
    "backoff": "backing off after a failure",
    "restored": "a restore or failover lost commits: workers had to end their old jobs first",
    "paused": "its queue was paused",
    "limits": "its concurrency key or queue was at its limit",
    "no_worker": "no worker could run it",
    "busy": "workers that can run it were busy",
    "unknown": "unknown, no longer in the log",
    "assigned": "assigned to a worker, not started",
    "running": "running",
    "stopping": "told to stop",
    "suspended": "waiting inside its function: for a time, a signal or an answer",
}

Interval = tuple[int, int]  # start, and end (exclusive)


class Span(NamedTuple):
    """A period in one state; state 0 means that the log no longer has it."""

    start: int
    end: int
    state: int


class Piece(NamedTuple):
    """A period with one cause."""

    start: int
    end: int
    cause: Cause


class Part(Struct, frozen=True, kw_only=True):
    """How many seconds one cause took."""

    cause: Cause
    text: str
    seconds: float


class Segment(Struct, frozen=True, kw_only=True):
    """A period of a job's life with one cause; `attempt` if a worker held the job then."""

    cause: Cause
    start: str
    end: str
    seconds: float
    attempt: int | None = None


class TimeSpent(Struct, frozen=True, kw_only=True):
    """A job's time by cause; the parts add up to the total. `waited` excludes running time.

    `segments` list the same time in order. If there are too many, `left_out` counts those omitted
    from the middle.
    """

    job: int
    state: str
    since: str
    until: str
    total: float
    waited: float
    parts: tuple[Part, ...]
    segments: tuple[Segment, ...] = ()
    left_out: int = 0
    notes: tuple[str, ...] = ()


def spans_of(moves: Iterable[tuple[int, int]], created_at: int, until: int) -> list[Span]:
    """Returns the periods between transitions (at, to), from creation to `until` or the end."""
    spans: list[Span] = []
    at, state = created_at, 0
    for moved_at, to in moves:
        if moved_at > at:
            spans.append(Span(at, moved_at, state))
        at, state = max(at, moved_at), to
    if until > at and state not in TERMINAL_CODES:
        spans.append(Span(at, until, state))
    return spans


def sums_of(found: Iterable[Piece]) -> dict[Cause, int]:
    """Returns the milliseconds of each cause."""
    sums: dict[Cause, int] = {}
    for start, end, cause in found:
        sums[cause] = sums.get(cause, 0) + end - start
    return sums


def pieces(
    spans: Iterable[Span], held: Mapping[Cause, Sequence[Interval]], needs_end: int | None = None
) -> list[Piece]:
    """Returns the time of all spans by cause, in order.

    `held` says when each cause held queued jobs back. A blocked job waits for its dependencies
    until `needs_end`, when the last of them ended, and after that for an operator.
    """
    found = [piece for span in spans for piece in sorted(_of_span(span, held, needs_end))]
    return [piece for piece in found if piece.end > piece.start]


def _of_span(
    span: Span, held: Mapping[Cause, Sequence[Interval]], needs_end: int | None
) -> Iterable[Piece]:
    if span.state == State.BLOCKED.code:
        until = span.end if needs_end is None else max(span.start, min(span.end, needs_end))
        return (
            Piece(span.start, until, "dependencies"), Piece(until, span.end, "operator")
        )  # fmt: skip
    if span.state == State.QUEUED.code:
        return _of_queued(span, held)
    return (Piece(span.start, span.end, _BY_STATE.get(span.state, "unknown")),)


def _of_queued(span: Span, held: Mapping[Cause, Sequence[Interval]]) -> Iterable[Piece]:
    left: list[Interval] = [(span.start, span.end)]
    for cause in QUEUED_CAUSES:
        rest = without(left, held.get(cause, ()))
        for start, end in without(left, rest):
            yield Piece(start, end, cause)
        left = rest
    for start, end in left:
        yield Piece(start, end, "busy")


def without(pieces: Iterable[Interval], holes: Iterable[Interval]) -> list[Interval]:
    """Returns the parts of these periods outside the holes."""
    left = list(pieces)
    for low, high in holes:
        cut: list[Interval] = []
        for start, end in left:
            if high <= start or end <= low:
                cut.append((start, end))
                continue
            if start < low:
                cut.append((start, low))
            if high < end:
                cut.append((high, end))
        left = cut
    return left


def while_true(changes: Iterable[tuple[int, bool]], until: int) -> list[Interval]:
    """Returns when a condition held, given its changes as (at, holds)."""
    found: list[Interval] = []
    since: int | None = None
    for at, holds in changes:
        if holds and since is None:
            since = at
        elif not holds and since is not None:
            if at > since:
                found.append((since, at))
            since = None
    if since is not None and until > since:
        found.append((since, until))
    return found


_BY_STATE: Final[Mapping[int, Cause]] = {
    State.ASSIGNED.code: "assigned",
    State.RUNNING.code: "running",
    State.CANCELING.code: "stopping",
    State.TIMED_OUT.code: "stopping",
    State.RETRYING.code: "backoff",
    State.SUSPENDED.code: "suspended",
}
