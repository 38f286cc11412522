"""Suggestions for misspelt words."""

import pytest

from windlass.domain.values.names import MAX_KNOWN, did_you_mean

STATES = ("queued", "running", "completed", "failed")


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("runing", "; did you mean running?"),
        ("COMPLETED", "; did you mean completed?"),
        ("complete", "; did you mean completed?"),
        ("nonsense", ""),
        ("", ""),
    ],
)
def test_the_closest_word_is_suggested_if_one_is_close(word: str, hint: str) -> None:
    assert did_you_mean(word, STATES) == hint


def test_a_suggestion_keeps_the_case_of_the_known_word() -> None:
    assert did_you_mean("windlass_pol_open", ["WINDLASS_POOL_OPEN"]).endswith("WINDLASS_POOL_OPEN?")


def test_a_higher_cutoff_wants_a_closer_word() -> None:
    assert did_you_mean("runs", STATES, cutoff=0.5) == "; did you mean running?"
    assert did_you_mean("runs", STATES, cutoff=0.9) == ""


def test_nothing_is_suggested_from_too_many_words() -> None:
    many = [f"job-{number}" for number in range(MAX_KNOWN + 1)]
    assert did_you_mean("job-1", many) == ""
    assert did_you_mean("job-1", many[1:]) != ""
