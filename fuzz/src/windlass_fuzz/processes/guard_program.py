"""The process guard's program (see `process_guard.py`): a script that imports none of our code.

Its arguments are the name of a variable, a process id and that process's start time. It detaches
from its caller at once, waits until that process has ended, and then kills every process whose
environment has the variable with the two as its mark.
"""

import os
import select
import signal
import sys
from typing import Final

# Rounds in which we only send SIGTERM, so that programs can clean up.
GRACE_ROUNDS: Final = 20
ROUNDS: Final = 200
PAUSE_S: Final = 0.1
LOOK_S: Final = 1.0


def marked_processes(mark: bytes) -> list[int]:
    """Returns the live processes that have the mark in their environment."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _has_mark(name, mark)]


def _has_mark(name: str, mark: bytes) -> bool:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False  # it has ended, or belongs to another user


def kill_marked(mark: bytes) -> None:
    """Terminates, then kills them, and repeats until none is left that could start another."""
    for round_number in range(ROUNDS):
        found = marked_processes(mark)
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGTERM if round_number < GRACE_ROUNDS else signal.SIGKILL)
            except ProcessLookupError:
                continue
        signal.sigtimedwait((), PAUSE_S)


def start_time(pid: int) -> str:
    """Returns when a process started, in ticks since the machine did; empty if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def wait_for_end(pid: int, began: str) -> None:
    """Returns once the process with this id and start time has ended.

    The kernel wakes us. Where it cannot (before Linux 5.3), we look again and again.
    """
    try:
        process = os.pidfd_open(pid)
    except OSError:
        process = -1
    while start_time(pid) == began:
        if process < 0:
            signal.sigtimedwait((), LOOK_S)
        else:
            select.select([process], [], [])


def main() -> None:
    """Detaches from the caller, so that neither its terminal nor its process group can stop us."""
    if os.fork():
        return
    os.setsid()
    os.chdir("/")
    variable, pid, began = sys.argv[1:]
    wait_for_end(int(pid), began)
    kill_marked(f"{variable}={pid}-{began}".encode())


if __name__ == "__main__":
    main()
