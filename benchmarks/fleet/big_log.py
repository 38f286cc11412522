"""Section: one job that writes 1 GB to its log, with no limit on logs.

The server's memory must not follow it, and the worker's heartbeats must go on meanwhile.
"""

import threading
import time
from typing import Self

from benchmarks.fleet.processes import Server, server, until, worker
from benchmarks.fleet.usage import peak_memory_mb
from benchmarks.options import Options
from benchmarks.report import Row
from windlass.client.blocking.client import Client
from windlass.domain.job.job import JobSpec
from windlass.domain.values.quantities import parse_moment
from windlass.messages.jobs import Job
from windlass.messages.workers import WorkerList

NAME = "big log"
MEMORY_MB = 200
HEARTBEAT_MS = 1_000
HEARTBEAT_TIMEOUT_MS = 9_000
# Heartbeats are quick here, so that a few seconds of log are many of them.
SETTINGS = {
    "log_limit": "0",
    "heartbeat_interval": f"{HEARTBEAT_MS / 1000}s",
    "heartbeat_timeout": f"{HEARTBEAT_TIMEOUT_MS / 1000}s",
    "term_grace": "1s",
}
LINE = "the quick brown fox jumps over the lazy dog and goes on to the next line of its log"
END_SECONDS = 600
LOOK_SECONDS = 0.2


def run(options: Options) -> list[Row]:
    """1 GB, or 20 MB for a quick look."""
    size = options.pick(1_000_000_000, 20_000_000)
    with (
        server(options.folder / "server", settings=SETTINGS) as running,
        worker(running, "w1", 1) as agent,
    ):
        before = peak_memory_mb(running.pid)
        took, gap = _write_log(running, size)
        peak, agents = peak_memory_mb(running.pid), peak_memory_mb(agent)
    section = f"{NAME}, {size / 1e6:,.0f} MB"
    return [
        Row(section=section, name="log", value=size / 1e6 / took, unit="MB/s"),
        Row(section=section, name="server's memory before", value=before, unit="MB"),
        Row(section=section, name="server's memory, most", value=peak, unit="MB",
            target=f"< {MEMORY_MB}", met=peak < MEMORY_MB),
        Row(section=section, name="worker's memory, most", value=agents, unit="MB"),
        Row(section=section, name="longest silence of the worker", value=gap / 1000, unit="s",
            target=f"< {HEARTBEAT_TIMEOUT_MS / 1000}", met=gap < HEARTBEAT_TIMEOUT_MS),
    ]  # fmt: skip


def _write_log(running: Server, size: int) -> tuple[float, int]:
    """Run the job; how many seconds until its log was there, and the longest silence in ms."""
    with running.client() as client, Silence(running) as silence:
        began = time.monotonic()
        command = f"yes '{LINE}' | head -c {size}"
        args = {"argv": ["/bin/sh", "-c", command]}
        handle = client.submit(JobSpec(task="shell", args=args))
        done = handle.wait(END_SECONDS)
        if done.state != "completed":
            raise RuntimeError(f"the job that writes its log {done.state}: {done.reason}")
        shown = until("the whole log", lambda: _committed(handle.info()), END_SECONDS)
        took = time.monotonic() - began
    if shown.log is None or shown.log.bytes != size:
        raise RuntimeError(f"expected a log of {size} bytes, got {shown.log}")
    return took, silence.longest_ms


def _committed(job: Job) -> Job | None:
    return job if job.log is not None and job.log.state == "committed" else None


class Silence:
    """Looks from time to time when the worker was last seen, in a thread of its own."""

    def __init__(self, running: Server) -> None:
        self.longest_ms = 0
        self._running = running
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        with self._running.client() as client:
            before = _last_seen(client)
            while not self._over.wait(LOOK_SECONDS):
                now = _last_seen(client)
                self.longest_ms = max(self.longest_ms, now - before)
                before = now


def _last_seen(client: Client) -> int:
    call = client.asynchronous.transport.call
    (shown,) = client.run(call("GET", "/api/v1/workers", WorkerList)).workers
    return parse_moment(shown.last_seen, "last_seen")
