"""The branches of a solver file: names, patterns, and what is refused."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.fuzzing.config.test_settings import SETTINGS
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.config.branch_names import for_github, matches
from windlass_fuzz.config.fleet_schedules import WorkerCommand, job_of
from windlass_fuzz.config.solver_file import Solver, parse_solver


def solver(**changes: Any) -> Solver:
    return parse_solver(yaml.safe_dump(SETTINGS | changes).encode(), Path("toy.yaml"))


def test_one_branch_is_as_before() -> None:
    assert solver().watched == ("main",)
    assert solver(branch="trunk").watched == ("trunk",)
    alone = solver(branches=["trunk"])
    assert (alone.branch, alone.watched, alone.has_branches) == ("trunk", ("trunk",), False)


def test_several_branches_start_with_a_name() -> None:
    several = solver(branches=["trunk", "release/*", "next"])
    assert (several.branch, several.has_branches) == ("trunk", True)
    assert several.watched == ("trunk", "release/*", "next")
    assert several.branch_names == ("trunk", "next")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"branches": []}, "expected branches to be a non-empty list"),
        ({"branches": ["release/*"]}, "first of branches must be a name"),
        ({"branches": ["main", "next", "main"]}, "branches lists main twice"),
        ({"branches": ["main", "a b"]}, "expected branches to be the name of a branch, got a b"),
        ({"branches": ["main", "-x"]}, "the name of a branch"),
        ({"branches": ["main", "a..b"]}, "the name of a branch"),
        ({"branches": ["main", "release/[0-9]"]}, "the name of a branch"),
        ({"branches": "main"}, "branches"),
        ({"branch": "next", "branches": ["main"]}, "remove branch"),
    ],
)
def test_a_mistake_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        solver(**changes)
    assert message in refused.value.message


@pytest.mark.parametrize("branches", [(), ("main",), ("main", "release/*")])
def test_the_jobs_of_a_fleet_read_the_same_branches(branches: tuple[str, ...]) -> None:
    told = solver(**({"branches": list(branches)} if branches else {}))
    job = job_of(told, "manager", WorkerCommand("s3://bucket", None, "windlass"))
    assert job.args is not None
    read = parse_solver(str(job.args["stdin"]).encode(), Path("standard input"))
    assert read == msgspec.structs.replace(told, bucket="s3://bucket")


@pytest.mark.parametrize(
    ("pattern", "fits", "others"),
    [
        ("release/*", ["release/1", "release/1.2"], ["release", "release/1/x", "xrelease/1"]),
        ("release/**", ["release/1", "release/1/x"], ["release"]),
        ("v*.x", ["v1.x", "v.x"], ["v1yx", "v1.x2"]),
        ("main", ["main"], ["main2", "mai"]),
    ],
)
def test_a_star_stands_for_a_part_of_a_name(
    pattern: str, fits: list[str], others: list[str]
) -> None:
    assert all(matches(pattern, name) for name in fits)
    assert not any(matches(pattern, name) for name in others)


def test_signs_that_mean_something_to_github_are_escaped() -> None:
    assert for_github("release/*") == "release/*"
    assert for_github("c++") == r"c\+\+"
