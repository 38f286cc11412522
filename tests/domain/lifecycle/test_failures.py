"""Failures have classes; text is only the fallback."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.lifecycle.failures import (
    FAILURE_BY_CODE,
    FAILURE_BY_NAME,
    INFRASTRUCTURE,
    TEXT_PATTERNS,
    FailureClass,
    classify,
)


def test_names_and_codes_never_change() -> None:
    assert [(failure.value, failure.code) for failure in FailureClass] == [
        ("execution", 1),
        ("worker_lost", 2),
        ("timeout", 3),
        ("network", 4),
        ("resource", 5),
        ("canceled", 6),
        ("configuration", 7),
    ]
    assert FAILURE_BY_CODE[0] is None
    assert all(FAILURE_BY_CODE[failure.code] is failure for failure in FailureClass)


def test_a_class_is_found_by_name_and_an_unknown_name_is_not() -> None:
    assert FAILURE_BY_NAME["network"] is FailureClass.NETWORK
    assert set(FAILURE_BY_NAME.values()) == set(FailureClass)
    assert "bad luck" not in FAILURE_BY_NAME


def test_evidence_against_a_worker_is_what_it_is_to_blame_for() -> None:
    to_blame = {FailureClass.WORKER_LOST, FailureClass.NETWORK, FailureClass.RESOURCE}
    assert to_blame == INFRASTRUCTURE


@pytest.mark.parametrize(
    ("pattern", "failure"),
    [
        ("connection refused", FailureClass.NETWORK),
        ("timeout", FailureClass.NETWORK),
        ("temporary failure", FailureClass.NETWORK),
        ("network error", FailureClass.NETWORK),
        ("no such host", FailureClass.NETWORK),
        ("broken pipe", FailureClass.NETWORK),
        ("connection reset", FailureClass.NETWORK),
        ("node unavailable", FailureClass.WORKER_LOST),
        ("worker died", FailureClass.WORKER_LOST),
        ("stale", FailureClass.WORKER_LOST),
    ],
)
def test_each_pattern_of_seed_003_is_known_in_any_case(pattern: str, failure: FailureClass) -> None:
    assert classify(pattern) is failure
    assert classify(f"ERROR: {pattern.upper()} (os error 111)") is failure


def test_there_are_ten_patterns() -> None:
    assert len(TEXT_PATTERNS) == 10


@pytest.mark.parametrize(
    "message", ["", "exit status 1", "Unknown encoder 'libx999'", "ValueError: bad input"]
)
def test_anything_else_is_the_works_own_failure(message: str) -> None:
    assert classify(message) is FailureClass.EXECUTION


def test_the_more_telling_pattern_wins() -> None:
    assert classify("connection reset: worker died") is FailureClass.WORKER_LOST
    assert classify("worker died after timeout") is FailureClass.WORKER_LOST


def test_no_text_means_that_the_jobs_own_time_ran_out() -> None:
    assert FailureClass.TIMEOUT not in {failure for _, failure in TEXT_PATTERNS}


@given(st.text())
def test_any_text_has_a_class(message: str) -> None:
    known = any(pattern in message.lower() for pattern, _ in TEXT_PATTERNS)
    assert (classify(message) is not FailureClass.EXECUTION) == known
