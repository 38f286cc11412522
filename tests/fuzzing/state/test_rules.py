"""The rules of the pipeline: which commits move where, and which are removed."""

import pytest

from windlass_fuzz.state.documents import BuildQueue, Entry, Schedule
from windlass_fuzz.state.rules import (
    add_by_hand,
    add_to_schedule,
    count_fuzzing,
    drop_from_schedule,
    enqueue_by_hand,
    enqueue_new,
    fuzzing_order,
    mark_built,
    mark_failed,
    retry_failed,
    take_from_built,
    touches_code,
)


def schedule(*counts: int) -> Schedule:
    """Returns commits c0, c1 … with these counts."""
    return tuple(Entry(f"c{place}", count) for place, count in enumerate(counts))


def names(entries: Schedule) -> list[str]:
    return [entry.hash for entry in entries]


@pytest.mark.parametrize("end", [".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hxx", ".hh"])
def test_each_of_the_eight_extensions_is_cpp(end: str) -> None:
    assert touches_code(["README.md", f"src/solver{end}"])


def test_other_files_are_not_cpp() -> None:
    assert not touches_code(["README.md", "a.py", "c", "cpp", "x.cpp.txt", "src.c/notes"])


def test_extensions_can_be_chosen() -> None:
    assert touches_code(["a.rs"], (".rs",))
    assert not touches_code(["a.cpp"], (".rs",))


def test_new_commits_join_the_end_of_the_queue_in_their_order() -> None:
    queue = enqueue_new(BuildQueue(queue=("a",)), ["b", "c"])
    assert queue.queue == ("a", "b", "c")


def test_a_commit_is_queued_once_in_its_life() -> None:
    known = BuildQueue(queue=("a",), built=("b",), failed=("c",), seen=("a", "b", "c", "d"))
    assert enqueue_new(known, ["a", "b", "c", "d"]) == known


def test_a_built_commit_moves_from_queue_to_built() -> None:
    queue = mark_built(BuildQueue(queue=("a", "b")), "a")
    assert (queue.queue, queue.built) == (("b",), ("a",))


def test_a_failed_commit_moves_from_queue_to_failed() -> None:
    queue = mark_failed(BuildQueue(queue=("a", "b")), "b")
    assert (queue.queue, queue.failed) == (("a",), ("b",))


def test_a_commit_that_is_not_queued_is_not_moved_a_second_time() -> None:
    built = BuildQueue(queue=("b",), built=("a",))
    assert mark_built(built, "a") == built
    assert mark_failed(built, "a") == built


def test_failed_commits_come_back_by_hand_only() -> None:
    failed = BuildQueue(failed=("a",), seen=("a",))
    assert enqueue_new(failed, ["a"]) == failed
    back = retry_failed(failed, "a")
    assert (back.queue, back.failed) == (("a",), ())
    assert enqueue_by_hand(failed, "a").queue == ("a",)


def test_scheduled_commits_leave_built() -> None:
    assert take_from_built(BuildQueue(built=("a", "b")), ["a"]).built == ("b",)


def test_below_four_commits_nothing_goes_for_a_new_one() -> None:
    assert names(add_to_schedule(schedule(1, 2, 3), "new")) == ["c0", "c1", "c2", "new"]


def test_at_four_commits_the_oldest_fuzzed_one_goes_for_a_new_one() -> None:
    assert names(add_to_schedule(schedule(0, 2, 1, 0), "new")) == ["c0", "c2", "c3", "new"]


def test_one_goes_for_each_that_is_added() -> None:
    grown = add_to_schedule(add_to_schedule(schedule(1, 1, 1, 1), "x"), "y")
    assert names(grown) == ["c2", "c3", "x", "y"]


def test_commits_that_were_never_fuzzed_do_not_go_for_new_ones() -> None:
    assert names(add_to_schedule(schedule(0, 0, 0, 0), "new"))[:4] == ["c0", "c1", "c2", "c3"]


def test_a_commit_stands_in_the_schedule_once() -> None:
    assert add_to_schedule(schedule(1, 1, 1, 1), "c2") == schedule(1, 1, 1, 1)


def test_the_least_fuzzed_commit_is_fuzzed_next() -> None:
    assert fuzzing_order(schedule(2, 1, 0, 3))[0] == "c2"


def test_among_equals_the_oldest_is_fuzzed_next() -> None:
    assert fuzzing_order(schedule(1, 0, 0, 1)) == ["c1", "c2", "c0", "c3"]


def test_the_newest_of_equals_can_be_fuzzed_first() -> None:
    assert fuzzing_order(schedule(1, 0, 0, 1), newest=True) == ["c2", "c1", "c3", "c0"]


def test_fuzzing_is_counted() -> None:
    counted = count_fuzzing(schedule(0, 0, 0, 0), "c1")
    assert [entry.fuzz_count for entry in counted] == [0, 1, 0, 0]


def test_above_four_a_commit_just_fuzzed_goes_if_none_was_fuzzed_twice() -> None:
    assert names(count_fuzzing(schedule(0, 0, 1, 1, 0), "c1")) == ["c0", "c2", "c3", "c4"]


def test_it_stays_if_one_was_fuzzed_twice() -> None:
    assert len(count_fuzzing(schedule(0, 0, 2, 1, 0), "c1")) == 5
    assert len(count_fuzzing(schedule(0, 1, 0, 0, 0), "c1")) == 5


def test_the_schedule_never_falls_below_four_by_fuzzing() -> None:
    assert len(count_fuzzing(schedule(0, 0, 0, 0), "c0")) == 4


def test_a_commit_that_left_the_schedule_is_not_counted() -> None:
    assert count_fuzzing(schedule(0, 0), "gone") == schedule(0, 0)


def test_commits_without_binaries_leave_the_schedule() -> None:
    assert names(drop_from_schedule(schedule(0, 1, 2), ["c1"])) == ["c0", "c2"]


def test_a_commit_added_by_hand_counts_as_never_fuzzed_and_displaces_nothing() -> None:
    grown = add_by_hand(schedule(1, 1, 1, 1), "c0")
    assert names(grown) == ["c1", "c2", "c3", "c0"]
    assert grown[-1].fuzz_count == 0
