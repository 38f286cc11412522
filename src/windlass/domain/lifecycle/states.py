"""The states of a job and the one table of transitions between them.

Every change of state, in every store, is checked against `TRANSITIONS`. Stores keep the codes, so
they never change meaning. `ALIASES` are the names that other schedulers use for our states:
accepted as input, shown on request.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from windlass.domain.lifecycle.failures import Coded
from windlass.domain.values.errors import InvalidInput, InvalidTransition, UnknownName
from windlass.domain.values.names import did_you_mean


class State(Coded):
    """A job's state; 0 in the stores means "does not exist yet"."""

    BLOCKED = "blocked", 1
    QUEUED = "queued", 2
    ASSIGNED = "assigned", 3
    RUNNING = "running", 4
    CANCELING = "canceling", 5
    TIMED_OUT = "timed_out", 6
    RETRYING = "retrying", 7
    COMPLETED = "completed", 8
    FAILED = "failed", 9
    CANCELED = "canceled", 10
    ABORTED = "aborted", 11
    REJECTED = "rejected", 12
    SUSPENDED = "suspended", 13  # its function waits, and holds no slot meanwhile
    SKIPPED = "skipped", 14  # its condition did not hold, so it does not run


# The numbers of the states, for rows and events.
BLOCKED: Final = State.BLOCKED.code
QUEUED: Final = State.QUEUED.code
ASSIGNED: Final = State.ASSIGNED.code
RUNNING: Final = State.RUNNING.code
CANCELING: Final = State.CANCELING.code
TIMED_OUT: Final = State.TIMED_OUT.code
RETRYING: Final = State.RETRYING.code
COMPLETED: Final = State.COMPLETED.code
FAILED: Final = State.FAILED.code
CANCELED: Final = State.CANCELED.code
ABORTED: Final = State.ABORTED.code
REJECTED: Final = State.REJECTED.code
SUSPENDED: Final = State.SUSPENDED.code
SKIPPED: Final = State.SKIPPED.code

MEANINGS: Final[Mapping[State, str]] = MappingProxyType(
    {
        State.BLOCKED: "waits for other jobs, or for somebody to unblock it",
        State.QUEUED: "may start; waits for a worker, a limit, its queue or its time",
        State.ASSIGNED: "given to a worker, which has not started it yet",
        State.RUNNING: "its process runs",
        State.CANCELING: "told to stop because somebody canceled it; its process may still run",
        State.TIMED_OUT: "told to stop because a time limit has passed; its process may still run",
        State.RETRYING: "its attempt did not succeed; the next one begins after a pause",
        State.SUSPENDED: "its function waits for a time, a signal or an answer, and holds no slot",
        State.COMPLETED: "succeeded",
        State.FAILED: "did not succeed and has no retries left",
        State.CANCELED: "canceled before it succeeded",
        State.ABORTED: "never started: a job that it depends on did not complete",
        State.REJECTED: "refused: no known worker could ever run it, or it was not valid",
        State.SKIPPED: "not run: its condition did not hold, or what it depends on was skipped",
    }
)

NEW_CODE: Final = 0

STATE_BY_CODE: Final[tuple[State | None, ...]] = (None, *State)

TRANSITIONS: Final[Mapping[State | None, frozenset[State]]] = MappingProxyType(
    {
        None: frozenset({State.BLOCKED, State.QUEUED, State.REJECTED}),
        State.BLOCKED: frozenset({State.QUEUED, State.ABORTED, State.CANCELED, State.SKIPPED}),
        State.QUEUED: frozenset({State.ASSIGNED, State.BLOCKED, State.REJECTED, State.CANCELED}),
        State.ASSIGNED: frozenset(
            {
                State.RUNNING,
                State.QUEUED,
                State.RETRYING,
                State.TIMED_OUT,
                State.FAILED,
                State.CANCELED,
            }
        ),
        State.RUNNING: frozenset(
            {
                State.COMPLETED,
                State.FAILED,
                State.TIMED_OUT,
                State.RETRYING,
                State.CANCELING,
                State.SUSPENDED,
            }
        ),
        State.CANCELING: frozenset({State.CANCELED, State.COMPLETED, State.FAILED}),
        State.TIMED_OUT: frozenset({State.RETRYING, State.FAILED, State.CANCELING}),
        State.RETRYING: frozenset({State.QUEUED, State.BLOCKED, State.FAILED, State.CANCELED}),
        State.SUSPENDED: frozenset({State.QUEUED, State.BLOCKED, State.FAILED, State.CANCELED}),
        State.COMPLETED: frozenset(),
        State.FAILED: frozenset(),
        State.CANCELED: frozenset(),
        State.ABORTED: frozenset(),
        State.REJECTED: frozenset(),
        State.SKIPPED: frozenset(),
    }
)

TERMINAL: Final[frozenset[State]] = frozenset(state for state in State if not TRANSITIONS[state])

# States with a lease: a process exists or is about to.
ACTIVE: Final[frozenset[State]] = frozenset(
    {State.ASSIGNED, State.RUNNING, State.CANCELING, State.TIMED_OUT}
)

TERMINAL_CODES: Final = frozenset(state.code for state in TERMINAL)
ACTIVE_CODES: Final = frozenset(state.code for state in ACTIVE)

TRANSITION_CODES: Final[frozenset[tuple[int, int]]] = frozenset(
    (NEW_CODE if source is None else source.code, to.code)
    for source, allowed in TRANSITIONS.items()
    for to in allowed
)


def validate_transition(source: State | None, to: State) -> None:
    """Raises `InvalidTransition` unless `source` may become `to` (None: a new job)."""
    allowed = TRANSITIONS[source]
    if to not in allowed:
        raise InvalidTransition(source, to, [state for state in State if state in allowed])


def is_terminal(state: State) -> bool:
    """Returns True if a job in this state never changes again."""
    return state in TERMINAL


def is_active(state: State) -> bool:
    """Returns True if a job in this state holds a lease."""
    return state in ACTIVE


def can_retry(state: State) -> bool:
    """Returns True if the engine may retry a job in this state by itself."""
    return State.RETRYING in TRANSITIONS[state]


def can_supersede(state: State) -> bool:
    """Returns True if a user may retry a job in this state: it ended, but did not complete."""
    return state in TERMINAL and state is not State.COMPLETED


ALIASES: Final[Mapping[str, frozenset[State]]] = MappingProxyType(
    {
        "pending": frozenset({State.QUEUED}),
        "eligible": frozenset({State.QUEUED}),
        "ready": frozenset({State.QUEUED}),
        "processing": frozenset({State.RUNNING}),
        "paused": frozenset({State.ASSIGNED}),
        "dispatched": frozenset({State.ASSIGNED, State.RUNNING}),
        "built": frozenset({State.COMPLETED}),
        "dependency_failed": frozenset({State.ABORTED}),
        "cancel_pending": frozenset({State.CANCELING}),
    }
)

# A state without an entry keeps its own name in that vocabulary.
VOCABULARIES: Final[Mapping[str, Mapping[State, str]]] = MappingProxyType(
    {
        "windlass": {},
        "debusine": {State.QUEUED: "pending"},
        "builder": {
            State.QUEUED: "eligible",
            State.ASSIGNED: "dispatched",
            State.RUNNING: "dispatched",
            State.CANCELING: "cancel_pending",
            State.COMPLETED: "built",
            State.ABORTED: "dependency_failed",
        },
        "legacy": {
            State.QUEUED: "pending",
            State.ASSIGNED: "paused",
            State.RUNNING: "processing",
        },
    }
)


def parse_state(text: str, field: str = "state") -> frozenset[State]:
    """Returns the states that a name means in any vocabulary; our own name means itself."""
    name = text.strip().lower()
    if name in ALIASES:
        return ALIASES[name]
    try:
        return frozenset({State(name)})
    except ValueError:
        known = (*State, *ALIASES)
        hint = did_you_mean(name, known)
        raise UnknownName(field, text, f"one of {', '.join(known)}", hint) from None


def show_state(state: State, vocabulary: str = "windlass") -> str:
    """Returns the state's name in a vocabulary."""
    names = VOCABULARIES.get(vocabulary)
    if names is None:
        raise InvalidInput("vocabulary", f"one of {', '.join(VOCABULARIES)}", vocabulary)
    return names.get(state, state.value)
