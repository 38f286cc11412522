"""The commands of the guide to placement run, in its order, on an installation of their own."""

import re
import subprocess
from pathlib import Path

from tests.cli.program import LONGEST_S, Program

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guides" / "placement.md"
BLOCK = re.compile(r"^```sh\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_every_command_of_the_guide_runs(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    said = []
    with program.running("up", "--port", "0", "--workers", "1", "--slots", "2") as process:
        assert process.stdout is not None
        assert "windlass is up at http://127.0.0.1:" in process.stdout.readline()
        assert program("run", "--", "true").returncode == 0  # so the worker is there
        for block in BLOCK.finditer(GUIDE.read_text()):
            done = subprocess.run(
                ["sh", "-eu", "-c", block["text"]], cwd=tmp_path,
                env=program.environment,
                capture_output=True, text=True, timeout=2 * LONGEST_S, check=False,
            )  # fmt: skip
            assert done.returncode == 0, (block["text"], done.stdout, done.stderr)
            said.append(done.stdout)
    shown = "\n".join(said)
    assert "needs memory ≥ 8TiB, has " in shown
    assert "to end\n    because job " in shown
    assert "takes no further job: needs a worker that takes jobs, has draining" in shown
