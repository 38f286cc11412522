"""Measures the folders of jobs that have a limit on disk, in processes of their own.

The standard library only: the keeper imports this file.
"""

import os
from collections.abc import Callable, Mapping

from windlass.worker.keeper.group import Group
from windlass.worker.keeper.launch import launch

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

        The process that measures calls `enter` first.
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
