"""The published schema says what the program accepts."""

from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml

from windlass.workflows.expansion import expand
from windlass.workflows.format import published
from windlass.workflows.nodes import Misdescribed

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples" / "workflows").glob("*.yaml"))
JOB = {"run": ["true"]}

# fmt: off
WRONG: list[dict[str, Any]] = [
    {"jobs": {}},
    {"name": "w", "jobs": []},
    {"name": "w", "jobs": {"a": {**JOB, "retries": "three"}}},
    {"name": "w", "jobs": {"a": {**JOB, "unblock": "never"}}},
    {"name": "w", "jobs": {"a": {**JOB, "colour": "red"}}},
    {"name": "w", "jobs": {"a": {"run": {"make": "all"}}}},
    {"name": "w", "fail_fast": 1, "jobs": {}},
    {"name": "w", "parameters": {"x": {"type": "map"}}, "jobs": {}},
    {"name": "w", "jobs": {"a": {**JOB, "after": [{"a": "b"}]}}},
    {"name": "w", "jobs": {"a": {**JOB, "matrix": {"x": 3}}}},
]
RIGHT: list[dict[str, Any]] = [
    {"name": "w", "jobs": {}},
    {"name": "w", "jobs": {"a": {**JOB, "retries": 3, "after": 7, "env": {"A": 1.5}}}},
    {"name": "w", "parameters": {"n": {"default": 2}},
     "jobs": {"a": {**JOB, "retries": "${{ parameters.n }}", "count": "${{ parameters.n }}"}}},
    {"name": "w", "jobs": {"a": {**JOB, "matrix": {"x": [1], "include": [{"x": 2}]}}}},
]
# fmt: on


@pytest.mark.parametrize("description", WRONG)
def test_what_the_schema_refuses_the_program_refuses(description: dict[str, Any]) -> None:
    assert not jsonschema_rs.is_valid(published(), description)
    with pytest.raises(Misdescribed):
        expand(description, {})


@pytest.mark.parametrize("description", RIGHT)
def test_what_the_schema_accepts_the_program_accepts(description: dict[str, Any]) -> None:
    assert jsonschema_rs.is_valid(published(), description)
    expand(description, {})


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_examples_fit_the_schema(file: Path) -> None:
    assert jsonschema_rs.is_valid(published(), yaml.safe_load(file.read_text()))


def test_there_are_examples() -> None:
    assert EXAMPLES
