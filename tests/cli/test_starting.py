"""What a start refuses, what commands say without a server, and what a stop leaves."""

import os
import signal
from pathlib import Path

from tests.cli.program import Program

STOP_S = 20


def test_without_a_server_the_error_says_how_to_start_one(tmp_path: Path) -> None:
    program = Program(tmp_path)
    unknown = program("jobs")
    assert unknown.returncode == 3
    assert "windlass up" in unknown.stderr
    silent = program("jobs", WINDLASS_SERVER="http://127.0.0.1:9")
    assert silent.returncode == 3
    assert "no server at http://127.0.0.1:9" in silent.stderr
    assert "windlass up" in silent.stderr
    assert program("doctor").returncode == 1


def test_beyond_this_machine_a_server_needs_a_token(tmp_path: Path) -> None:
    program = Program(tmp_path)
    store, blobs = f"sqlite://{tmp_path}/windlass.db", f"file://{tmp_path}/blobs"
    done = program("server", "--store", store, "--blobs", blobs, "--listen", "0.0.0.0:0")
    assert done.returncode == 2
    assert "loopback" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_stop_leaves_no_process_behind(tmp_path: Path) -> None:
    program = Program(tmp_path)
    process = program.start("up", "--port", "0", "--workers", "1")
    try:
        assert process.stdout is not None
        assert "is up" in process.stdout.readline()
        assert program("run", "--", "true").returncode == 0  # so the worker runs too
        assert len(_processes(tmp_path)) >= 2
        process.terminate()
        process.communicate(timeout=STOP_S)
        assert process.returncode == 0
        assert _processes(tmp_path) == []
        assert not (tmp_path / "server.json").exists()
    finally:
        for left in _processes(tmp_path):
            os.kill(left, signal.SIGKILL)
        process.communicate()


def _processes(data: Path) -> list[int]:
    """Processes that were started with this data directory in their environment."""
    mark = f"WINDLASS_DATA={data}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if mark in variables:
                found.append(int(entry.name))
    return found
