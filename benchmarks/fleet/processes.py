"""Windlass as people start it: servers and workers as processes of the command line."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from windlass.client.blocking.client import Client
from windlass.messages.workers import WorkerList

READY_SECONDS = 60
STOP_SECONDS = 30
POLL_SECONDS = 0.01
LAST_WORDS = 2_000
ISOLATION = "WINDLASS_ISOLATION"
T = TypeVar("T")

ADDRESS = re.compile(r"https?://\S+")


class Server:
    """A running server, and a client of it with the admin's token."""

    def __init__(self, pid: int, address: str, data: Path) -> None:
        self.pid = pid
        self.address = address
        self.data = data
        self.token = (data / "admin-token").read_text().strip()

    def client(self) -> Client:
        """A new client, to be closed by the caller."""
        return Client(self.address, self.token)


@contextmanager
def server(
    folder: Path, store: str | None = None, settings: Mapping[str, str] | None = None
) -> Iterator[Server]:
    """A server on a new SQLite file below `folder`, or on `store`.

    `settings` are options of the core by name, given through the environment.
    """
    folder.mkdir(parents=True, exist_ok=True)
    store = store or f"sqlite://{folder / 'windlass.db'}"
    command = ["server", "--store", store, "--blobs", f"file://{folder / 'blobs'}"]
    command += ["--listen", "127.0.0.1:0", "--data", str(folder)]
    extra = {f"WINDLASS_{name.upper()}": value for name, value in (settings or {}).items()}
    with windlass(folder / "server.log", command, extra) as process:
        address = until("the server's address", lambda: _address(folder / "server.log", process))
        yield Server(process.pid, address, folder)


@contextmanager
def worker(server: Server, name: str, slots: int) -> Iterator[int]:
    """A worker that has enrolled with `server`; gives its process id."""
    folder = server.data / name
    folder.mkdir()
    command = ["worker", "--server", server.address, "--name", name]
    command += ["--slots", str(slots), "--state", str(folder / "state")]
    extra = {"WINDLASS_TOKEN": server.token}
    with (
        windlass(folder / "worker.log", command, extra) as process,
        server.client() as client,
    ):
        until(
            f"{name} to enrol",
            lambda: name in _worker_names(client) or _ended(process, folder / "worker.log"),
        )
        yield process.pid


@contextmanager
def direct_worker(folder: Path, store: str, name: str, slots: int) -> Iterator[int]:
    """A worker straight on a store; gives its process id."""
    folder.mkdir(parents=True)
    command = ["worker", "--store", store, "--blobs", f"file://{folder.parent / 'blobs'}"]
    command += ["--name", name, "--slots", str(slots), "--state", str(folder / "state")]
    log = folder / "worker.log"
    with windlass(log, command, {}) as process:
        until(f"{name} to enrol", lambda: "enrolled" in log.read_text() or _ended(process, log))
        yield process.pid


@contextmanager
def windlass(
    log: Path, arguments: list[str], extra: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the command line that writes to `log`; it is stopped in the end."""
    command = [sys.executable, "-m", "windlass", *arguments]
    # As the peers do; `WINDLASS_ISOLATION=sandbox` measures what a sandbox costs.
    mode = {ISOLATION: os.environ.get(ISOLATION, "process")}
    with stopped_in_the_end(command, log, {**mode, **extra}) as process:
        yield process


@contextmanager
def stopped_in_the_end(
    command: list[str], log: Path, extra: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Any process that ends on SIGTERM, and by force if it does not."""
    env = {**os.environ, **(extra or {})}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=env, start_new_session=True
        )
    try:
        yield process
    finally:
        _stop(process)


def until(what: str, found: Callable[[], T | None], seconds: float = READY_SECONDS) -> T:
    """The first true answer of `found`; raises, naming `what`, when there is none in time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        answer = found()
        if answer:
            return answer
        time.sleep(POLL_SECONDS)
    raise RuntimeError(f"waited {seconds:.0f} s in vain for {what}")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _address(log: Path, process: "subprocess.Popen[bytes]") -> str | None:
    found = ADDRESS.search(log.read_text())
    if found is None:
        _ended(process, log)
        return None
    return found[0]


def _ended(process: "subprocess.Popen[bytes]", log: Path) -> bool:
    """False as long as the process runs; raises, with its last words, when it does not."""
    if process.poll() is not None:
        said = log.read_text()[-LAST_WORDS:]
        raise RuntimeError(f"{process.args!r} ended with {process.returncode}:\n{said}")
    return False


def _worker_names(client: Client) -> set[str]:
    call = client.asynchronous.transport.call
    found = client.run(call("GET", "/api/v1/workers", WorkerList))
    return {worker.name for worker in found.workers}
