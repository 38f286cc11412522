"""One job's process group, as the keeper holds it.

The standard library only: the keeper imports this file.
"""

import os
import re
import signal

from windlass.worker.keeper import processes
from windlass.worker.keeper.cgroups import Box
from windlass.worker.keeper.launch import Allowed, Start
from windlass.worker.keeper.processes import signal_group

STATUS = re.compile(rb'"child-pid"\s*:\s*(\d+)')
SAID = re.compile(rb" wait-status=(\d+) ")  # by the reporter
SIGNALED = 128  # added to its number by programs that report the signal which ended another


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
