"""The commands of the placement guide run, in its order, on an installation of their own."""

from pathlib import Path

from tests.cli.guide import carry_out
from tests.cli.program import Program


def test_every_command_of_the_guide_runs(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    with program.running("up", "--port", "0", "--workers", "1", "--slots", "2") as process:
        assert process.stdout is not None
        assert "windlass is up at http://127.0.0.1:" in process.stdout.readline()
        assert program("run", "--", "true").returncode == 0  # so the worker is there
        shown = "\n".join(carry_out("placement.md", program, tmp_path))
    assert "needs memory ≥ 8 TiB, has " in shown
    assert "to end\n    because job " in shown
    assert "takes no jobs: draining" in shown
