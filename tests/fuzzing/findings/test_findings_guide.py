"""The guides to engines, findings and issues: their options are valid, their commands exist."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.fuzzing.support.scripted_solver import World
from windlass_fuzz.cli.commands import fuzz
from windlass_fuzz.config.solver_file import parse_solver
from windlass_fuzz.engines.engine import Target, engine_names, make_engine
from windlass_fuzz.trackers.options import issue_options

GUIDES = Path(__file__).parents[3] / "docs" / "guides"
PAGE = "".join(
    (GUIDES / f"fuzzing-{name}.md").read_text() for name in ("engines", "findings", "issues")
)


def described() -> dict[str, Any]:
    """Returns all YAML of the page as one document."""
    blocks = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return {key: value for block in blocks for key, value in yaml.safe_load(block).items()}


def test_the_options_are_accepted(tmp_path: Path) -> None:
    world = World(tmp_path)
    options = described()
    target = Target(
        tmp_path, options["engine"], tmp_path, world.clock, world.pipeline.runtime.chance
    )
    make_engine(options["engine"]["name"], target)
    assert issue_options(options["issues"]) is not None
    parts = {name: options[name] for name in ("signature", "findings", "health", "bisect", "seeds")}
    text = f"{world.description}\n{yaml.safe_dump(parts)}"
    assert parse_solver(text.encode(), Path("toy.yaml")).findings.inputs == 10


def test_every_engine_has_its_row() -> None:
    table = PAGE.partition("## Engines")[2].partition("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) == [
        "command", "libfuzzer", "afl", "typefuzz",
    ]  # fmt: skip
    assert len(engine_names()) == 4


@pytest.mark.parametrize("command", re.findall(r"`windlass fuzz ([a-z ]+?) SOLVER", PAGE))
def test_every_command_is_there(command: str) -> None:
    app = fuzz
    for word in command.split():
        assert word in app, f"windlass fuzz has no {command}"
        app = app[word]
