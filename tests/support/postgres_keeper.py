"""The process that owns one PostgreSQL server on behalf of a test run or a benchmark.

It is started with one JSON argument, answers one JSON line (`port` or `error`), and then
waits. When its input closes or its parent is gone it stops the server and removes the
data. It stands alone: nothing but the standard library, no import from this repository.
"""

import ctypes
import json
import os
import pwd
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

START_SECONDS = 60
PORT_ATTEMPTS = 5
POLL_SECONDS = 0.02
PARENT_CHECK_SECONDS = 0.5
PR_SET_PDEATHSIG = 1


def main() -> None:
    """Keep a server running for as long as the parent wants it."""
    order = json.loads(sys.argv[1])
    parent = os.getppid()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    folder = Path(tempfile.mkdtemp(prefix="windlass-pg-", dir=order["base"]))
    server = None
    try:
        server, port = start(order, folder)
        answer({"port": port})
        wait_for_the_end(parent, server)
    except (RuntimeError, OSError) as problem:
        answer({"error": str(problem)})
    finally:
        stop(server)
        shutil.rmtree(folder, ignore_errors=True)


def answer(message: dict[str, Any]) -> None:
    try:
        print(json.dumps(message), flush=True)
    except BrokenPipeError:
        pass  # The parent is gone, and so is the need for an answer.


def start(order: dict[str, Any], folder: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Create the data and start a server on a port that is really free."""
    identity = unprivileged(folder)
    make_data(order, folder, identity)
    for _ in range(PORT_ATTEMPTS):
        port = free_port()
        server = launch(order, folder, identity, port)
        if is_ready(folder, server):
            return server, port
        stop(server)
    raise RuntimeError(log_tail(folder))


def unprivileged(folder: Path) -> dict[str, Any]:
    """Subprocess arguments that give up root, and hand `folder` to that user."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def make_data(order: dict[str, Any], folder: Path, identity: dict[str, Any]) -> None:
    program, data = ("pg_basebackup" if order["standby_of"] else "initdb"), str(folder / "data")
    command = [f"{order['programs']}/{program}", "-D", data]
    if order["standby_of"]:
        options = ["-d", order["standby_of"], "-R", "-c", "fast", "--no-sync"]
    else:
        options = ["-U", order["user"], "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        options.append("--no-instructions")
    done = subprocess.run(
        command + options, cwd=folder, capture_output=True, text=True, check=False, **identity
    )
    if done.returncode:
        raise RuntimeError(f"{program}: {done.stderr.strip()}")


def launch(
    order: dict[str, Any], folder: Path, identity: dict[str, Any], port: int
) -> subprocess.Popen[bytes]:
    """Start the server itself; it quits when this process dies, however that happens."""
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": str(folder),
        **order["settings"],
    }
    command = [f"{order['programs']}/postgres", "-D", str(folder / "data")]
    for name, value in settings.items():
        command += ["-c", f"{name}={value}"]
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=quit_with_the_keeper,  # noqa: PLW1509 - the keeper has no threads
            **identity,
        )


def quit_with_the_keeper() -> None:
    """Ask Linux to send SIGQUIT, PostgreSQL's immediate shutdown, when the keeper dies."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def is_ready(folder: Path, server: subprocess.Popen[bytes]) -> bool:
    """Wait until the server accepts connections; False when it gave up or took too long."""
    status = folder / "data" / "postmaster.pid"
    give_up_at = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < give_up_at:
        lines = status.read_text().splitlines() if status.exists() else []
        if len(lines) > 7 and lines[7].strip() == "ready":
            return True
        time.sleep(POLL_SECONDS)
    return False


def wait_for_the_end(parent: int, server: subprocess.Popen[bytes]) -> None:
    """Return when the input closes, the parent is gone, or the server died.

    The parent is looked at as well because a child it forked may hold the input open.
    """
    while os.getppid() == parent and server.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], PARENT_CHECK_SECONDS)
        if readable and not os.read(sys.stdin.fileno(), 1):
            return


def stop(server: subprocess.Popen[bytes] | None) -> None:
    """Shut down at once: the data goes away with the server."""
    if server is None or server.poll() is not None:
        return
    server.send_signal(signal.SIGQUIT)
    try:
        server.wait(10)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()


def log_tail(folder: Path) -> str:
    log = folder / "log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return " / ".join(lines[-5:]) or "it left no log"


if __name__ == "__main__":
    main()
