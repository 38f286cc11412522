"""The commands of the guide to workflows run, on the files it shows."""

from pathlib import Path

from tests.cli.guide import carry_out
from tests.cli.program import Program


def test_every_command_of_the_guide_runs(up: Program, tmp_path: Path) -> None:
    assert carry_out("workflows.md", up, tmp_path)
    assert list(tmp_path.glob("*.yaml"))
