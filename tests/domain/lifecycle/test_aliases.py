"""Other vocabularies come in and go out."""

import pytest

from windlass.domain.lifecycle.states import ALIASES, VOCABULARIES, State, parse_state, show_state
from windlass.domain.values.errors import InvalidInput


@pytest.mark.parametrize(
    ("name", "states"),
    [
        ("pending", {State.QUEUED}),
        ("eligible", {State.QUEUED}),
        ("ready", {State.QUEUED}),
        ("processing", {State.RUNNING}),
        ("paused", {State.ASSIGNED}),
        ("dispatched", {State.ASSIGNED, State.RUNNING}),
        ("built", {State.COMPLETED}),
        ("dependency_failed", {State.ABORTED}),
        ("cancel_pending", {State.CANCELING}),
    ],
)
def test_a_name_of_another_vocabulary_is_accepted_in_any_case(
    name: str, states: set[State]
) -> None:
    assert parse_state(name) == parse_state(f" {name.upper()} ") == states


@pytest.mark.parametrize("state", State)
def test_our_own_names_stand_for_themselves(state: State) -> None:
    assert parse_state(state.value) == parse_state(state.name) == {state}


def test_no_alias_hides_a_state() -> None:
    assert not set(ALIASES) & {state.value for state in State}


@pytest.mark.parametrize("text", ["", "waiting", "queue", "QUEUED!", "queued\0"])
def test_an_unknown_name_is_refused_with_what_is_accepted(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_state(text)
    assert caught.value.field == "state"
    assert caught.value.got == text
    for name in (*State, *ALIASES):
        assert name in caught.value.expected


@pytest.mark.parametrize("vocabulary", VOCABULARIES)
@pytest.mark.parametrize("state", State)
def test_what_is_shown_is_understood_again(state: State, vocabulary: str) -> None:
    assert state in parse_state(show_state(state, vocabulary))


@pytest.mark.parametrize(
    ("vocabulary", "state", "shown"),
    [
        ("windlass", State.QUEUED, "queued"),
        ("debusine", State.QUEUED, "pending"),
        ("debusine", State.ABORTED, "aborted"),
        ("builder", State.QUEUED, "eligible"),
        ("builder", State.ASSIGNED, "dispatched"),
        ("builder", State.RUNNING, "dispatched"),
        ("builder", State.COMPLETED, "built"),
        ("builder", State.ABORTED, "dependency_failed"),
        ("builder", State.CANCELING, "cancel_pending"),
        ("legacy", State.QUEUED, "pending"),
        ("legacy", State.RUNNING, "processing"),
        ("legacy", State.ASSIGNED, "paused"),
    ],
)
def test_a_state_is_shown_in_the_vocabulary_asked_for(
    vocabulary: str, state: State, shown: str
) -> None:
    assert show_state(state, vocabulary) == shown


def test_our_own_vocabulary_is_the_default() -> None:
    assert show_state(State.RUNNING) == "running"


def test_an_unknown_vocabulary_is_refused() -> None:
    with pytest.raises(
        InvalidInput, match=r"expected vocabulary to be one of windlass, .* klingon"
    ):
        show_state(State.QUEUED, "klingon")
