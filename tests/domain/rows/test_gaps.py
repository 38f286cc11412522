"""Ids never repeat, whatever a database has forgotten."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.rows.gaps import BEGIN_MS, MARGIN, PER_MS, first_after

START_MS = BEGIN_MS + 3 * 365 * 86_400_000
# How long one copy is used, how many ids it gives, and which earlier state the next one has.
LIVES = st.lists(
    st.tuples(st.integers(2 * MARGIN // PER_MS, 10**8), st.floats(0, 0.5), st.integers(0, 10**6)),
    min_size=1,
)


@given(LIVES)
def test_copies_of_any_earlier_state_never_give_an_id_again(
    lives: list[tuple[int, float, int]],
) -> None:
    """Also if the same backup is restored several times: it knows nothing of the last time."""
    now, newest = START_MS, 0
    states, given_ids = [0], []
    for lasts, share, back in lives:
        ids = int(share * lasts * PER_MS)
        given_ids.append((newest + 1, newest + ids))
        states.append(newest + ids)
        now += lasts
        newest = first_after(states[back % len(states)], now)
    ordered = sorted(span for span in given_ids if span[0] <= span[1])
    assert all(before[1] < after[0] for before, after in pairwise(ordered))
