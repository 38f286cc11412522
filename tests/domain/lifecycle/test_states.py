"""The table of transitions is the design's, and everything else follows from it."""

import pickle

import msgspec
import pytest

from windlass.domain.lifecycle.states import (
    ACTIVE,
    MEANINGS,
    NEW_CODE,
    STATE_BY_CODE,
    TERMINAL,
    TRANSITION_CODES,
    TRANSITIONS,
    State,
    can_supersede,
    validate_transition,
)
from windlass.domain.values.errors import InvalidTransition


def test_every_state_is_explained() -> None:
    assert set(MEANINGS) == set(State)


def test_names_and_codes_never_change() -> None:
    assert [(state.value, state.code) for state in State] == [
        ("blocked", 1),
        ("queued", 2),
        ("assigned", 3),
        ("running", 4),
        ("canceling", 5),
        ("timed_out", 6),
        ("retrying", 7),
        ("completed", 8),
        ("failed", 9),
        ("canceled", 10),
        ("aborted", 11),
        ("rejected", 12),
        ("suspended", 13),
        ("skipped", 14),
    ]


def test_a_state_is_found_by_name_and_by_code() -> None:
    assert State("queued") is State.QUEUED
    assert STATE_BY_CODE[NEW_CODE] is None
    for state in State:
        assert STATE_BY_CODE[state.code] is state
        assert str(state) == state.value == state.name.lower()


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="waiting"):
        State("waiting")


def test_a_state_survives_json_and_pickle() -> None:
    for state in State:
        assert msgspec.json.decode(msgspec.json.encode(state), type=State) is state
        assert pickle.loads(pickle.dumps(state)) is state


def test_the_codes_of_transitions_are_those_of_the_table() -> None:
    decoded = {(STATE_BY_CODE[source], STATE_BY_CODE[to]) for source, to in TRANSITION_CODES}
    assert decoded == {(source, to) for source, allowed in TRANSITIONS.items() for to in allowed}
    assert len(TRANSITION_CODES) == 37


def test_no_state_may_become_itself() -> None:
    assert not any(source in allowed for source, allowed in TRANSITIONS.items())


def test_every_state_can_be_reached_and_every_open_one_can_end() -> None:
    reached: set[State] = set(TRANSITIONS[None])
    while more := {to for state in reached for to in TRANSITIONS[state]} - reached:
        reached |= more
    assert reached == set(State)

    can_end = set(TERMINAL)
    while more := {state for state in State if TRANSITIONS[state] & can_end} - can_end:
        can_end |= more
    assert can_end == set(State)


def test_only_a_job_without_a_lease_is_assigned() -> None:
    assert {source for source, allowed in TRANSITIONS.items() if State.ASSIGNED in allowed} == {
        State.QUEUED
    }
    assert not ACTIVE & TERMINAL


def test_an_invalid_transition_names_both_states_and_the_way_out() -> None:
    with pytest.raises(InvalidTransition) as caught:
        validate_transition(State.BLOCKED, State.RUNNING)
    assert str(caught.value) == (
        "invalid transition from blocked to running: "
        "blocked may become queued, canceled, aborted, skipped"
    )
    assert (caught.value.source, caught.value.to) == (State.BLOCKED, State.RUNNING)


def test_an_invalid_first_state_and_a_terminal_one_say_so() -> None:
    with pytest.raises(
        InvalidTransition, match=r"from \(new\) to running: .* blocked, queued, rejected"
    ):
        validate_transition(None, State.RUNNING)
    with pytest.raises(InvalidTransition, match="completed may become nothing"):
        validate_transition(State.COMPLETED, State.QUEUED)


def test_a_retry_by_hand_takes_what_ended_badly() -> None:
    assert {state for state in State if can_supersede(state)} == {
        State.FAILED,
        State.CANCELED,
        State.ABORTED,
        State.REJECTED,
        State.SKIPPED,
    }
