"""Lifting in one pass: what is blocked never stands behind what waits for it."""

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.lifecycle.rank import levels_gained, lift


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, int], dict[int, list[int]]]:
    size = draw(st.integers(1, 12))
    own = {job: draw(st.integers(-5, 5)) for job in range(1, size + 1)}
    before = st.integers(-2, size)
    waits = {
        job: [other for other in draw(st.lists(before, max_size=4)) if other < job] for job in own
    }
    return own, waits


@given(graphs())
def test_each_has_the_best_rank_of_all_it_blocks(
    graph: tuple[dict[int, int], dict[int, list[int]]],
) -> None:
    own, waits = graph
    ranks, lenders = lift(own, waits)

    def best(job: int) -> int:
        behind = [other for other, needs in waits.items() if job in needs]
        return min([own[job], *map(best, behind)])

    assert ranks == {job: best(job) for job in own}
    lifted = {job for job in own if ranks[job] < own[job]}
    assert (
        lifted
        == {
            need
            for job in lenders
            for need in waits[job]
            if need in own and ranks[need] < own[need]
        }
        & lifted
    )
    for job in lifted:
        assert any(job in waits[lender] and ranks[lender] == ranks[job] for lender in lenders)


def test_levels_are_told_by_the_interval() -> None:
    assert levels_gained(1_000_000, 400_000, 300_000) == 2.0
    assert levels_gained(5, 5, 300_000) == 0.0
