"""Errors say what was expected and what came, in short, and survive any input."""

import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.values.errors import (
    GOT_LIMIT,
    Conflict,
    InvalidInput,
    InvalidTransition,
    NotFound,
    Overloaded,
    StoreUnavailable,
    WindlassError,
    causes_of,
    shorten,
)

ONE_OF_EACH: list[WindlassError] = [
    WindlassError("something"),
    InvalidInput("priority", "an integer", "much"),
    Conflict("workflow_ended", "workflow 7 has ended"),
    Conflict("name_in_use", "worker w1 is running elsewhere", retry_after_ms=4_000),
    NotFound("job", 42),
    InvalidTransition("queued", "completed", ["assigned"]),
    Overloaded(1_500),
    StoreUnavailable("the connection was lost during COMMIT", outcome_unknown=True),
]


def test_the_message_reads_as_the_style_guide_wants() -> None:
    error = InvalidInput("heartbeat_timeout", "at least 2 × heartbeat_interval (60 s)", got="45 s")
    assert str(error) == (
        "expected heartbeat_timeout to be at least 2 × heartbeat_interval (60 s), got 45 s"
    )
    assert (error.code, error.field, error.got) == ("invalid_input", "heartbeat_timeout", "45 s")


def test_the_body_has_the_shape_of_the_http_error() -> None:
    assert InvalidInput("retries", "0 or more", -1).describe() == {
        "error": {
            "code": "invalid_input",
            "message": "expected retries to be 0 or more, got -1",
            "field": "retries",
            "expected": "0 or more",
            "got": -1,
        }
    }
    assert Conflict("key_conflict", "key k belongs to job 3").describe() == {
        "error": {"code": "key_conflict", "message": "key k belongs to job 3"}
    }
    assert StoreUnavailable("gone", outcome_unknown=False).describe() == {
        "error": {"code": "store_unavailable", "message": "gone", "outcome_unknown": False}
    }


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (NotFound("job", 42), "not_found", "job 42 does not exist"),
        (Overloaded(1_500), "overloaded", "too many requests are waiting, try again in 1500 ms"),
        (WindlassError("a", "b"), "error", "a b"),
    ],
)
def test_each_error_has_its_code_and_message(error: WindlassError, code: str, message: str) -> None:
    assert error.code == code
    assert str(error) == error.message == message


def test_a_conflict_may_say_when_to_come_back() -> None:
    described = Conflict("name_in_use", "w1 is taken", retry_after_ms=4_000).describe()
    assert described["error"] == {
        "code": "name_in_use",
        "message": "w1 is taken",
        "retry_after_ms": 4_000,
    }


@pytest.mark.parametrize("error", ONE_OF_EACH, ids=lambda error: type(error).__name__)
def test_errors_cross_processes_and_are_plain(error: WindlassError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert copy.describe() == error.describe()
    body = msgspec.json.decode(msgspec.json.encode(error.describe()))
    assert body["error"]["code"] == error.code
    assert body["error"]["message"] == str(error)


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("45 s", "45 s"),
        ("", "''"),
        (" x", "' x'"),
        ("a\0b", "'a\\x00b'"),
        (None, "None"),
        (10**5000, "an integer of 16610 bits"),
        ([10**5000], "a value of type list"),
        (Hostile(), "<Hostile instance at"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_is_shown_on_one_readable_line(value: object, shown: str) -> None:
    assert shorten(value).startswith(shown)


def test_long_values_are_cut() -> None:
    assert shorten("x" * GOT_LIMIT) == "x" * GOT_LIMIT
    assert shorten("x" * 1_000_000) == "x" * (GOT_LIMIT - 1) + "…"


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(anything)
def test_no_input_makes_an_error_long_unprintable_or_impossible_to_send(value: object) -> None:
    error = InvalidInput("args", "something else", value)
    assert len(shorten(value)) <= GOT_LIMIT
    assert str(error).isprintable()
    msgspec.json.encode(error.describe())


def test_causes_are_told_once_even_if_they_lead_back() -> None:
    first, second, third = ValueError("first"), OSError("second"), KeyError("third")
    first.__cause__, second.__context__ = second, third
    assert list(causes_of(first)) == [first, second, third]
    third.__cause__ = first
    assert list(causes_of(first)) == [first, second, third]
    first.__cause__ = first
    assert list(causes_of(first)) == [first]
