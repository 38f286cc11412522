"""The progress of a workflow, what holds it up, when its attempts ran, and how two runs differ."""

from typing import Any

import msgspec

from windlass.domain.explain.forecast import Span


class ChainJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of the longest chain: how long it took or is expected to take, in milliseconds."""

    job: int
    name: str
    state: str
    ms: int
    known: bool  # False: no such job has run before, so it counts as 0


class CriticalPath(msgspec.Struct, frozen=True, kw_only=True):
    """The chain of dependent jobs that takes longest; `left_out` counts omitted jobs in its
    middle.
    """

    jobs: list[ChainJob]
    length: int
    left_out: int
    total_ms: int
    left: Span


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """A job that waits for somebody to unblock it, and perhaps for `others` jobs as well."""

    job: int
    name: str
    since: str
    others: int


class WorkflowProgress(msgspec.Struct, frozen=True, kw_only=True):
    """The progress of a workflow; times are milliseconds from now.

    `left` says when it may end if `at_once` jobs run at a time; null if it has ended or is unknown.
    `unknown` jobs have no known run time and count as 0.
    """

    workflow: int
    jobs: int
    done: int
    running: int
    work_ms: int
    done_ms: int
    unknown: int
    at_once: int
    left: Span | None
    ends_at: str | None
    critical_path: CriticalPath
    approvals: list[Approval]
    approvals_left_out: int


class TimelineBar(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt, or `runs` short ones in a row, of which `job` is the first."""

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


class WorkflowTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """When attempts ran. Times are milliseconds since 1970.

    `lanes` begin with number `first` of `lanes_total`. No attempt ran in a gap, so it can be drawn
    short.
    """

    workflow: int
    start: int
    end: int
    now: int
    shown_from: int
    shown_until: int
    lanes: list[TimelineLane]
    first: int
    lanes_total: int
    runs: int
    runs_left_out: int
    gaps: list[TimelineGap]
    gaps_left_out: int


class ComparedSide(msgspec.Struct, frozen=True, kw_only=True):
    """A job in one of two runs; times are milliseconds, null if unknown."""

    job: int
    state: str
    run_ms: int | None
    wait_ms: int | None


class ComparedArgument(msgspec.Struct, frozen=True, kw_only=True):
    """An argument with another value; long values are cut."""

    name: str
    a: Any
    b: Any


class ComparedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job that differs in state, arguments, run time or wait, or is in only one run."""

    name: str
    a: ComparedSide | None
    b: ComparedSide | None
    state_differs: bool
    run_ms: int | None
    wait_ms: int | None
    arguments_differ: bool
    arguments: list[ComparedArgument]


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One of two workflows that are compared."""

    workflow: int
    name: str
    run: int
    state: str
    jobs: int
    total_ms: int | None


class WorkflowComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The differences of two workflows, the largest first, up to a limit."""

    a: Compared
    b: Compared
    same: int
    different: int
    only_a: int
    only_b: int
    jobs: list[ComparedJob]
    left_out: int
