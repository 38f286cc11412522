"""Whether anybody could ever run a shape, and what is said if not."""

import pytest

from windlass.domain.job.forms import GRACE
from windlass.domain.matching.clauses import parse_clause
from windlass.domain.matching.shapes import Shape
from windlass.domain.values.errors import InvalidInput
from windlass.engine.fleet.capability import describe, grace_ms, nearest

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
        "capability_mismatch: the closest match of 2 known workers: "
        "needs memory ≥ 16 GiB, has 8 GiB"
    )
    assert nearest(BIG, []) is None
    assert describe(None, 0) == "capability_mismatch: no worker is known"


def test_a_grace_is_a_duration_or_never() -> None:
    assert (grace_ms(None, None), grace_ms(None, 5)) == (None, 5)
    assert (GRACE.canonical(0, "f"), grace_ms(0.0, 5)) == (0, 0)
    assert (GRACE.canonical("10m", "f"), grace_ms(600.0, 5)) == (600, 600_000)
    assert (GRACE.canonical("Never", "f"), grace_ms("never", 5)) == ("never", None)
    with pytest.raises(InvalidInput, match="or never"):
        GRACE.canonical("soon", "f")
