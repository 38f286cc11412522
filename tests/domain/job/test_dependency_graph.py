"""Names inside one submission: which ids they mean, in which order, and what is refused."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.job.dependency_graph import find_names, order_by_dependencies
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput


def job(name: str | None, *after: int | str, after_any: Sequence[int | str] = ()) -> JobSpec:
    return JobSpec(task="t", name=name, after=after, after_any=tuple(after_any))


@st.composite
def shuffled_graphs(draw: st.DrawFn) -> list[tuple[int, list[int], list[int]]]:
    """Jobs in any order, each with the smaller numbers that it waits for, some more than once."""
    count = draw(st.integers(1, 12))
    some = [st.lists(st.integers(0, n - 1), max_size=6) if n else st.just([]) for n in range(count)]
    jobs = [(n, draw(some[n]), draw(some[n])) for n in range(count)]
    return draw(st.permutations(jobs)) if draw(st.booleans()) else jobs


@given(shuffled_graphs())
def test_ids_ascend_from_dependencies_to_dependents(
    jobs: list[tuple[int, list[int], list[int]]],
) -> None:
    specs = [
        job(f"j{n}", *(f"j{m}" for m in after), after_any=[f"j{m}" for m in others])
        for n, after, others in jobs
    ]
    ids = range(70, 70 + 3 * len(jobs), 3)  # they need not follow each other
    named = find_names(specs, ids)
    id_of = {n: own for (n, _, _), own in zip(jobs, named.ids, strict=True)}
    assert sorted(named.ids) == list(ids)
    assert [named.ids[index] for index in named.order] == list(ids)
    for place, (n, after, others) in enumerate(jobs):
        assert list(named.after[place]) == sorted({id_of[m] for m in after})
        assert list(named.after_any[place]) == sorted({id_of[m] for m in others})
        assert all(id_of[m] < id_of[n] for m in (*after, *others))
    assert not named.numbered


def test_jobs_that_come_in_order_keep_it() -> None:
    specs = [job("a"), job(None), job("b", "a"), job("c", "b", "a")]
    assert list(find_names(specs, [5, 6, 8, 9]).ids) == [5, 6, 8, 9]


def test_ids_of_others_are_left_to_the_caller() -> None:
    named = find_names([job("a"), job("b", 3, "a", after_any=(4,))], [7, 8])
    assert named.numbered
    assert list(named.after[1]) == [7]
    assert list(named.after_any[1]) == []


@pytest.mark.parametrize(
    ("specs", "said"),
    [
        ([job("a", "b"), job("b", "c"), job("c", "a")], "a → b → c → a"),
        ([job("a", "a")], "a → a"),
        ([job("a"), job("b", after_any=("x",))], r"jobs\[1\].after_any.*got x"),
        ([job("a"), job("b", "a", "x")], r"jobs\[1\].after.*got x"),
        ([job("a"), job("a"), job("b", "a")], r"jobs\[1\].name.*unique"),
    ],
)
def test_what_cannot_be_ordered_is_refused_by_name(specs: list[JobSpec], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        order_by_dependencies(specs)


def test_a_name_that_nobody_uses_may_be_given_twice() -> None:
    assert list(order_by_dependencies([job("a"), job("a")])) == [0, 1]
