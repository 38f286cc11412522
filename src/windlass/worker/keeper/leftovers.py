"""Kills what an older agent of the same directory has left behind.

A process is known by its pid together with its start time, or by the marker in its environment: a
stranger that got the same pid later is never touched.
"""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from windlass.ports.clock import Clock
from windlass.worker.keeper.client import MARKER
from windlass.worker.keeper.processes import Seen, all_processes, environ_of, look_at
from windlass.worker.keeper.record import boot_id

SLACK_MS = 20  # the kernel counts start times in hundredths of a second
PAUSE_MS = 10
MAX_LINE = 40  # bytes: two numbers of 64 bits


async def kill_leftovers(record: Path, marker: str, clock: Clock, patience_ms: int) -> bool:
    """Kills every process that the record or the marker names; returns whether none is left."""
    noted = dict(_read(record))
    for _ in range(max(1, patience_ms // PAUSE_MS)):
        found = _find(noted, marker)
        if not found:
            return True
        for seen in found:
            try:
                os.kill(seen.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        await clock.sleep_ms(PAUSE_MS)
    return False


def _read(record: Path) -> Iterator[tuple[int, int]]:
    """Returns pids, each with the time it was noted, in ms since boot."""
    try:
        boot, *lines = record.read_bytes().split(b"\n")
    except OSError:
        return
    if boot != boot_id():
        return  # Nothing outlives a reboot.
    for line in lines:
        pid, _, noted = line.partition(b" ")
        if pid.isdigit() and noted.isdigit() and len(line) <= MAX_LINE:
            yield int(pid), int(noted)


def _find(noted: dict[int, int], marker: str) -> list[Seen]:
    """Finds the processes to kill, the keeper first, so that it starts nothing more."""
    leaders = {pid for pid, at in noted.items() if _is_leader(pid, at)}
    mark = f"{MARKER}={marker}".encode()
    found = [
        seen
        for seen in all_processes()
        if seen.pid in leaders or seen.session in leaders or mark in environ_of(seen.pid)
    ]
    order = {pid: index for index, pid in enumerate(noted)}
    return sorted(found, key=lambda seen: order.get(seen.pid, len(order)))


def _is_leader(pid: int, noted: int) -> bool:
    seen = look_at(pid)
    return seen is not None and seen.session == pid and seen.started <= noted + SLACK_MS
