"""Measures what the processes of a job use together, and folders with a limit on disk.

Processes are read from /proc or from their cgroup; folders are measured in separate processes. The
standard library only: the keeper imports this file.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from windlass.worker.keeper.cgroups import Box
from windlass.worker.keeper.group import Group
from windlass.worker.keeper.launch import Allowed, launch
from windlass.worker.keeper.processes import PAGE, TICKS

# fields of /proc/PID/stat, after the name: its own times, and those of reaped children
CPU_TIMES = slice(11, 15)
RESIDENT = 21


class Usage(NamedTuple):
    """Bytes of memory, seconds of CPU time, and processes."""

    memory: int = 0
    cpu: float = 0.0
    processes: int = 0


def usage_of(pid: int) -> Usage:
    """Returns what a process and its descendants use."""
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

    `layers` of its processes do not belong to the job.
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
    """Returns a process and its descendants, including those started by its threads."""
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


EVERY_S = 1.0


class DiskMeter:
    """Knows which process measures which group; the keeper tells it when one has ended."""

    def __init__(self, null: int) -> None:
        self._null = null
        self._running: dict[int, tuple[Group, int]] = {}  # by pid

    def look_at(
        self, group: Group, now: float, env: Mapping[str, str], enter: Callable[[], None] | None
    ) -> int:
        """Starts to measure the group's folder if it is time to; returns the pid, or 0.

        The measuring process calls `enter` first.
        """
        if not (group.allowed.disk and group.cwd) or now - group.disk_at < EVERY_S:
            return 0
        if any(one is group for one, _ in self._running.values()):
            return 0
        group.disk_at = now
        listen, tell = os.pipe()
        command = ["du", "-sx", "--block-size=1", "--", group.cwd]
        try:
            streams = (self._null, tell, self._null)
            pid = launch(command, env, streams, prepare=enter)
        except OSError:
            os.close(listen)
            return 0
        finally:
            os.close(tell)
        self._running[pid] = group, listen
        return pid

    def ended(self, pid: int) -> None:
        """Kills the group of this process if its folder has become too large."""
        if pid not in self._running:
            return
        group, listen = self._running.pop(pid)
        words = os.read(listen, 100).split(maxsplit=1)
        os.close(listen)
        if words and words[0].isdigit() and int(words[0]) > group.allowed.disk:
            group.kill("disk")
