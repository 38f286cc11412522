"""Time how a peer's workers drain a queue that was filled before they start."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.fleet.processes import stopped_in_the_end
from benchmarks.measure import Lap

LIMIT_SECONDS = 300
POLL_SECONDS = 0.01
WARM = 20  # the clock starts once one of so many is done


def drained(
    command: list[str],
    log: Path,
    extra: Mapping[str, str],
    jobs: int,
    left: Callable[[], int],
) -> Lap:
    """Start `command` and watch `left`, the number of jobs that are not done, fall to 0.

    The lap counts those that were left when the clock started; of a handful that may be none.
    """
    with stopped_in_the_end(command, log, extra) as process:
        before = _first_at_most(jobs - jobs // WARM, left, lambda: process.poll() is None)
        began = time.perf_counter()
        _first_at_most(0, left, lambda: process.poll() is None)
        return Lap(before, time.perf_counter() - began)


def measured(lap: Lap) -> Lap:
    """The lap, if there was enough to measure."""
    if not lap.jobs:
        raise RuntimeError("the peer was done before the clock started: give it more jobs")
    return lap


def _first_at_most(most: int, left: Callable[[], int], alive: Callable[[], bool]) -> int:
    deadline = time.monotonic() + LIMIT_SECONDS
    while (now := left()) > most:
        if not alive() or time.monotonic() > deadline:
            raise RuntimeError(f"the peer's workers left {now} jobs undone")
        time.sleep(POLL_SECONDS)
    return now
