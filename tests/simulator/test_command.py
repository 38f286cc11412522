"""The command line: results as JSON, and an exit code that shows violations."""

import json

import pytest

from windlass.engine.verify import Violation
from windlass.simulator import __main__ as command
from windlass.simulator.run.simulation import Result


def result(seed: int, *violations: Violation) -> Result:
    return Result(seed, "memory", 1, 5, 40, 60_000, {"reply_lost": 2}, list(violations), "00ff")


def test_json_holds_the_whole_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--seed", "5", "--jobs", "8", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["seed"] == 5
    assert shown["violations"] == []
    assert len(shown["log_hash"]) == 64


def test_a_violation_is_explained_with_the_seed_to_repeat(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = Violation("S3", "attempt 1 was assigned twice", 7, 30)
    monkeypatch.setattr(
        command, "simulate", lambda seed, jobs: result(seed, *([broken] if seed == 2 else []))
    )
    assert command.main(["--seeds", "3"]) == 1
    shown = capsys.readouterr().out
    assert "S3 job 7 at event 30: attempt 1 was assigned twice" in shown
    assert "to repeat: python -m windlass.simulator --seed 2" in shown
    assert "3 seeds, 1 broke an invariant" in shown
    assert "reply_lost: 6" in shown


def test_no_violation_is_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "simulate", lambda seed, jobs: result(seed))
    assert command.main(["--seeds", "2"]) == 0
