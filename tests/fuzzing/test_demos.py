"""Both demos run from start to end, with tiny budgets."""

import shutil

import pytest

from examples import fuzz_demo, typefuzz_demo
from tests.cli.program import run_here
from tests.support.debian import missing_reason


@pytest.mark.skipif(shutil.which("g++") is None, reason=missing_reason("g++") or "")
def test_demo_fuzz_finds_the_bug_names_the_commit_and_sees_it_closed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fuzz_demo.run("1s", run_here)
    said = capsys.readouterr().out
    assert "Fold constants before the search" in said
    assert "refused: the change brings a fixed bug back" in said
    assert "done: found, dated, reported, fixed, closed, refused" in said


def test_demo_typefuzz_calls_both_solvers_and_catches_a_lie(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert typefuzz_demo.run("6s").executions > 0
    said = capsys.readouterr().out
    assert "answers differ" in said
    assert "str.len" in said
