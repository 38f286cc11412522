"""Detects workflows whose rows contradict each other, for the watchdog.

A workflow that has not ended waits for something, has jobs under way, or is about to end. The
watchdog ignores slow workflows, however long they take.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import WorkflowState, next_state

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
    """Returns the contradiction in a workflow's numbers; `stopping` means a cascade is open."""
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
