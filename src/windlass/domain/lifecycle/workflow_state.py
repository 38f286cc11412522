"""Derives the state of a workflow from the counts of its jobs, and detects contradictions.

A workflow that has not ended waits for something, has jobs under way, or is about to end. The
watchdog looks for contradictions only; it ignores slow workflows, however long they take.
"""

from collections.abc import Sequence
from enum import IntEnum, StrEnum
from typing import Any, Final

import msgspec

from windlass.domain.lifecycle.states import TERMINAL, State

FAIL_FAST: Final = 1  # flag: the first failure stops the workflow
REACTS: Final = 2  # flag: the workflow has reactions
KEY_KEPT: Final = 4  # flag: its key is reserved for a time, even if it ends earlier

FORGIVEN: Final = 0
# indexed by state code; element 0 counts failures with `allow_failure`
COUNTS: Final = len(State) + 1

_OPEN: Final = tuple(state.code for state in State if state not in TERMINAL)
_BAD: Final = tuple(s.code for s in (State.FAILED, State.REJECTED, State.CANCELED, State.ABORTED))
_MOVING: Final = (
    State.ASSIGNED.code,
    State.RUNNING.code,
    State.CANCELING.code,
    State.TIMED_OUT.code,
    State.RETRYING.code,
    State.SUSPENDED.code,
)


class WorkflowState(IntEnum):
    """`QUEUED` until its first job is assigned to a worker; the last three are final."""

    QUEUED = 1
    DISPATCHING = 2
    CANCELING = 3
    COMPLETED = 4
    FAILED = 5
    CANCELED = 6


ENDED: Final = frozenset({WorkflowState.COMPLETED, WorkflowState.FAILED, WorkflowState.CANCELED})


def next_state(state: WorkflowState, counts: Sequence[int]) -> WorkflowState:
    """Returns the state that follows from the counts."""
    if any(counts[code] for code in _OPEN):
        if state is WorkflowState.QUEUED and (
            any(counts[code] for code in _MOVING) or counts[State.COMPLETED.code]
        ):
            return WorkflowState.DISPATCHING
        return state
    if state is WorkflowState.CANCELING:
        return WorkflowState.CANCELED
    return WorkflowState.FAILED if unforgiven(counts) else WorkflowState.COMPLETED


def ended_badly(state: int) -> bool:
    """Returns True if a job in this state counts as failed, unless it was allowed to."""
    return state in _BAD


def unforgiven(counts: Sequence[int]) -> int:
    """Returns how many jobs failed without `allow_failure`."""
    return sum(counts[code] for code in _BAD) - counts[FORGIVEN]


def is_failing(flags: int, counts: Sequence[int]) -> bool:
    """Returns True if a failure has stopped the workflow, so that nothing new starts."""
    return bool(flags & FAIL_FAST) and unforgiven(counts) > 0


def stops_now(flags: int, counts: Sequence[int], failures: int) -> bool:
    """Returns True if these new `failures` must stop jobs that were not told to stop yet."""
    left = sum(counts[code] for code in _OPEN if code != State.CANCELING.code)
    return failures > 0 and left > 0 and is_failing(flags, counts)


class Details(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a workflow was submitted with, besides its columns.

    `supersedes` is the workflow that this one repeats from the start. Reactions are kept as they
    were submitted.
    """

    submitted_by: str | None = None
    labels: dict[str, str] = {}
    template: str | None = None
    parameters: dict[str, Any] = {}
    on_success: list[Any] = []
    on_failure: list[Any] = []
    on_end: list[Any] = []
    supersedes: int | None = None
    outputs: dict[str, Any] = {}  # references to results of its jobs, by id
    key_for: float | str | None = None  # how long it holds its key; None: until it ends
    digest: str | None = None  # digest of its jobs and options, if it has a key

    @property
    def reacts(self) -> bool:
        """Returns True if the workflow has reactions."""
        return bool(self.on_success or self.on_failure or self.on_end)


decode_details = msgspec.json.Decoder(Details).decode


_UNDER_WAY: Final = tuple(
    state.code
    for state in (
        State.QUEUED, State.ASSIGNED, State.RUNNING, State.CANCELING, State.TIMED_OUT,
        State.RETRYING, State.SUSPENDED,
    )
)  # fmt: skip
_UNTOLD: Final = tuple(
    state.code for state in (State.BLOCKED, State.QUEUED, State.RETRYING, State.SUSPENDED)
)


class Contradiction(StrEnum):
    """A state that should be impossible."""

    MISCOUNTED = "its counts do not match its jobs"
    NOT_ENDED = "none of its jobs is open, but it has not ended"
    NOT_STOPPED = "it is being canceled, but nothing will stop its waiting jobs"
    BLOCKED = "its blocked jobs wait for something that cannot happen"


def look_at(
    state: WorkflowState, counts: Sequence[int], recount: Sequence[int], stopping: bool
) -> Contradiction | None:
    """Returns the contradiction in a workflow's counts; `stopping` means a cascade is open."""
    if tuple(counts) != tuple(recount):
        return Contradiction.MISCOUNTED
    if next_state(state, recount) is not state:
        return Contradiction.NOT_ENDED
    if state is WorkflowState.CANCELING and not stopping and any(recount[c] for c in _UNTOLD):
        return Contradiction.NOT_STOPPED
    return None


def may_be_stuck(recount: Sequence[int]) -> bool:
    """Returns True if only blocked jobs are left, so that their waits must be checked."""
    return recount[State.BLOCKED.code] > 0 and not any(recount[code] for code in _UNDER_WAY)
