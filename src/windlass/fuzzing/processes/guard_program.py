"""The program of the guard (see `guard.py`): a script of its own that imports nothing of ours.

It is called with a mark and with a pipe as its standard input. It leaves its caller at once,
waits for the end of the pipe, and then ends every process that carries the mark.
"""

import os
import signal
import sys
from typing import Final

GRACE_ROUNDS: Final = (
    20  # looks during which programs may end by themselves, such as to free memory
)
ROUNDS: Final = 200
PAUSE_S: Final = 0.1


def marked_processes(mark: bytes) -> list[int]:
    """The live processes in whose environment the mark stands."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _has_mark(name, mark)]


def _has_mark(name: str, mark: bytes) -> bool:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False  # it has ended, or is somebody else's


def kill_marked(mark: bytes) -> None:
    """Ask, and then make them; looked at again until nobody is left who could start another."""
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
    """Part from the caller, so that neither its terminal nor its group ends us."""
    if os.fork():
        return
    os.setsid()
    os.chdir("/")
    while os.read(sys.stdin.fileno(), 1):
        continue
    kill_marked(sys.argv[1].encode())


if __name__ == "__main__":
    main()
