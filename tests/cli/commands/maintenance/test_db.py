"""docs/guides/backups.md, as it is written: a copy in use, and putting it back."""

import re
import shutil
from pathlib import Path

from tests.cli.program import Program

GUIDE = Path("docs/guides/backups.md").read_text()


def test_a_copy_of_a_running_server_is_put_back(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    copy = tmp_path / "windlass-backup.db"
    with program.running("up", "--port", "0", "--workers", "0") as process:
        assert process.stdout is not None
        process.stdout.readline()
        first = program.text("submit", "--", "true")
        make, put_back = commands()
        assert str(copy) in program.text(*[str(copy) if w == copy.name else w for w in make])
        assert program("db", "backup", str(copy)).returncode == 2  # there is one
        program.text("submit", "--", "true")
        refused = program(*put_back)
        assert (refused.returncode, "stop it first" in refused.stderr) == (5, True)
    for name in ("windlass.db-wal", "windlass.db-shm"):
        (tmp_path / "data" / name).unlink(missing_ok=True)
    shutil.copy(copy, tmp_path / "data" / "windlass.db")
    assert program.text(*put_back).startswith("epoch 1 has begun")
    with program.running("up", "--port", "0", "--workers", "0") as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [str(job["id"]) for job in program.json("jobs")] == [first]
        assert program.json("verify") == {"violations": []}


def commands() -> list[list[str]]:
    """The commands of the guide, without the name of the program."""
    blocks = re.findall(r"```sh\n\s*windlass (.*?)\n\s*```", GUIDE)
    assert len(blocks) == 2
    return [block.split() for block in blocks]
