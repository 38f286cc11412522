"""Jobs of workers that a server here has started do not read the server's own files."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cli.program import MAX_S, Program
from tests.support.unprivileged import become_user
from windlass.cli.commands.start.hidden_from_jobs import (
    HIDE_VARIABLE,
    folders_of,
    hidden_folders,
    hide_from_jobs,
)

READ = 'cat "$0/admin-token" "$0/windlass.db" "$0/server.json"'


@contextmanager
def _up(place: Path) -> Iterator[Program]:
    """`windlass up` of an ordinary user, whose data directory is named by an option only."""
    (place / "home").mkdir()
    (place / "secrets").mkdir()
    (place / "secrets" / "DEPLOY_KEY").write_text("sesame")
    place.chmod(0o755)
    program = Program(place / "data")
    environ = {
        name: value for name, value in program.environment.items() if name != "WINDLASS_DATA"
    }
    environ["HOME"] = str(place / "home")
    words = become_user(place, place / "home") if os.geteuid() == 0 else []
    words += [sys.executable, "-m", "windlass", "up", "--data", str(place / "data"), "--port", "0"]
    words += ["--secrets", str(place / "secrets")]
    with subprocess.Popen(
        words, env=environ, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdout is not None
        try:
            while (line := process.stdout.readline()) and b"try: windlass run" not in line:
                pass
            yield program
        finally:
            process.terminate()
            process.stdout.read()
            process.wait(MAX_S)


def test_a_job_does_not_read_the_data_directory_that_up_was_given() -> None:
    with (
        tempfile.TemporaryDirectory(prefix="windlass-", ignore_cleanup_errors=True) as folder,
        _up(Path(folder)) as program,
    ):
        done = program("run", "--", "sh", "-c", READ, str(program.data))
        assert done.returncode != 0
        assert "wl_" not in done.stdout
        own = program("run", "--", "sh", "-c", 'echo a > "$PWD/b" && cat b')
        assert own.stdout.splitlines()[-1] == "a", own.stderr
        key = "--secret", "DEPLOY_KEY", "--"
        secret = program("run", *key, "sh", "-c", 'echo "${#DEPLOY_KEY} letters"')
        assert secret.stdout.splitlines()[-1] == "6 letters", secret.stderr
        place = Path(folder, "secrets", "DEPLOY_KEY")
        assert program("run", "--", "cat", str(place)).returncode != 0


def test_workers_are_told_of_every_folder_of_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, store, blobs = (tmp_path / name for name in ("data", "a b", "blobs"))
    found = folders_of(data, f"sqlite://{store}/jobs.db", f"file://{blobs}")
    environ = {HIDE_VARIABLE: "/before"}
    hide_from_jobs(found, environ)
    hide_from_jobs(found, environ)
    assert hidden_folders(environ) == (Path("/before"), data, store, blobs)
    monkeypatch.chdir(tmp_path)
    kept = folders_of(data, f"sqlite://{tmp_path}/jobs.db", "s3://bucket")
    assert kept == [data]  # functions are imported from the working directory
    assert folders_of(data, "postgresql://db", "memory:") == [data]
