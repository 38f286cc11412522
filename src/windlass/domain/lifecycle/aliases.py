"""The names that other schedulers use for our states: accepted as input, shown on request."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from windlass.domain.lifecycle.states import State
from windlass.domain.values.errors import InvalidInput, UnknownName
from windlass.domain.values.suggest import did_you_mean

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
