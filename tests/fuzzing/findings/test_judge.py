"""How often an input failed, where runs are stopped by a limit."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.running import run
from windlass.fuzzing.engines.engine import Verdict
from windlass.fuzzing.findings.judge import Judge

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
