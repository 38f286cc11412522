"""What runs with combinations say about an input, and records from before there were any."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from windlass_fuzz.findings.evidence import (
    FAILS,
    FINE,
    Where,
    first_evidence,
    inputs_for,
    inputs_of,
    merged,
    missing_runs,
    with_run,
)
from windlass_fuzz.findings.record import FINDING, Finding, KeptInput
from windlass_fuzz.findings.sightings import is_gone, seen_again
from windlass_fuzz.statistics.history import HISTORY

NAMES = ("one", "two", "three")
COMMITS = ("old", "new")
REFUSED = "was refused"


def an_input(*broke: str, **values: Any) -> KeptInput:
    fields: dict[str, Any] = {"name": "input-1", "size": 1, "title": "t", "found_in": "old",
                              "shown": 5, "tried": 5}  # fmt: skip
    known = [first_evidence(Where(name, "target"), "old") for name in broke]
    together = {name: ran for part in known for name, ran in part.items()}
    return KeptInput(**fields | {"combinations": together} | values)


def a_finding(*inputs: KeptInput, **values: Any) -> Finding:
    fields: dict[str, Any] = {
        "key": "k", "title": "t", "engine": "e", "command": [], "input": inputs[0].name,
        "size": 1, "shown": 5, "tried": 5, "found_in": "old", "found_at_ms": 0,
    }  # fmt: skip
    return Finding(**fields | {"inputs": list(inputs)} | values)


RUNS = st.lists(
    st.tuples(
        st.sampled_from(COMMITS), st.sampled_from(NAMES), st.sampled_from([FAILS, FINE, REFUSED])
    ),
    max_size=12,
)


@given(st.sets(st.sampled_from(NAMES), min_size=1), RUNS)
def test_an_input_is_fine_if_all_that_it_ever_broke_ran_it_fine_with_that_commit(
    broke: set[str], runs: list[tuple[str, str, str]]
) -> None:
    one = an_input(*broke)
    last: dict[str, tuple[str, str]] = dict.fromkeys(broke, ("old", FAILS))
    for commit, name, said in runs:
        one = with_run(one, commit, said, Where(name, "target"))
        if name in last or said == FAILS:
            last[name] = (commit, said)
    assert set(one.combinations) == set(last)
    for commit in COMMITS:
        fine = all(ran == (commit, FINE) for ran in last.values())
        assert is_gone(a_finding(one), commit) <= fine, "never gone without all of them"
        if one.checked_in == commit:
            assert is_gone(a_finding(one), commit) == fine


@given(RUNS)
def test_an_input_from_before_the_matrix_is_fine_only_if_a_combination_broke_first(
    runs: list[tuple[str, str, str]],
) -> None:
    one = an_input()
    for commit, name, said in runs:
        one = with_run(one, commit, said, Where(name, "target"))
    failed = {name for _, name, said in runs if said == FAILS}
    assert set(one.combinations) == failed
    if not failed:
        assert not any(is_gone(a_finding(one), commit) for commit in COMMITS)


def test_without_a_matrix_the_fields_of_the_input_say_it() -> None:
    one = with_run(an_input(), "new", FINE, Where())
    assert (one.checked_in, one.checked, one.combinations) == ("new", FINE, {})
    assert is_gone(a_finding(one), "new")


def test_an_input_that_another_bug_hides_says_nothing_only_beside_its_reduced_form() -> None:
    hidden = an_input(name="hidden", checked_in="new", checked="shows k2 instead", masked_by="k2")
    fine = an_input(name="fine", checked_in="new", checked=FINE)
    assert not is_gone(a_finding(hidden, fine), "new"), "they have nothing to do with each other"
    reduced = msgspec.structs.replace(fine, source="hidden")
    assert is_gone(a_finding(hidden, reduced), "new")


def test_a_second_record_of_an_input_adds_its_combinations() -> None:
    both = merged(an_input("one"), an_input("two"))
    assert set(both.combinations) == {"one", "two"}
    after = seen_again(a_finding(an_input("one")), a_finding(an_input("two")))
    assert after.combinations == ["one", "two"]


def test_only_combinations_of_the_same_target_try_an_input_that_they_never_broke() -> None:
    finding = a_finding(an_input("one"), an_input("one", name="input-2", size=9))
    assert [one.name for one in inputs_for(finding, Where("one", "target"))] == [
        "input-1", "input-2",
    ]  # fmt: skip
    assert [one.name for one in inputs_for(finding, Where("two", "target"))] == ["input-1"]
    assert inputs_for(finding, Where("two", "other")) == []
    closed = msgspec.structs.replace(finding, state="closed")
    assert inputs_for(closed, Where("two", "target")) == []


def test_the_reason_names_each_combination_that_did_not_run() -> None:
    finding = a_finding(with_run(an_input("one", "two", "three"), "new", FINE, Where("one")))
    assert missing_runs(finding, "new", {"two": "it was not built"}) == (
        "with new an input did not run with three: it is not in the solver file; two: it was not "
        "built"
    )
    failing = a_finding(with_run(an_input("one", "two"), "new", FAILS, Where("one")))
    assert missing_runs(failing, "new", {}) == ""


OLD_RECORD = b"""{"key": "k", "title": "SIGSEGV in f", "engine": "command", "command": ["./toy"],
"input": "input-1", "size": 1, "shown": 5, "tried": 5, "found_in": "c1", "found_at_ms": 7,
"inputs": [{"name": "input-1", "size": 1, "title": "SIGSEGV in f", "found_in": "c1", "shown": 5,
"tried": 5, "checked_in": "c1", "checked": "fails"}],
"origins": [{"first_bad": "c1", "last_good": "c0", "suspect_count": 1}],
"version": {"seq": 3, "nonce": "n", "recent": []}}"""
OLD_HISTORY = b"""{"runs": [{"at_ms": 1, "commit": "c1", "engine": "afl", "target": "toy"}],
"days": [{"day": "2026-01-01", "engine": "afl", "target": "toy", "runs": 2}], "version": {}}"""


def test_records_without_combinations_are_read() -> None:
    finding, version = FINDING.decode(OLD_RECORD, {})
    assert finding is not None
    assert (version.seq, finding.combinations, finding.targets) == (3, [], set())
    assert inputs_of(finding)[0].combinations == {}
    again, _ = FINDING.decode(FINDING.encode(finding, version)[0], {})
    assert again == finding
    history, _ = HISTORY.decode(OLD_HISTORY, {})
    assert (history.runs[0].combination, history.days[0].combination) == ("", "")
