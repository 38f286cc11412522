"""How often an input failed where limits stop runs, and in which functions it hangs."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.support.running import run
from windlass_fuzz.engines.engine import Verdict
from windlass_fuzz.engines.signature import Signature, is_close, is_surely_same
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


def hanging(*stacks: str) -> Judge:
    """Returns the judge of a program that is stopped each time with the next of these stacks."""
    engine: Any = Answers(*[Verdict("timeout", frames=tuple(one.split())) for one in stacks])
    return Judge(engine, frozenset({"hang"}), lambda _: engine)


def test_a_hang_is_named_by_the_functions_of_all_its_stacks() -> None:
    judge = hanging("peek loop run all", "loop run all", "skip peek loop run all", "loop run all")
    found = run(judge.reproduce(Path("input"), tries=3))
    assert [one.title for one in found.signatures] == ["does not end in loop < run < all"]
    again = hanging("peek loop run all", "peek loop run all")
    known = Signature("hang", "does not end in peek < loop < run")
    (same,) = run(again.reproduce(Path("input"), tries=2, known=known)).signatures
    assert same.title == known.title


def test_an_input_that_hangs_elsewhere_shows_another_hang() -> None:
    known = Signature("hang", "does not end in loop < run < all")
    judge = hanging("wait other run all", "other run all")
    (other,) = run(judge.reproduce(Path("input"), tries=2, known=known)).signatures
    assert other.title == "does not end in other < run < all"
    assert not is_surely_same(other, {known.title})
    assert is_close("does not end in peek < loop < run", known.title)
    assert not is_close(other.title, known.title)


def test_a_hang_without_a_stack_keeps_its_name() -> None:
    known = Signature("hang", "does not end in loop")
    (same,) = run(hanging("").reproduce(Path("input"), tries=1, known=known)).signatures
    assert same.title == known.title
