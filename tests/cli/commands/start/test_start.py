"""What a start refuses, what commands say without a server, and what a stop leaves."""

import json
import os
import pty
import re
import select
import signal
import stat
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.support.loopback import free_port
from windlass.providers.local import workers_below
from windlass.server.serve import Listen, bind

STOP_S = 60


def test_without_a_server_the_error_says_how_to_start_one(tmp_path: Path) -> None:
    program = Program(tmp_path)
    unknown = program("jobs")
    assert unknown.returncode == 3
    assert "windlass up" in unknown.stderr
    silent = program("jobs", WINDLASS_SERVER="http://127.0.0.1:9")
    assert silent.returncode == 3
    assert "no server at http://127.0.0.1:9: Connection refused; start" in silent.stderr
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


def _fifo(path: Path) -> int:
    """A pipe with a name that is open at both ends, so that nobody waits for the other."""
    os.mkfifo(path)
    return os.open(path, os.O_RDWR)


def _is_up(process: "subprocess.Popen[str]") -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if "is up" in line:
            return
    raise AssertionError("it did not start")


@pytest.mark.parametrize("same", [True, False])
def test_the_workers_of_a_killed_up_are_adopted_or_replaced_and_end_with_the_next(
    tmp_path: Path, same: bool
) -> None:
    program = Program(tmp_path)
    port = str(free_port())
    started, gate = _fifo(tmp_path / "started"), _fifo(tmp_path / "gate")
    process = program.start("up", "--port", port, "--slots", "2")
    try:
        _is_up(process)
        script = f"echo go > {tmp_path}/started; read x < {tmp_path}/gate"
        job = program.text("submit", "--", "sh", "-c", script)
        assert select.select([started], [], [], STOP_S)[0]
        (worker,) = workers_below(tmp_path)
        process.kill()
        process.wait()  # Its worker still has its output.
        assert process.stdout is not None
        process.stdout.close()
        process = program.start("up", "--port", port, "--slots", "2" if same else "3")
        _is_up(process)
        if same:
            assert workers_below(tmp_path) == [worker]
        else:
            assert worker not in workers_below(tmp_path)
        assert program("up", "--port", "0").returncode == 5
        os.write(gate, b"go\n")
        program.text("logs", "--follow", job)
        shown = program.json("show", job)
        assert (shown["state"], shown["attempt"]) == ("completed", 1 if same else 2)
        process.terminate()
        process.communicate(timeout=STOP_S)
        assert process.returncode == 0
        assert _processes(tmp_path) == []
    finally:
        for left in _processes(tmp_path):
            os.kill(left, signal.SIGKILL)
        process.communicate()


def test_a_server_obeys_its_options_and_commands_find_it_until_it_stops(tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    options = ("--listen", "127.0.0.1:0", "--set", "payload_limit=2KiB")
    with program.running("server", *_place(tmp_path), *options) as process:
        assert process.stdout is not None
        assert "windlass server at http://127.0.0.1:" in process.stdout.readline()
        assert program.json("jobs") == []
        assert stat.S_IMODE((program.data / "server.json").stat().st_mode) == 0o600
        assert program("submit", "--", "echo", "x" * 1_000).returncode == 0
        large = program("submit", "--", "echo", "x" * 3_000)
        assert (large.returncode, "2048" in large.stderr) == (2, True), large.stderr
    assert not (program.data / "server.json").exists()


def test_a_server_that_was_killed_is_said_to_be_away_and_its_store_is_verified(
    tmp_path: Path,
) -> None:
    program = Program(tmp_path)
    with program.running("up", "--port", "0", "--workers", "0") as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        program.text("submit", "--", "true")
        process.kill()
    away = program("jobs")
    assert away.returncode == 3
    assert f"no server at {address}" in away.stderr
    assert "start one with `windlass up`" in away.stderr
    assert program("doctor").returncode == 1
    checked = program("verify", "--json")
    assert (checked.returncode, checked.stdout.split()) == (0, ["{", '"violations":', "[]", "}"])
    assert "no server is running" in checked.stderr
    assert program.json("verify", "--store", f"sqlite://{tmp_path}/windlass.db") == {
        "violations": []
    }
    assert program.text("db", "upgrade") == "the schema is up to date"
    assert program.json("db", "restored")["epoch"] == 1
    assert program.text("db", "restored").startswith("epoch 2 has begun; jobs start again at 2")


def test_what_is_no_store_is_not_made_by_looking_at_it(tmp_path: Path) -> None:
    program = Program(tmp_path)
    nothing = program("verify", "--store", f"sqlite://{tmp_path}/x.db")
    assert (nothing.returncode, "an existing database" in nothing.stderr) == (2, True)
    assert program("verify").returncode == 3
    assert program("db", "upgrade").returncode == 2
    assert program("db", "restored", "--store", f"sqlite://{tmp_path}/x.db").returncode == 2
    assert list(tmp_path.iterdir()) == []


def test_a_data_directory_that_others_see_is_a_problem(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    done = Program(tmp_path)("doctor", "--json")
    assert done.returncode == 1
    (finding,) = (f for f in json.loads(done.stdout) if f["check"] == "data directory")
    assert (finding["state"], "chmod 700" in finding["detail"]) == ("problem", True)


def _place(folder: Path) -> tuple[str, ...]:
    return ("--store", f"sqlite://{folder}/windlass.db", "--blobs", f"file://{folder}/blobs")


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


def test_a_file_that_cannot_be_written_is_named_without_a_traceback(tmp_path: Path) -> None:
    """As on a read-only file system; a directory in its place is refused to anyone."""
    program = Program(tmp_path / "data")
    (program.data / "admin-token").mkdir(parents=True)
    done = program("server", *_place(tmp_path), "--listen", "127.0.0.1:0")
    assert done.returncode == 5
    assert f"cannot use {program.data}/admin-token: Is a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_drain_tells_what_it_waits_for_and_a_second_interrupt_ends_it(tmp_path: Path) -> None:
    program = Program(tmp_path)
    started = _fifo(tmp_path / "started")
    process = program.start("up", "--listen", "127.0.0.1:0", "--workers", "1")
    try:
        _is_up(process)
        script = f"echo go > {tmp_path}/started; exec sleep 600"
        job = program.text("submit", "--name", "long", "--", "sh", "-c", script)
        assert select.select([started], [], [], STOP_S)[0]
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        waits = next(line for line in process.stdout if line.startswith("waiting"))
        assert waits == f"waiting for job {job} (long); Ctrl-C stops at once\n"
        assert "running" in program.text("show", job)  # commands still find the server
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=STOP_S)
        assert process.returncode == 0
        assert _processes(tmp_path) == []
    finally:
        for left in _processes(tmp_path):
            os.kill(left, signal.SIGKILL)
        process.communicate()


def test_an_address_in_use_is_named_with_a_way_out(tmp_path: Path) -> None:
    taken = bind(Listen(port=0))
    try:
        number = taken.getsockname()[1]
        done = Program(tmp_path)("up", "--port", str(number))
    finally:
        taken.close()
    assert done.returncode == 2
    said = f"(Address already in use), got 127.0.0.1:{number}; port 0 picks a free one\n"
    assert done.stderr.endswith(said)


POOL = """\
name: near
provider: local
max_workers: 1
target_latency_seconds: 0.1
expected_seconds: 60
"""


def test_a_drain_tells_of_jobs_on_workers_of_pools_too(tmp_path: Path) -> None:
    program = Program(tmp_path)
    started = _fifo(tmp_path / "started")
    (tmp_path / "near.yaml").write_text(POOL)
    process = program.start("up", "--port", "0", "--workers", "0", "--set", "pools_interval=100ms")
    try:
        _is_up(process)
        program.text("pools", "apply", str(tmp_path / "near.yaml"))
        script = f"echo go > {tmp_path}/started; exec sleep 600"
        job = program.text("submit", "--name", "long", "--", "sh", "-c", script)
        assert select.select([started], [], [], STOP_S)[0]
        process.send_signal(signal.SIGINT)
        assert process.stdout is not None
        waits = next(line for line in process.stdout if line.startswith("waiting for job"))
        assert waits == f"waiting for job {job} (long); Ctrl-C stops at once\n"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=STOP_S)
        assert process.returncode == 0
        assert _processes(tmp_path) == []
    finally:
        for left in _processes(tmp_path):
            os.kill(left, signal.SIGKILL)
        process.communicate()


def test_up_writes_no_secret_into_redirected_output(tmp_path: Path) -> None:
    program = Program(tmp_path)
    with program.running("up", "--listen", "0.0.0.0:0", "--workers", "0") as process:
        assert process.stdout is not None
        said = [process.stdout.readline().strip() for _ in range(5)]
        assert program.json("jobs") == []  # commands on this machine find it
    assert process.returncode == 0
    token = (tmp_path / "admin-token").read_text().strip()
    assert said[0].startswith("windlass is up at http://0.0.0.0:")
    assert said[2] == f"token in {tmp_path}/admin-token"
    assert said[3].endswith("(`windlass dashboard` prints a link that signs in)")
    assert not [line for line in said if token in line or "code=" in line]


def test_up_for_other_machines_prints_its_token_once_on_a_terminal(tmp_path: Path) -> None:
    program = Program(tmp_path)
    printed = []
    for _ in range(2):
        ours, theirs = pty.openpty()
        command = ("up", "--listen", "0.0.0.0:0", "--workers", "0")
        with (
            open(ours, encoding="utf-8") as terminal,
            program.running(*command, stdout=theirs) as process,
        ):
            os.close(theirs)
            said = [re.sub(r"\x1b\[[0-9;]*m", "", terminal.readline()) for _ in range(5)]
            assert said[0].startswith("windlass is up at http://0.0.0.0:")
            printed.append(said[2].strip())
            assert "/sign-in#code=link_" in said[3]
        assert process.returncode == 0
    token = (tmp_path / "admin-token").read_text().strip()
    assert printed == [f"token: {token}", f"token in {tmp_path}/admin-token"]
    assert program("up", "--listen", "0.0.0.0:0", "--port", "0").returncode == 2
