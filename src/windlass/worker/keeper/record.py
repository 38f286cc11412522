"""The file in which a keeper names the process groups that a later agent has to kill.

The standard library only: the keeper imports this file.
"""

import os
from collections.abc import Iterable

from windlass.worker.keeper.processes import boottime

REWRITE_BYTES = 65_536


def boot_id() -> bytes:
    """Returns the id of the current boot."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read().strip()
    except OSError:
        return b"?"


class Record:
    """The boot id, then a line for the keeper, then one for each group: pid, and when noted.

    On a full disk jobs run without it: a later agent knows them by their marker as well.
    """

    def __init__(self, path: str) -> None:
        try:
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            self._fd = -1
        self._lines: list[bytes] = []
        self._size = REWRITE_BYTES + 1
        self.note(os.getpid())
        self.write(())

    def note(self, pid: int) -> None:
        """Records that this process exists now: a later one with its pid is not ours."""
        self._lines.append(b"%d %d\n" % (pid, int(boottime() * 1000)))

    def write(self, live: Iterable[int]) -> None:
        """Writes what was noted; rewrites the file with the live groups when it has grown."""
        if not self._lines:
            return
        try:
            self._write(live)
        except OSError:
            self._size = REWRITE_BYTES + 1  # Write all of it the next time.
        self._lines = []

    def _write(self, live: Iterable[int]) -> None:
        if self._size > REWRITE_BYTES:
            os.ftruncate(self._fd, 0)
            os.lseek(self._fd, 0, os.SEEK_SET)
            self._size = 0
            self._lines = [boot_id() + b"\n"]
            for pid in (os.getpid(), *live):
                self.note(pid)
        self._size += os.write(self._fd, b"".join(self._lines))
