"""docs/guides/backups.md, as it is written: a copy in use, and putting it back."""

import re
import shutil
from datetime import datetime
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.store.sqlite.damaging import make_filled
from tests.support.running import run
from windlass.assembly.backend import ServerOptions, running_backend
from windlass.clock import RealClock
from windlass.domain.config import Config

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
    forgotten = program("up", "--port", "0", "--workers", "0")
    assert (forgotten.returncode, "windlass db restored" in forgotten.stderr) == (5, True)
    assert program.text(*put_back).startswith("epoch 1 has begun")
    with program.running("up", "--port", "0", "--workers", "0") as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert [str(job["id"]) for job in program.json("jobs")] == [first]
        verified = program.json("verify")
        assert (verified["violations"], len(verified["notes"])) == ([], 1)
        lost = program("show", str(int(first) + 1))
        assert (lost.returncode, "was lost: the restore" in lost.stderr) == (4, True)
        assert int(program.text("submit", "--", "true")) > 10**9


def test_a_backup_of_any_file(tmp_path: Path) -> None:
    make_filled(tmp_path / "other.db", jobs=10)
    program = Program(tmp_path / "data")
    copy = tmp_path / "copy.db"
    assert str(copy) in program.text("db", "backup", str(copy), "--store", url(tmp_path))
    assert copy.exists()
    nowhere = program(
        "db", "backup", str(tmp_path / "x"), "--store", f"sqlite://{tmp_path}/none.db"
    )
    assert (nowhere.returncode, "an existing database" in nowhere.stderr) == (2, True)


def test_the_first_token_is_made_without_a_server_and_kept_in_its_file(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    store, file = ("--store", url(tmp_path)), tmp_path / "admin-token"
    for _ in range(2):
        assert program.text("db", "token", "me", *store, "--file", str(file)) == ""
    other = program.text("db", "token", "robot", "--role", "viewer", *store)
    refused = program("db", "token", "me", *store)
    assert (refused.returncode, "me" in refused.stderr) == (5, True)
    words = ("--store", url(tmp_path), "--blobs", "memory:", "--listen", "127.0.0.1:0")
    with program.running("server", *words) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        secret = file.read_text().strip()
        for token, name in ((secret, "me"), (other, "robot")):
            said = program("whoami", WINDLASS_SERVER=address, WINDLASS_TOKEN=token)
            assert name in said.stdout, said
        listed = program("tokens", "--json", WINDLASS_SERVER=address, WINDLASS_TOKEN=secret)
        assert listed.stdout.count('"me"') == 1
    assert file.stat().st_mode & 0o777 == 0o600


def test_for_postgresql_the_tools_are_named_without_the_password(tmp_path: Path) -> None:
    address = "postgresql://me:secret@db.example/jobs?password=secret&sslmode=require"
    done = Program(tmp_path)("db", "backup", "jobs.dump", "--store", address)
    shown = "postgresql://me@db.example/jobs?sslmode=require"
    assert done.returncode == 2
    assert f"pg_dump --format=custom --file=jobs.dump {shown}" in done.stderr
    assert f"pg_restore --clean --if-exists --dbname={shown} jobs.dump" in done.stderr
    assert f"windlass db restored --store {shown}" in done.stderr
    assert "secret" not in done.stderr


def test_after_a_restore_jobs_are_held_back_by_the_servers_settings(tmp_path: Path) -> None:
    lease = Config(heartbeat_timeout_ms=12_000, heartbeat_interval_ms=2_000, term_grace_ms=2_000)

    async def serve() -> None:
        async with running_backend(ServerOptions(url(tmp_path), "memory:", lease)):
            pass

    run(serve())
    program = Program(tmp_path)
    assert held_back(program, url(tmp_path)) == pytest.approx(14, abs=5)
    program.environment["WINDLASS_HEARTBEAT_TIMEOUT"] = "200s"
    assert held_back(program, url(tmp_path)) == pytest.approx(210, abs=5)


def held_back(program: Program, address: str) -> float:
    """Returns for how many seconds jobs are held back from now."""
    until = program.json("db", "restored", "--store", address)["hold_until"]
    return datetime.fromisoformat(until).timestamp() - RealClock().now_ms() / 1000


def url(folder: Path) -> str:
    return f"sqlite://{folder}/other.db"


def commands() -> list[list[str]]:
    """The commands of the guide, without the name of the program."""
    blocks = re.findall(r"```sh\n\s*windlass (.*?)\n\s*```", GUIDE)
    assert len(blocks) == 2
    return [block.split() for block in blocks]
