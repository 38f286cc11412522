"""Runs the commands of the fuzzing guide on the files it shows, block by block."""

from pathlib import Path

import msgspec
import yaml

from tests.cli.guide import BLOCK, GUIDES, carry_out_in_one_shell
from tests.cli.program import Program
from windlass_fuzz.config.solver_file import Role, RoleSettings


def test_every_command_of_the_guide_runs(up: Program, tmp_path: Path) -> None:
    places = {"WINDLASS_FUZZ_WORK": "work", "WINDLASS_FUZZ_BUCKET": "bucket"}
    whole = {name: str(tmp_path / folder) for name, folder in places.items()}
    said = carry_out_in_one_shell("fuzzing.md", up, tmp_path, **whole)
    _, init, roles, findings, _, steps = said
    fleet, actions = carry_out_in_one_shell("fuzzing-running.md", up, tmp_path, **whole)
    assert "removed after 7 days" in init
    assert "would build" in roles
    assert "would fuzz" in roles
    assert "schedule" in roles
    assert "SIGSEGV" in findings
    assert "done" in steps
    assert "fuzz-toy-fuzzer" in fleet
    assert "fuzz-toy-coverage.yml" in actions


def test_every_command_of_the_guide_about_the_matrix_runs(up: Program, tmp_path: Path) -> None:
    places = {"WINDLASS_FUZZ_WORK": "work", "WINDLASS_FUZZ_BUCKET": "bucket"}
    whole = {name: str(tmp_path / folder) for name, folder in places.items()}
    said = carry_out_in_one_shell("fuzzing-matrix.md", up, tmp_path, **whole)
    _, commit, coverage, time, findings = said
    assert "last-undefined: " in commit
    assert "  count: " in coverage
    assert "  last: " in coverage
    assert "next run" in time
    assert "new finding" in time
    assert "count-address (count with command): 1 run, " in time
    assert findings.count("heap-buffer-overflow") == 1


def test_the_places_that_the_guide_shows_can_be_read() -> None:
    blocks = BLOCK.finditer((GUIDES / "fuzzing-running.md").read_text())
    fleet, actions = (
        msgspec.convert(yaml.safe_load(block["text"])["roles"], dict[Role, RoleSettings])
        for block in blocks
        if "roles:" in block["text"]
    )
    assert fleet["builder"].requires == ("git:available==true", "memory>=8GiB")
    assert actions["fuzzer"].runs_on == "self-hosted"
