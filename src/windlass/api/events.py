"""Parses which events a caller wants to see."""

from collections.abc import Sequence

from windlass.domain.lifecycle.states import parse_state
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import InvalidInput, UnknownName
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.quantities import parse_duration_ms, parse_moment
from windlass.engine.history.read_events import EventFilter


def event_filter(
    kinds: Sequence[str] | None, states: Sequence[str] | None, job: int | None
) -> EventFilter:
    """Parses a filter of the event log; `states` are those after a transition."""
    return EventFilter(
        kinds=frozenset(_kind(name) for name in kinds or ()),
        states=frozenset(found.code for name in states or () for found in parse_state(name)),
        job=job,
    )


def moment_since(text: str, now: int) -> int:
    """Returns a time that was given as such, or as how long ago it was."""
    try:
        return now - parse_duration_ms(text, "since")
    except InvalidInput:
        pass
    try:
        return parse_moment(text, "since")
    except InvalidInput as error:
        raise InvalidInput("since", f"a duration such as 10m, or {error.expected}", text) from None


def _kind(name: str) -> int:
    known = {kind.name.lower(): kind for kind in EventKind}
    found = known.get(name.strip().lower())
    if found is None:
        hint = did_you_mean(name, known).removeprefix("; ")
        raise UnknownName("kind", name, f"one of {', '.join(known)}", hint)
    return int(found)
