"""The program of the guard (see `guard.py`): a script of its own that imports nothing of ours.

It is called with a mark and with a pipe as its standard input. It leaves its caller at once,
waits for the end of the pipe, and then ends every process that carries the mark.
"""

import os
import signal
import sys
from typing import Final

GRACE: Final = 20  # looks during which programs may end by themselves, such as to free memory
LOOKS: Final = 200
PAUSE_S: Final = 0.1


def carriers(mark: bytes) -> list[int]:
    """The live processes in whose environment the mark stands."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _carries(name, mark)]


def _carries(name: str, mark: bytes) -> bool:
    try:
        with open(f"/proc/{name}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False  # it has ended, or is somebody else's


def end_all(mark: bytes) -> None:
    """Ask, and then make them; looked at again until nobody is left who could start another."""
    for look in range(LOOKS):
        found = carriers(mark)
        if not found:
            return
        for pid in found:
            try:
                os.kill(pid, signal.SIGTERM if look < GRACE else signal.SIGKILL)
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
    end_all(sys.argv[1].encode())


if __name__ == "__main__":
    main()
