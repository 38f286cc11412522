"""The end of the process, where threads of a library would not let it end in peace.

The client of S3 has threads that hold Python objects for a moment after an answer is in. One
that lets go of them while the interpreter is being taken down aborts the process, though all of
its work is done. So a process that has used it flushes what it said and leaves at once.
"""

import os
import sys
from collections.abc import Callable
from typing import Final

from windlass.cli.output import FAILED, OK

THREADED: Final = "obstore"


def run_and_leave(run: Callable[[], None]) -> None:
    """Run the program; its exit code is that of `run`."""
    try:
        run()
        code: object = OK
    except SystemExit as end:
        code = end.code
        if THREADED not in sys.modules or isinstance(code, str):
            raise
    if THREADED in sys.modules:
        _leave(code)


def _leave(code: object) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or FAILED
    os._exit(code if isinstance(code, int) else OK)
