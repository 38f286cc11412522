"""How a budget is divided: exactly, nobody starves, and more yield never gets less."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from windlass_fuzz.statistics.history import RunPoint
from windlass_fuzz.statistics.shares import divide, shares, yield_of

BUDGETS = st.integers(0, 10**9)
YIELD = st.none() | st.integers(0, 5) | st.floats(0, 1e9)
YIELDS = st.lists(YIELD, min_size=1, max_size=12)


@given(BUDGETS, YIELDS)
def test_the_parts_are_the_whole_budget(budget: int, yields: list[float | None]) -> None:
    assert sum(shares(budget, yields)) == budget


@given(BUDGETS, YIELDS)
def test_nobody_gets_less_than_an_equal_part_of_half(
    budget: int, yields: list[float | None]
) -> None:
    assert min(shares(budget, yields)) >= budget // 2 // len(yields)


@given(BUDGETS, YIELDS)
def test_more_yield_never_gets_less(budget: int, yields: list[float | None]) -> None:
    parts = shares(budget, yields)
    best = max((one for one in yields if one is not None), default=0)
    ranked = sorted(
        (best if one is None else one, -place, part)
        for place, (one, part) in enumerate(zip(yields, parts, strict=True))
    )
    assert [part for *_, part in ranked] == sorted(parts)


@given(BUDGETS, st.sets(st.sampled_from("abcdef")))
def test_combinations_that_reach_a_change_get_the_time_of_the_others(
    budget: int, reaching: set[str]
) -> None:
    names = "abcdef"
    parts = {one.combination: one.ms for one in divide(budget, names, [], reaching)}
    assert list(parts) == list(names)
    assert sum(parts.values()) == budget
    if 0 < len(reaching) < len(names):
        most = max(parts[name] for name in names if name not in reaching)
        assert min(parts[name] for name in reaching) >= 4 * most


@given(BUDGETS, YIELDS, st.data())
def test_a_combination_that_yields_more_does_not_lose_time(
    budget: int, yields: list[float | None], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(yields) - 1))
    before = yields[place]
    if before is None:
        return
    more: list[float | None] = [*yields]
    more[place] = before + data.draw(st.floats(0, 1e6))
    assert shares(budget, more)[place] >= shares(budget, yields)[place]


@given(BUDGETS, YIELDS)
def test_the_same_question_has_the_same_answer_and_equals_differ_by_rounding_alone(
    budget: int, yields: list[float | None]
) -> None:
    parts = shares(budget, yields)
    assert parts == shares(budget, list(yields))
    for one in set(yields):
        equals = [part for part, other in zip(parts, yields, strict=True) if other == one]
        assert max(equals) - min(equals) < len(yields)
        assert equals[0] == max(equals)  # the first in the file


@given(BUDGETS, st.integers(1, 12), st.sampled_from([None, 0.0, 3.5]))
def test_without_a_difference_all_get_the_same(budget: int, count: int, one: float | None) -> None:
    parts = shares(budget, [one] * count)
    assert max(parts) - min(parts) < count


def test_half_follows_the_yield() -> None:
    assert shares(6_000, [3.0, 1.0, 0.0]) == [1_000 + 2_250, 1_000 + 750, 1_000]


def test_one_that_never_ran_counts_as_the_best() -> None:
    first, second, third = shares(9_000, [4.0, None, 1.0])
    assert first == second > third


def test_one_combination_gets_everything() -> None:
    assert shares(12_345, [None]) == [12_345]


def a_run(combination: str = "a", **values: Any) -> RunPoint:
    given_values: dict[str, Any] = {"at_ms": 0, "commit": "c", "engine": "e", "target": "t",
                                    "seconds": 3600.0}  # fmt: skip
    return RunPoint(combination=combination, **given_values | values)


def test_findings_and_coverage_are_points_per_hour() -> None:
    runs = [a_run(coverage=100), a_run(coverage=105, new_findings=1), a_run("b", new_findings=9)]
    found = yield_of(runs, "a")
    assert found.points == 10 + 5 + 10
    assert found.per_hour == 25 / 2


def test_new_inputs_count_where_the_engine_counts_no_coverage() -> None:
    assert yield_of([a_run(coverage=-1, corpus=103, new_inputs=3)], "a").points == 3
    assert yield_of([a_run(coverage=-1, corpus=1_000, new_inputs=900)], "a").points == 10


def test_less_coverage_than_before_is_no_yield() -> None:
    assert yield_of([a_run(coverage=100), a_run(coverage=90), a_run(coverage=95)], "a").points == 10


def test_only_the_last_ten_runs_count_but_older_coverage_is_not_new() -> None:
    old = [a_run(coverage=100, new_findings=5)]
    assert yield_of([*old, *[a_run(coverage=100)] * 10], "a").points == 0


def test_the_reason_says_what_counted() -> None:
    runs = [a_run(coverage=100, new_findings=1), a_run("b", coverage=0), a_run("d", coverage=1)]
    said = {one.combination: one.why for one in divide(1_000, ["a", "b", "c", "d"], runs)}
    assert said == {
        "a": "1 new finding in its last run, 1h in all",
        "b": "nothing new in its last run",
        "c": "it never ran, so it counts as the best one",
        "d": "new coverage or inputs in its last run, 1h in all",
    }
