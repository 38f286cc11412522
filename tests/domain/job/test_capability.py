"""Whether anybody could ever run a shape, and what is said if not."""

import pytest

from windlass.domain.job.capability import describe, nearest, parse_grace
from windlass.domain.job.job import NEVER
from windlass.domain.matching.clauses import parse_clause
from windlass.domain.matching.shapes import Shape
from windlass.domain.values.errors import InvalidInput

BIG = Shape(
    namespace="default", queue="default", task="t",
    requires=(parse_clause("gpus>=1"), parse_clause("memory>=16GiB")),
)  # fmt: skip


def test_one_that_can_is_enough() -> None:
    able = {"system:gpus": 2, "system:memory": 2**35}
    assert nearest(BIG, [{}, able, {}]) == ()


def test_the_nearest_is_told() -> None:
    best = nearest(BIG, [{}, {"system:gpus": 1, "system:memory": 2**33}])
    assert describe(best, 2) == (
        "capability_mismatch: the nearest of 2 known workers needs memory ≥ 16GiB, has 8GiB"
    )
    assert nearest(BIG, []) is None
    assert describe(None, 0) == "capability_mismatch: no worker is known"


def test_a_grace_is_a_duration_or_never() -> None:
    assert parse_grace(None, "f") is None
    assert parse_grace(0, "f") == 0
    assert parse_grace("10m", "f") == 600_000
    assert parse_grace("Never", "f") == NEVER
    with pytest.raises(InvalidInput, match="or never"):
        parse_grace("soon", "f")
