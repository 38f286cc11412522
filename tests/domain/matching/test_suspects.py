"""A job that kills workers is soon alone, and a loss from outside costs its jobs little."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.suspects import (
    ALONE,
    MAX_SUSPICION,
    NOBODY,
    Company,
    suspect,
    suspicion_of,
)

levels = st.integers(0, 12)


@given(slots=st.integers(2, 200), killer=st.integers(0, 199))
def test_a_killer_is_alone_after_few_losses_and_no_neighbour_ever_is(
    slots: int, killer: int
) -> None:
    killer %= slots
    marks: dict[int, str | None] = dict.fromkeys(range(slots))
    losses = 0
    while suspicion_of(marks[killer]) != ALONE:
        held: list[int] = []
        company = NOBODY
        for job in sorted(marks):
            if company.admits(suspicion_of(marks[job])):
                held.append(job)
                company = company.joined_by(suspicion_of(marks[job]))
        if killer not in held:
            for job in held:
                del marks[job]
            continue
        losses += 1
        for job in held:
            marks[job] = suspect(marks[job], company)
    assert losses <= 1 + (slots - 1).bit_length()


@given(jobs=st.integers(2, 100_000))
def test_the_first_loss_keeps_nothing_apart(jobs: int) -> None:
    level = suspicion_of(suspect(None, Company(jobs, 0, 0)))
    assert level == min(jobs, MAX_SUSPICION)


@given(st.lists(levels, max_size=8), levels)
def test_what_may_join_a_worker_may_also_stay_if_others_leave(held: list[int], joins: int) -> None:
    company, fewer = NOBODY, NOBODY
    for number, level in enumerate(held):
        company = company.joined_by(level)
        if number % 2:
            fewer = fewer.joined_by(level)
    assert fewer.admits(joins) or not company.admits(joins)


@given(st.lists(levels, max_size=8))
def test_no_order_of_joining_brings_more_suspects_together_than_each_of_them_allows(
    wanted: list[int],
) -> None:
    company, inside = NOBODY, []
    for level in wanted:
        if company.admits(level):
            company = company.joined_by(level)
            inside.append(level)
    suspects = [level for level in inside if level]
    assert all(len(suspects) <= level for level in suspects)
    assert ALONE not in suspects or len(inside) == 1
