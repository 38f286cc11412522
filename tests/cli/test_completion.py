"""Completion in the shell."""

import shutil
import subprocess
from pathlib import Path

from tests.cli.program import Program
from windlass.cli.root import app

MAX_S = 180


def test_bash_accepts_the_script_and_completes_commands(tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(app.generate_completion(shell="bash"))
    bash = shutil.which("bash")
    assert bash is not None
    asked = (
        f"source {script}; COMP_WORDS=(windlass prior); COMP_CWORD=1; "
        "$(complete -p windlass | sed -E 's/.*-F ([^ ]+).*/\\1/') windlass prior windlass; "
        'echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        [bash, "--norc", "-c", asked],
        capture_output=True, text=True, timeout=MAX_S, check=False,
    )  # fmt: skip
    assert done.stdout.split() == ["prioritize"], done.stderr


def test_it_is_installed_into_the_home_of_the_user(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    done = program("--install-completion", "--shell", "bash", HOME=str(tmp_path), SHELL="/bin/bash")
    assert done.returncode == 0, done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("prioritize" in path.read_text() for path in written)
