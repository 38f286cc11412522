"""dramatiq on Redis: no-op actors, drained by two processes of two threads.

More threads and a shorter prefetch, which are its defaults, halve its rate on no-ops.

The queue is filled before its workers start. The clock runs from the moment that a
twentieth of the jobs is done, so that neither the start of the processes nor the filling
counts, to the moment that Redis knows of no message any more: each was acknowledged.
"""

import sys
from pathlib import Path

import redis

from benchmarks.measure import Lap
from benchmarks.peers.declared import URL, declared_on
from benchmarks.peers.draining import drained

TASKS = "benchmarks.peers.dramatiq_tasks"
MESSAGES = "dramatiq:default.msgs"
DEAD = "dramatiq:default.XQ"
PROCESSES = 2
THREADS = 2
PREFETCH = "200"


def run(url: str, folder: Path, jobs: int) -> Lap:
    """Drain `jobs` no-op jobs."""
    with redis.Redis.from_url(url) as connection:
        connection.flushdb()
        _fill(url, jobs)
        command = [sys.executable, "-m", "dramatiq", TASKS]
        command += ["--processes", str(PROCESSES), "--threads", str(THREADS)]
        extra = {URL: url, "dramatiq_queue_prefetch": PREFETCH}
        log = folder / "dramatiq.log"
        lap = drained(command, log, extra, jobs, lambda: int(connection.hlen(MESSAGES)))
        dead = connection.zcard(DEAD)
    if dead:
        raise RuntimeError(f"dramatiq gave up {dead} of {jobs} jobs")
    return lap


def _fill(url: str, jobs: int) -> None:
    send = declared_on(TASKS, url).noop.send
    for n in range(jobs):
        send(n)
