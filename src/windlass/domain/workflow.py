"""The state of a workflow follows from the counts of its jobs."""

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

from windlass.domain.states import State

FORGIVEN: Final = 0
COUNTS: Final = len(State) + 1  # indexed by state code; element 0 counts forgiven failures

_OPEN: Final = tuple(
    s.code
    for s in State
    if s not in (State.COMPLETED, State.FAILED, State.CANCELED, State.ABORTED, State.REJECTED)
)
_MOVING: Final = (
    State.ASSIGNED.code,
    State.RUNNING.code,
    State.CANCELING.code,
    State.TIMED_OUT.code,
    State.RETRYING.code,
)


class WorkflowState(IntEnum):
    """`QUEUED` until its first job is given to a worker; the last three are ends."""

    QUEUED = 1
    DISPATCHING = 2
    CANCELING = 3
    COMPLETE = 4
    FAILED = 5
    CANCELED = 6


ENDED: Final = frozenset({WorkflowState.COMPLETE, WorkflowState.FAILED, WorkflowState.CANCELED})


def next_state(state: WorkflowState, counts: Sequence[int]) -> WorkflowState:
    """The state that the counts call for."""
    if any(counts[code] for code in _OPEN):
        if state is WorkflowState.QUEUED and (
            any(counts[code] for code in _MOVING) or counts[State.COMPLETED.code]
        ):
            return WorkflowState.DISPATCHING
        return state
    if state is WorkflowState.CANCELING:
        return WorkflowState.CANCELED
    bad = sum(counts[s.code] for s in (State.FAILED, State.REJECTED, State.CANCELED, State.ABORTED))
    return WorkflowState.FAILED if bad > counts[FORGIVEN] else WorkflowState.COMPLETE
