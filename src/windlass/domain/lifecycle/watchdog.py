"""When a workflow's rows contradict each other: what the watchdog looks for.

A workflow that has not ended waits for something nameable, has something under way, or is
about to end. Slowness is none of the watchdog's business, however long it takes.
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
        State.RETRYING,
    )
)  # fmt: skip
_UNTOLD: Final = (State.BLOCKED.code, State.QUEUED.code, State.RETRYING.code)


class Contradiction(StrEnum):
    """What cannot be, and is."""

    MISCOUNTED = "its counts are not those of its jobs"
    NOT_ENDED = "nothing of it is open, and it has not ended"
    NOT_STOPPED = "it is being canceled, and jobs of it wait that nobody will stop"
    BLOCKED = "blocked jobs of it wait for nothing that could come"


def look_at(
    state: WorkflowState, counts: Sequence[int], recount: Sequence[int], stopping: bool
) -> Contradiction | None:
    """Returns the contradiction in the numbers of a workflow, if any."""
    if tuple(counts) != tuple(recount):
        return Contradiction.MISCOUNTED
    if next_state(state, recount) is not state:
        return Contradiction.NOT_ENDED
    if state is WorkflowState.CANCELING and not stopping and any(recount[c] for c in _UNTOLD):
        return Contradiction.NOT_STOPPED
    return None


def may_be_stuck(recount: Sequence[int]) -> bool:
    """Returns whether only blocked jobs are left, so that each has to be examined."""
    return recount[State.BLOCKED.code] > 0 and not any(recount[code] for code in _UNDER_WAY)
