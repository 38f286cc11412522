"""One job's process group, as the keeper holds it, and what its processes use.

Processes are read from /proc or from their cgroup; folders are measured in separate processes. The
standard library only: the keeper imports this file.
"""

import os
import re
import signal
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from windlass.worker.keeper import processes
from windlass.worker.keeper.cgroups import Box
from windlass.worker.keeper.launch import Allowed, Start, launch
from windlass.worker.keeper.processes import PAGE, TICKS, signal_group

STATUS = re.compile(rb'"child-pid"\s*:\s*(\d+)')
SAID = re.compile(rb" wait-status=(\d+) ")  # by the reporter
SIGNALED = 128  # added to its number by programs that report the signal which ended another

# fields of /proc/PID/stat, after the name: its own times, and those of reaped children
CPU_TIMES = slice(11, 15)
RESIDENT = 21


def reported_end(text: bytes) -> int | None:
    """Returns how a program ended according to its reporter; -N if signal N killed it."""
    said = SAID.search(text)
    return None if said is None else os.waitstatus_to_exitcode(int(said[1]))


class Group:
    """One job's process group; the pid of its leader is its number.

    In a nested group, the leader is a program around the job's (see `Start`). `status` reports
    which process that has started, and how the job's program ended.
    """

    __slots__ = (
        "allowed", "box", "code", "cwd", "disk_at", "ending_at", "fenced", "inline", "kill_at",
        "layers", "nested", "number", "outside", "over", "pid", "pipe", "root", "status", "tag",
        "user",
    )  # fmt: skip

    def __init__(
        self, number: int, pid: int, pipe: int, cwd: str | None, tag: bytes, box: Box | None,
        start: Start, status: int = -1,
    ) -> None:  # fmt: skip
        self.number = number
        self.pid = pid
        self.pipe = pipe
        self.cwd = cwd
        self.tag = tag  # marker in the environment of its processes
        self.box = box
        self.allowed: Allowed = start.allowed
        self.user = start.user  # user of its processes, if not the keeper's
        self.nested = start.nested
        self.layers = start.layers
        self.outside = start.outside
        self.root = 0  # the process that watches over what it runs elsewhere, if known
        self.ending_at = 0.0  # when to end (again) what it runs elsewhere
        self.status = status
        if status >= 0:
            os.set_blocking(status, False)
        self.inline = 0
        self.kill_at = 0.0
        self.disk_at = 0.0  # when its folder was last measured
        self.code = 0  # how the leader of a nested one has ended
        self.fenced = False
        self.over = ""  # the limit that it was killed for

    @property
    def watched(self) -> bool:
        """Returns whether it must be checked often."""
        return bool(self.kill_at) or self.allowed.is_watched

    def ask_to_end(self) -> None:
        """Sends SIGTERM to its processes; a leader around them would not pass it on."""
        inner = processes.children_of(self.pid) if self.nested else ()
        for pid in inner or (self.pid,):
            signal_group(pid, signal.SIGTERM)

    def kill(self, over: str = "") -> None:
        """Kills all its processes; `over` names the limit that it has passed."""
        self.over = self.over or over
        signal_group(self.pid, signal.SIGKILL)
        if self.box is not None:
            self.box.kill()

    def read_status(self) -> int:
        """Reads how the program of an ended leader ended, and returns the leader's child.

        Returns 0 if that is unknown. Without a report, the program was killed with everything
        around it.
        """
        text = b""
        if self.status >= 0:
            try:
                text = os.read(self.status, 4_096)
            except BlockingIOError:
                pass  # There was no report.
            os.close(self.status)
            self.status = -1
        end, found = reported_end(text), STATUS.search(text)
        if end is not None:
            self.code = end
        elif self.nested and SIGNALED < self.code < SIGNALED + signal.NSIG:
            self.code = SIGNALED - self.code
        return int(found[1]) if found else 0


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
