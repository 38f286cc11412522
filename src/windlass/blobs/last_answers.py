"""Lets a program that used the S3 client exit cleanly.

Traced with obstore 0.12.1 and CPython 3.11 (gdb, SIGABRT in four of ten short programs): the client
answers from its own thread through `loop.call_soon_threadsafe`, which wakes the loop by writing to
a socket and releases the interpreter's lock meanwhile. The program continues, and may exit before
that thread has the lock back. Until Python 3.13, a thread that then asks for the lock is ended by
`pthread_exit`, which cannot unwind the client's frames and aborts the process. Deleting the store
does not help, and it cannot be closed. While a thread is in that call it has a frame, so the
program waits at exit until there is none.
"""

import atexit
import sys
import threading
import time
from typing import Final

PATIENCE_S: Final = 5.0
PAUSE_S: Final = 0.001


def await_at_exit() -> None:
    """Waits, before the interpreter shuts down, for threads that are delivering an answer."""
    atexit.unregister(_wait)
    atexit.register(_wait)


def _wait() -> None:
    deadline = time.monotonic() + PATIENCE_S
    while _strangers() and time.monotonic() < deadline:
        time.sleep(PAUSE_S)


def _strangers() -> set[int]:
    """Returns the threads that currently run Python but were not started by it."""
    return set(sys._current_frames()) - {thread.ident or 0 for thread in threading.enumerate()}
