"""What the processes of a job use together, read from /proc or from their cgroup.

The standard library only: the keeper imports this file.
"""

import os
from collections.abc import Iterator
from typing import NamedTuple

from windlass.worker.keeper.cgroups import Box
from windlass.worker.keeper.launch import Allowed
from windlass.worker.keeper.processes import PAGE, TICKS

CPU_TIMES = slice(11, 15)  # of /proc/PID/stat, after the name: its own, and of reaped children
RESIDENT = 21


class Usage(NamedTuple):
    """Bytes of memory, seconds of CPU time, and processes."""

    memory: int = 0
    cpu: float = 0.0
    processes: int = 0


def usage_of(pid: int) -> Usage:
    """Returns what a process and all that descend from it use."""
    memory = processes = ticks = 0
    for member in _tree(pid):
        try:
            with open(f"/proc/{member}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        memory += int(fields[RESIDENT]) * PAGE
        ticks += sum(map(int, fields[CPU_TIMES]))
        processes += 1
    return Usage(memory, ticks / TICKS, processes)


def passed(allowed: Allowed, used: Usage, box: Box | None, layers: int) -> str:
    """Returns the name of a limit that a job has passed; empty if none.

    `layers` of its processes are not the job's.
    """
    cpu = used.cpu if box is None else max(used.cpu, box.cpu_seconds)
    if allowed.memory and used.memory > allowed.memory:
        return "memory"
    if allowed.cpu and cpu > allowed.cpu:
        return "cpu_time"
    if allowed.processes and used.processes - layers > allowed.processes:
        return "processes"
    return ""


def _tree(pid: int) -> Iterator[int]:
    """Returns a process and its descendants, also those that its threads have started."""
    waiting = [pid]
    while waiting:
        member = waiting.pop()
        yield member
        try:
            threads = os.listdir(f"/proc/{member}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{member}/task/{thread}/children", "rb") as file:
                    waiting += map(int, file.read().split())
            except OSError:
                continue
