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


class Group:
    """One job's process group; the pid of its leader is its number.

    Of a nested one, the leader is a program around the job's (see `Start`). `status` is where
    that says which process it has started.
    """

    __slots__ = (
        "allowed", "box", "code", "cwd", "disk_at", "ending_at", "fenced", "inline", "kill_at",
        "nested", "number", "outside", "over", "pid", "pipe", "root", "status", "tag", "user",
    )  # fmt: skip

    def __init__(
        self, number: int, pid: int, pipe: int, cwd: str | None, tag: bytes, box: Box | None,
        start: Start, status: int = -1,
    ) -> None:  # fmt: skip
        self.number = number
        self.pid = pid
        self.pipe = pipe
        self.cwd = cwd
        self.tag = tag  # what its processes carry in their environment
        self.box = box
        self.allowed: Allowed = start.allowed
        self.user = start.user  # of its processes, if it is not the keeper's
        self.nested = start.nested
        self.outside = start.outside
        self.root = 0  # the process above what it runs elsewhere, if that is known
        self.ending_at = 0.0  # when what it runs elsewhere is ended (again)
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
        """Whether it is to be looked at often."""
        return bool(self.kill_at) or self.allowed.is_watched

    @property
    def layered(self) -> bool:
        """Whether two of its processes are not the job's: one around it, and its init."""
        return self.nested or bool(self.outside)

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

    def inner_pid(self) -> int:
        """Returns the process that an ended leader had started; 0 if that is not known."""
        if self.status < 0:
            return 0
        try:
            found = STATUS.search(os.read(self.status, 4_096))
        except BlockingIOError:
            found = None
        os.close(self.status)
        self.status = -1
        return int(found[1]) if found else 0
