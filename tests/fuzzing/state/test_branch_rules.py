"""The schedules of several branches in one file: each follows the rules of a schedule alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass_fuzz.state.documents import (
    SCHEDULE,
    STATE,
    BranchProgress,
    BuildQueue,
    Entry,
    MalformedFile,
    Schedule,
    State,
    Version,
)
from windlass_fuzz.state.rules import (
    MINIMUM,
    add_by_hand,
    add_to_schedule,
    branches_of,
    count_fuzzing,
    enqueue_again,
    fuzzing_order,
    relabel,
    schedule_of,
)

COMMITS = [f"c{number}" for number in range(9)]
BRANCHES = ["main", "next", "release/1"]
ADDED = st.tuples(st.just("add"), st.sampled_from(COMMITS), st.sampled_from(BRANCHES))
FUZZED = st.tuples(st.just("fuzz"), st.sampled_from(COMMITS), st.just(""))
STEPS = st.lists(st.one_of(ADDED, FUZZED), max_size=60)


def apply(steps: list[tuple[str, str, str]]) -> Schedule:
    schedule: Schedule = ()
    for kind, commit, branch in steps:
        if kind == "add":
            schedule = add_to_schedule(schedule, commit, branch)
        else:
            schedule = count_fuzzing(schedule, commit)
    return schedule


@given(STEPS, st.sampled_from(COMMITS), st.sampled_from(BRANCHES))
def test_adding_touches_no_other_schedule_and_keeps_four(
    steps: list[tuple[str, str, str]], commit: str, branch: str
) -> None:
    before = apply(steps)
    after = add_to_schedule(before, commit, branch)
    assert commit in [entry.hash for entry in schedule_of(after, branch)]
    for other in BRANCHES:
        if other != branch:
            assert names(after, other) == names(before, other)
    least = min(len(names(before, branch)), MINIMUM)
    assert len(names(after, branch)) >= least


@given(STEPS, st.sampled_from(COMMITS))
def test_a_run_counts_once_and_leaves_four_everywhere(
    steps: list[tuple[str, str, str]], commit: str
) -> None:
    before = apply(steps)
    after = count_fuzzing(before, commit)
    counts = {entry.hash: entry.fuzz_count for entry in before}
    for entry in after:
        assert entry.fuzz_count == counts[entry.hash] + (entry.hash == commit)
    for branch in BRANCHES:
        least = min(len(names(before, branch)), MINIMUM)
        assert len(names(after, branch)) >= least


@given(STEPS)
def test_the_next_commit_is_a_least_fuzzed_one_of_all_schedules(
    steps: list[tuple[str, str, str]],
) -> None:
    schedule = apply(steps)
    order = fuzzing_order(schedule, BRANCHES)
    counts = {entry.hash: entry.fuzz_count for entry in schedule}
    assert sorted(order) == sorted(counts)
    assert [counts[commit] for commit in order] == sorted(counts.values())


@given(STEPS)
def test_a_schedule_is_read_as_it_was_written(steps: list[tuple[str, str, str]]) -> None:
    schedule = apply(steps)
    body, attributes = SCHEDULE.encode(schedule, Version(1, "n"))
    assert SCHEDULE.decode(body, attributes)[0] == schedule


def test_ties_go_to_the_oldest_then_to_the_first_branch() -> None:
    schedule = (
        Entry("r1", 0, branches=("release/1",)),
        Entry("r2", 0, branches=("release/1",)),
        Entry("m1", 0, branches=("main",)),
        Entry("m2", 1, branches=("main",)),
    )
    assert fuzzing_order(schedule, ["main", "release/1"]) == ["m1", "r1", "r2", "m2"]
    assert fuzzing_order(schedule, ["release/1", "main"]) == ["r1", "m1", "r2", "m2"]


def test_a_commit_that_one_branch_has_had_enough_of_stays_for_the_other() -> None:
    crowd = tuple(Entry(f"m{number}", 1, branches=("main",)) for number in range(4))
    both = Entry("both", 0, branches=("main", "next"))
    after = count_fuzzing((*crowd, both), "both")
    assert branches_of(after[-1]) == ("next",)
    assert after[-1].fuzz_count == 1


def test_a_branch_that_is_not_watched_leaves_the_schedule() -> None:
    schedule = (
        Entry("a", 2, branches=("main", "next")),
        Entry("b", 1, branches=("next",)),
        Entry("c", 0),
    )
    assert relabel(schedule, ["main"], named=False) == (Entry("a", 2), Entry("c", 0))
    assert relabel(schedule, ["next", "main"], named=True) == (
        Entry("a", 2, branches=("next", "main")),
        Entry("b", 1, branches=("next",)),
        Entry("c", 0, branches=("next",)),
    )


def test_a_commit_scheduled_by_hand_keeps_its_branches() -> None:
    schedule = (Entry("a", 3, branches=("next",)), Entry("b", 0, branches=("main",)))
    assert add_by_hand(schedule, "a")[-1] == Entry("a", 0, branches=("next",))


def test_an_expired_build_is_queued_again_unless_somebody_has_the_commit() -> None:
    seen = ("a", "b", "c", "d")
    queue = BuildQueue(queue=("a",), built=("b",), failed=("c",), seen=seen)
    assert enqueue_again(queue, "d").queue == ("a", "d")
    assert [enqueue_again(queue, commit) for commit in ("a", "b", "c")] == [queue] * 3


PROGRESS = st.builds(
    BranchProgress,
    st.one_of(st.none(), st.sampled_from(COMMITS)),
    st.integers(0, 2**50),
    st.lists(st.sampled_from(COMMITS), unique=True).map(tuple),
    st.booleans(),
    st.integers(0, 2**50),
)


@given(st.dictionaries(st.sampled_from(BRANCHES), PROGRESS))
def test_the_progress_of_branches_is_read_as_it_was_written(
    branches: dict[str, BranchProgress],
) -> None:
    state = State("c1", 7, {"other": 1}, branches)
    body, attributes = STATE.encode(state, Version(1, "n"))
    read = STATE.decode(body, attributes)[0]
    assert read == state
    assert list(read.branches) == list(branches), "their order is that of the solver file"


@pytest.mark.parametrize(
    "branches", [[], {"main": 1}, {"main": {"waiting": ["../x"]}}, {"main": {"gone_at_ms": "x"}}]
)
def test_damaged_progress_is_refused(branches: object) -> None:
    with pytest.raises(MalformedFile):
        STATE.decode(json.dumps({"branches": branches}).encode(), {})


@pytest.mark.parametrize("branches", ["main", [1], {"main": 1}])
def test_damaged_branches_of_an_entry_are_refused(branches: object) -> None:
    with pytest.raises(MalformedFile):
        SCHEDULE.decode(json.dumps([{"hash": "c1", "branches": branches}]).encode(), {})


def names(schedule: Schedule, branch: str) -> list[str]:
    return [entry.hash for entry in schedule_of(schedule, branch)]
