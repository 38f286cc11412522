"""`windlass simulate`: results as JSON, and an exit code that shows violations."""

import json
import subprocess
import sys

import pytest

from windlass.cli.app import run_command
from windlass.cli.commands import simulate as command
from windlass.engine.verify import Violation
from windlass.simulator.simulation import Result


def result(seed: int, *violations: Violation) -> Result:
    return Result(seed, "memory", 1, 5, 40, 60_000, {"reply_lost": 2}, list(violations), "00ff")


def run(*words: str) -> object:
    """Returns the exit code of the command."""
    with pytest.raises(SystemExit) as end:
        run_command(["simulate", *words])
    return end.value.code


def test_json_holds_the_whole_result(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--seed", "5", "--jobs", "8", "--json") == 0
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
    assert run("--seeds", "3") == 1
    shown = capsys.readouterr().out
    assert "S3 job 7 at event 30: attempt 1 was assigned twice" in shown
    assert "to repeat: windlass simulate --seed 2" in shown
    assert "3 seeds, 1 broke an invariant" in shown
    assert "reply_lost: 6" in shown


def test_no_violation_is_a_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "simulate", lambda seed, jobs: result(seed))
    assert run("--seeds", "2") == 0
    assert "2 seeds, 0 broke an invariant" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--seed", "1", "--seeds", "2"), "--seed and --seeds exclude each other"),
        (("--seeds", "0"), "expected --seeds to be 1 or more"),
    ],
)
def test_impossible_seeds_are_refused(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    assert said in capsys.readouterr().err


def test_the_package_is_the_same_program() -> None:
    words = [sys.executable, "-m", "windlass.simulator", "--seed", "x"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "windlass: " in done.stderr
