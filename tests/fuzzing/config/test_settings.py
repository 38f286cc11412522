"""Mistakes in settings: the message names the key and suggests a spelling."""

from pathlib import Path
from typing import Any

import pytest

from windlass.clock import RealChance, RealClock
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.config.fleet_schedules import WorkerCommand, schedules_of
from windlass_fuzz.config.settings import convert_settings
from windlass_fuzz.config.solver_file import ROLES, Solver, find_solver
from windlass_fuzz.engines.engine import Target, make_engine
from windlass_fuzz.trackers.options import issue_options

SETTINGS: dict[str, Any] = {
    "name": "toy",
    "repository": "toy",
    "build": {"production": ["a"], "coverage": ["b"]},
    "binaries": ["toy"],
    "engine": {"name": "command"},
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"buckt": "x"}, "unknown key buckt; did you mean bucket?"),
        ({"zzz": "x"}, "unknown key zzz"),
        (
            {"build": {**SETTINGS["build"], "timout": "1h"}},
            "unknown key timout in build; did you mean timeout?",
        ),
        ({"roles": {"fuzzer": {"crn": "x"}}}, "unknown key crn in roles; did you mean cron?"),
        (
            {"roles": {"fuzer": {}}},
            f"unknown value fuzer in roles (known: {', '.join(ROLES)}); did you mean fuzzer?",
        ),
        (
            {"commits": {"source": "githb"}},
            "unknown value githb in commits.source (known: git, github); did you mean github?",
        ),
        ({"build": {"production": ["a"]}}, "key coverage is missing in build"),
        ({"binaries": "toy"}, "binaries: expected `array`, got `str`"),
    ],
)
def test_a_mistake_names_its_key_and_the_likely_spelling(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        convert_settings(SETTINGS | changes, Solver, "toy.yaml")
    assert str(refused.value) == f"toy.yaml: {message}"


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"queue": ""}, "queue"),
        ({"resources": {"cpus": -1}}, "cpus"),
        ({"secrets": ["a b"]}, "a b"),
    ],
)
def test_schedules_that_a_server_refuses_are_refused_before_it_is_asked(
    settings: dict[str, Any], named: str
) -> None:
    solver = convert_settings(SETTINGS | {"roles": {"fuzzer": settings}}, Solver, "toy.yaml")
    with pytest.raises(InvalidInput, match=named):
        schedules_of(solver, WorkerCommand("bucket"))


def test_a_misspelt_engine_or_option_gets_a_suggestion(tmp_path: Path) -> None:
    target = Target(tmp_path, {"argv": ["x"], "generat": []}, tmp_path, RealClock(), RealChance())
    with pytest.raises(InvalidInput, match="did you mean generate"):
        make_engine("command", target)
    with pytest.raises(InvalidInput, match=r"unknown engine comand .*did you mean command"):
        make_engine("comand", target)
    with pytest.raises(InvalidInput, match="did you mean project"):
        issue_options({"projct": "a/b"})


def test_a_misspelt_solver_gets_a_suggestion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solvers").mkdir()
    (tmp_path / "solvers" / "tinysolve.yaml").touch()
    with pytest.raises(InvalidInput, match=r"tinysolv does not exist.*did you mean tinysolve"):
        find_solver("tinysolv")
