"""A job that another one attacks: it has a private file, sockets and shared memory, and waits."""

import ctypes
import json
import os
import signal
import socket
import sys
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
SHARED_KEY = 0x77_69_6E_64
CREATE = 0o1000
REMOVE = 0


def main(told: dict[str, str], salt: int) -> None:
    """Makes them, tells where it is, and waits until it is stopped."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Path("private").write_text("secret")
    Path("private").chmod(0o600)
    listeners = [socket.socket(socket.AF_UNIX) for _ in range(2)]
    listeners[0].bind("s")
    listeners[1].bind(f"\0{told['abstract']}")
    for listener in listeners:
        listener.listen()
    shared = LIBC.shmget(SHARED_KEY + salt, 4096, CREATE | 0o600)
    sys.stdout.write(os.getcwd() + "\n")
    sys.stdout.flush()
    try:
        sys.stdin.read()
        while True:
            listeners[0].accept()
    finally:
        LIBC.shmctl(shared, REMOVE, None)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(given, given["salt"])
