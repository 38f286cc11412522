"""The engine under many seeds: crashes, zombies, lost and doubled messages, failing stores."""

import pytest

from tests.support.forms import by_form
from windlass.simulator import simulate

SEEDS = by_form(100, 500)
CHUNK = 10

LATER = [pytest.param(n, marks=pytest.mark.slow) for n in range(1 + CHUNK, SEEDS, CHUNK)]


@pytest.mark.parametrize("first", [1, *LATER])
def test_no_seed_breaks_an_invariant(first: int) -> None:
    """To repeat one that does: python -m windlass.simulator --seed N."""
    broken = [
        (result.seed, result.violations[:3])
        for result in map(simulate, range(first, first + CHUNK))
        if result.violations
    ]
    assert broken == []
