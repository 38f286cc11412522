"""How often an input failed, where runs are stopped by a limit."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import run
from windlass_fuzz.engines.engine import Verdict
from windlass_fuzz.findings.judge import Judge, tries_needed

BUG = Verdict("bug", "in f", source="stack")


class Answers:
    """An engine that gives these verdicts in turn."""

    def __init__(self, *verdicts: Verdict) -> None:
        self._verdicts = list(verdicts)

    async def classify(self, _path: Path) -> Verdict:
        return self._verdicts.pop(0)


@pytest.mark.parametrize(
    ("other", "shown", "tried"),
    [("memory", 4, 4), ("timeout", 4, 4), ("fine", 4, 5), ("unsupported", 4, 5)],
)
def test_a_run_that_a_limit_stopped_makes_no_failure_flaky(
    other: Any, shown: int, tried: int
) -> None:
    engine: Any = Answers(BUG, BUG, Verdict(other), BUG, BUG)
    judge = Judge(engine, frozenset({"crash"}), lambda _: engine)
    found = run(judge.reproduce(Path("input"), tries=5))
    assert (found.shown, found.tried, found.fine) == (shown, tried, False)


def test_an_input_whose_every_run_was_stopped_is_not_fine() -> None:
    engine: Any = Answers(*[Verdict("memory")] * 5)
    judge = Judge(engine, frozenset({"crash"}), lambda _: engine)
    found = run(judge.reproduce(Path("input"), tries=5))
    assert (found.tried, found.fine, found.unclear) == (0, False, "needs too much memory")


@pytest.mark.parametrize("tried", [5, 20, 60])
@pytest.mark.parametrize("rate", [0.02, 0.05, 0.1, 0.2, 0.33, 0.5])
def test_a_flaky_failure_is_hardly_ever_taken_for_gone(rate: float, tried: int) -> None:
    """Over all that we may have seen of it: we mostly see more of a rare failure than is usual."""
    missed = sum(
        math.comb(tried, shown) * rate**shown * (1 - rate) ** (tried - shown)
        * (1 - rate) ** tries_needed(shown, tried)
        for shown in range(1, tried)
    )  # fmt: skip
    assert missed < 0.01


def test_a_failure_that_came_every_time_needs_no_more_runs() -> None:
    assert tries_needed(5, 5) == 0
    assert tries_needed(4, 5) < tries_needed(2, 5) < tries_needed(1, 5)
    assert tries_needed(100, 2000) < tries_needed(1, 20)
