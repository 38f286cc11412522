"""huey on Redis or SQLite, with four worker processes.

Throughput is measured as with dramatiq: the queue is filled before the consumer starts,
and the clock runs once a twentieth is done. For latency the consumer waits for work.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.fleet.processes import stopped_in_the_end
from benchmarks.measure import Lap
from benchmarks.peers.declared import URL, declared_on
from benchmarks.peers.draining import drained

TASKS = "benchmarks.peers.huey_tasks"
PROCESSES = 4


def run(url: str, folder: Path, jobs: int) -> Lap:
    """Drain `jobs` no-op jobs."""
    tasks = declared_on(TASKS, url)
    tasks.queue.flush()
    for n in range(jobs):
        tasks.noop(n)
    log = folder / "huey.log"
    return drained(_command(), log, {URL: url}, jobs, tasks.queue.pending_count)


@contextmanager
def consumer(url: str, folder: Path) -> Iterator[Callable[[str, int], object]]:
    """A consumer that waits for work; gives what submits a `start`."""
    tasks = declared_on(TASKS, url)
    with stopped_in_the_end(_command(), folder / "huey-idle.log", {URL: url}):
        yield tasks.start


def _command() -> list[str]:
    consumer = str(Path(sys.executable).with_name("huey_consumer"))
    return [consumer, f"{TASKS}.queue", "--workers", str(PROCESSES), "--worker-type", "process",
            "--quiet", "--graceful-signal", "TERM"]  # fmt: skip
