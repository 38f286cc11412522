"""The process guard's program (see `process_guard.py`): a script that imports none of our code.

Its argument is a mark, its standard input a pipe. It detaches from its caller at once, waits
until the pipe closes, and then kills every process with the mark.
"""

import os
import signal
import sys
from typing import Final

# Rounds in which we only send SIGTERM, so that programs can clean up.
GRACE_ROUNDS: Final = 20
ROUNDS: Final = 200
PAUSE_S: Final = 0.1


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


def main() -> None:
    """Detaches from the caller, so that neither its terminal nor its process group can stop us."""
    if os.fork():
        return
    os.setsid()
    os.chdir("/")
    while os.read(sys.stdin.fileno(), 1):
        continue
    kill_marked(sys.argv[1].encode())


if __name__ == "__main__":
    main()
