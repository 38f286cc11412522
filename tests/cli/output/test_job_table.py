"""The columns of the list of jobs."""

import pytest

from windlass.cli.output.job_table import rough_age
from windlass.domain.values.quantities import readable_duration


@pytest.mark.parametrize(
    ("ms", "age"),
    [
        (-5, "0 s"), (499, "0 s"), (12_600, "13 s"), (59_499, "59 s"), (59_500, "1 min"),
        (3_599_600, "1 h"), (47 * 3_600_000, "47 h"), (49 * 3_600_000, "2 d"),
    ],
)  # fmt: skip
def test_an_age_is_one_part(ms: int, age: str) -> None:
    assert rough_age(ms) == age


@pytest.mark.parametrize("ms", [10_499, 10_500, 12_999, 59_400])
def test_a_job_that_ran_from_its_beginning_is_as_old_as_it_ran(ms: int) -> None:
    assert rough_age(ms) == readable_duration(ms)
